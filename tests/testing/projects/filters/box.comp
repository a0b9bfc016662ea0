#version 450
// The mean of 3 x 3 pixels; those past the edges are left out.
layout(local_size_x = 8, local_size_y = 8) in;
layout(std430, binding = 0) readonly buffer Source { float source[]; };
layout(std430, binding = 1) writeonly buffer Target { float target[]; };
layout(push_constant) uniform Size { uint width; uint height; };

void main() {
    uvec2 at = gl_GlobalInvocationID.xy;
    if (at.x >= width || at.y >= height) return;
    float sum = 0.0, count = 0.0;
    for (int dy = -1; dy <= 1; ++dy) {
        for (int dx = -1; dx <= 1; ++dx) {
            ivec2 p = ivec2(at) + ivec2(dx, dy);
            if (p.x < 0 || p.y < 0 || p.x >= int(width) || p.y >= int(height)) continue;
            sum += source[uint(p.y) * width + uint(p.x)];
            count += 1.0;
        }
    }
    target[at.y * width + at.x] = sum / count;
}

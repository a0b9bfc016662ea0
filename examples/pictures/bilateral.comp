// Smooths a picture and keeps its edges: an average of the texels around, weighted by how near they are and how alike.
//
// Binding 0: image with a sampler, read
// Binding 1: storage image rgba8, written, of any size: the picture is scaled to it
// Push constants (8 bytes):
//     0  float radius: standard deviation of the distance, in texels
//     4  float likeness: standard deviation of the difference of colours, which are within 0 and 1
// Groups: x = ceil(width / 8), y = ceil(height / 8)
#version 450

layout(local_size_x = 8, local_size_y = 8) in;

layout(binding = 0) uniform sampler2D source;
layout(binding = 1, rgba8) writeonly uniform image2D target;

layout(push_constant) uniform Push {
    float radius;
    float likeness;
} push;

void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    if (any(greaterThanEqual(at, imageSize(target)))) return;
    vec2 texel = 1.0 / vec2(textureSize(source, 0));
    vec2 middle = (vec2(at) + 0.5) / vec2(imageSize(target));
    vec3 colour = textureLod(source, middle, 0.0).rgb;
    int reach = int(ceil(2.0 * push.radius));
    vec4 sum = vec4(0.0);
    for (int y = -reach; y <= reach; y++) {
        for (int x = -reach; x <= reach; x++) {
            vec2 step = vec2(x, y);
            vec3 other = textureLod(source, middle + step * texel, 0.0).rgb;
            vec3 difference = (other - colour) / push.likeness;
            step /= push.radius;
            sum += vec4(other, 1.0) * exp(-0.5 * (dot(step, step) + dot(difference, difference)));
        }
    }
    imageStore(target, at, vec4(sum.rgb / sum.a, 1.0));
}

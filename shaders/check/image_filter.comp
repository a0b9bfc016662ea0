// Copies a picture texel by texel, and reads it at the middle between four texels through a sampler.
//
// Binding 0: sampled image with a sampler, linear, clamped to the edge: picture, height x width
// Binding 1: storage image, written: copied, rgba8, height x width
// Binding 2: storage buffer, written: means, f32[height * width][4]
// Push constants: none.
// Groups: x = ceil(width / 8), y = ceil(height / 8)
#version 450

layout(local_size_x = 8, local_size_y = 8) in;

layout(set = 0, binding = 0) uniform sampler2D picture;
layout(set = 0, binding = 1, rgba8) uniform writeonly image2D copied;
layout(std430, set = 0, binding = 2) writeonly buffer Means {
    vec4 means[];
};

void main() {
    ivec2 size = textureSize(picture, 0);
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    if (any(greaterThanEqual(at, size))) {
        return;
    }
    imageStore(copied, at, texelFetch(picture, at, 0));
    means[at.y * size.x + at.x] = textureLod(picture, (vec2(at) + 1.0) / vec2(size), 0.0);
}

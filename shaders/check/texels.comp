// Reads texels of one buffer and writes them to another, doubled.
//
// Binding 0: uniform texel buffer: source
// Binding 1: storage texel buffer, written: doubled, rgba32f
// Push constants: none.
// Groups: x = ceil(texels / 64)
#version 450

layout(local_size_x = 64) in;

layout(set = 0, binding = 0) uniform samplerBuffer source;
layout(set = 0, binding = 1, rgba32f) uniform writeonly imageBuffer doubled;

void main() {
    int at = int(gl_GlobalInvocationID.x);
    if (at < textureSize(source)) {
        imageStore(doubled, at, 2.0 * texelFetch(source, at));
    }
}

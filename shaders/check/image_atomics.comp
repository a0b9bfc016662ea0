// Counts in an image: texel (x, y) becomes the number of invocations that have it, plus what it was.
//
// Binding 0: storage image, read and written: counts, r32ui
// Push constants: none.
// Groups: any; invocations wrap around at the image's sides.
#version 450

layout(local_size_x = 8, local_size_y = 8) in;

layout(set = 0, binding = 0, r32ui) uniform uimage2D counts;

void main() {
    imageAtomicAdd(counts, ivec2(gl_GlobalInvocationID.xy) % imageSize(counts), 1u);
}

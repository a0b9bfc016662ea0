// Mirrors a 3D image of floats.
//
// Binding 0: storage image, read: source, r32f
// Binding 1: storage image, written: mirrored, r32f, of the same size
// Push constants: none.
// Groups: the size divided by 4, rounded up.
#version 450

layout(local_size_x = 4, local_size_y = 4, local_size_z = 4) in;

layout(set = 0, binding = 0, r32f) uniform readonly image3D source;
layout(set = 0, binding = 1, r32f) uniform writeonly image3D mirrored;

void main() {
    ivec3 size = imageSize(source);
    ivec3 at = ivec3(gl_GlobalInvocationID);
    if (all(lessThan(at, size))) {
        imageStore(mirrored, at, imageLoad(source, size - 1 - at));
    }
}

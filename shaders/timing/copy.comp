// Copies one buffer to another: what it moves in a second is the memory bandwidth that a kernel can reach.
//
// Binding 0: storage buffer of vec4, read. Binding 1: storage buffer of vec4, written. Push constants: none.
// Groups: x of 1 to 65535 (y = z = 1); each invocation strides over the whole grid, up to the shorter buffer's end.
// Specialization constants: 0 local_size (64).
// Needs: Shader capability only.
#version 450

layout(local_size_x = 64, local_size_x_id = 0, local_size_y = 1, local_size_z = 1) in;
layout(constant_id = 0) const uint local_size = 64;

layout(std430, set = 0, binding = 0) restrict readonly buffer Source {
    vec4 elements[];
} source;

layout(std430, set = 0, binding = 1) restrict writeonly buffer Target {
    vec4 elements[];
} target;

void main() {
    uint count = min(uint(source.elements.length()), uint(target.elements.length()));
    uint stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < count; i += stride) {
        target.elements[i] = source.elements[i];
    }
}

// Reads and rewrites every element of a buffer, with `rounds` of multiply-adds for each: a load of any number of
// workgroups, of memory or of arithmetic.
//
// Each round is 8 multiply-adds of vec4 in four chains, 64 flops.
//
// Binding 0: storage buffer of vec4, read and written. Push constants (4 bytes):
//     0  uint rounds
// Specialization constants: 0 local_size (64).
// Groups: x of 1 to 65535 (y = z = 1); each invocation strides over the whole grid.
// Needs: Shader capability only.
#version 450

layout(local_size_x = 64, local_size_x_id = 0, local_size_y = 1, local_size_z = 1) in;
layout(constant_id = 0) const uint local_size = 64;

layout(std430, set = 0, binding = 0) restrict buffer Memory {
    vec4 elements[];
} memory;

layout(push_constant) uniform Push {
    uint rounds;
} push;

void main() {
    uint count = uint(memory.elements.length());
    uint stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    // Values tend to 2 and stay normal.
    vec4 factor = vec4(0.5), term = vec4(1.0);
    for (uint i = gl_GlobalInvocationID.x; i < count; i += stride) {
        vec4 a = memory.elements[i];
        vec4 b = a + 1.0, c = a + 2.0, d = a + 3.0;
        for (uint round = 0u; round < push.rounds; round++) {
            a = fma(fma(a, factor, term), factor, term);
            b = fma(fma(b, factor, term), factor, term);
            c = fma(fma(c, factor, term), factor, term);
            d = fma(fma(d, factor, term), factor, term);
        }
        memory.elements[i] = ((a + b) + (c + d)) * 0.25;
    }
}

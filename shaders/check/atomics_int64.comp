// Atomic operations of all invocations on 64-bit numbers.
//
// Binding 0: storage buffer, read: a, u64[n]
// Binding 1: storage buffer, read and written: results, u64[4]: sum, minimum, maximum, xor
// Push constants: none.
// Groups: x = ceil(n / 64)
// Needs: shaderInt64, shaderBufferInt64Atomics.
#version 450
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_shader_atomic_int64 : require

layout(local_size_x = 64) in;

layout(std430, set = 0, binding = 0) readonly buffer A {
    uint64_t a[];
};
layout(std430, set = 0, binding = 1) buffer Results {
    uint64_t results[];
};

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < uint(a.length())) {
        atomicAdd(results[0], a[i]);
        atomicMin(results[1], a[i]);
        atomicMax(results[2], a[i]);
        atomicXor(results[3], a[i]);
    }
}

// Atomic operations of all invocations on eight numbers.
//
// Binding 0: storage buffer, read: a, u32[n]
// Binding 1: storage buffer, read and written: results, u32[8]: sum, minimum, maximum, and, or, xor, sum by exchange
//            (what the exchanges returned and what is left add up), sum by compare-and-swap
// Binding 2: storage buffer, read and written: returned, u32[1]: the sum of what the exchanges returned
// Push constants: none.
// Groups: x = ceil(n / 64)
#version 450

layout(local_size_x = 64) in;

layout(std430, set = 0, binding = 0) readonly buffer A {
    uint a[];
};
layout(std430, set = 0, binding = 1) buffer Results {
    uint results[];
};
layout(std430, set = 0, binding = 2) buffer Returned {
    uint returned[];
};

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= uint(a.length())) {
        return;
    }
    uint x = a[i];
    atomicAdd(results[0], x);
    atomicMin(results[1], x);
    atomicMax(results[2], x);
    atomicAnd(results[3], x);
    atomicOr(results[4], x);
    atomicXor(results[5], x);
    atomicAdd(returned[0], atomicExchange(results[6], x));
    uint seen = results[7];
    for (uint tries = 0u; tries < 60000u; ++tries) {
        uint before = atomicCompSwap(results[7], seen, seen + x);
        if (before == seen) {
            break;
        }
        seen = before;
    }
}

// Operations of 32-bit integers on a[i] and b[i], sixteen results for each i.
//
// Binding 0: storage buffer, read: a, u32[n]
// Binding 1: storage buffer, read: b, u32[n]
// Binding 2: storage buffer, written: results, u32[16][n]
// Push constants: none.
// Groups: x = ceil(n / 64)
#version 450

layout(local_size_x = 64) in;

layout(std430, set = 0, binding = 0) readonly buffer A {
    uint a[];
};
layout(std430, set = 0, binding = 1) readonly buffer B {
    uint b[];
};
layout(std430, set = 0, binding = 2) writeonly buffer Results {
    uint results[];
};

void main() {
    uint n = uint(a.length());
    uint i = gl_GlobalInvocationID.x;
    if (i >= n) {
        return;
    }
    uint x = a[i], y = b[i], carry, borrow, high, low;
    int signed_high, signed_low;
    results[i] = uaddCarry(x, y, carry);
    results[n + i] = carry;
    results[2u * n + i] = usubBorrow(x, y, borrow);
    results[3u * n + i] = borrow;
    umulExtended(x, y, high, low);
    results[4u * n + i] = high;
    results[5u * n + i] = low;
    imulExtended(int(x), int(y), signed_high, signed_low);
    results[6u * n + i] = uint(signed_high);
    results[7u * n + i] = bitfieldReverse(x);
    results[8u * n + i] = uint(bitCount(x));
    results[9u * n + i] = uint(findMSB(x));
    results[10u * n + i] = uint(findLSB(x));
    results[11u * n + i] = bitfieldExtract(x, int(y % 24u), 7);
    results[12u * n + i] = uint(bitfieldExtract(int(x), int(y % 24u), 7));
    results[13u * n + i] = bitfieldInsert(x, y, 5, 11);
    results[14u * n + i] = uint(int(x) >> int(y % 32u));
    results[15u * n + i] = y == 0u ? 0u : x / y + x % y;
}

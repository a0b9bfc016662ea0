// Operations of 64-bit integers on a[i] and b[i], eight results for each i.
//
// Binding 0: storage buffer, read: a, s64[n]
// Binding 1: storage buffer, read: b, s64[n], none 0 or -1
// Binding 2: storage buffer, written: results, s64[8][n]
// Push constants: none.
// Groups: x = ceil(n / 64)
// Needs: shaderInt64.
#version 450
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require

layout(local_size_x = 64) in;

layout(std430, set = 0, binding = 0) readonly buffer A {
    int64_t a[];
};
layout(std430, set = 0, binding = 1) readonly buffer B {
    int64_t b[];
};
layout(std430, set = 0, binding = 2) writeonly buffer Results {
    int64_t results[];
};

void main() {
    uint n = uint(a.length());
    uint i = gl_GlobalInvocationID.x;
    if (i >= n) {
        return;
    }
    int64_t x = a[i], y = b[i];
    results[i] = x + y;
    results[n + i] = x * y;
    results[2u * n + i] = x / y;
    results[3u * n + i] = x >> 5;
    results[4u * n + i] = int64_t(uint64_t(x) >> 33);
    results[5u * n + i] = max(x, y) - min(x, y);
    results[6u * n + i] = int64_t(int(x)) + int64_t(x < y);
    results[7u * n + i] = int64_t(uint64_t(x) / uint64_t(y));
}

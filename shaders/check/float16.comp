// Operations of 16-bit floats on a[i] and b[i], four results for each i.
//
// Binding 0: storage buffer, read: a, f16[n]
// Binding 1: storage buffer, read: b, f16[n]
// Binding 2: storage buffer, written: results, f16[4][n]
// Push constants: none.
// Groups: x = ceil(n / 64)
// Needs: shaderFloat16, storageBuffer16BitAccess.
#version 450
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_shader_16bit_storage : require

layout(local_size_x = 64) in;

layout(std430, set = 0, binding = 0) readonly buffer A {
    float16_t a[];
};
layout(std430, set = 0, binding = 1) readonly buffer B {
    float16_t b[];
};
layout(std430, set = 0, binding = 2) writeonly buffer Results {
    float16_t results[];
};

void main() {
    uint n = uint(a.length());
    uint i = gl_GlobalInvocationID.x;
    if (i >= n) {
        return;
    }
    float16_t x = a[i], y = b[i];
    results[i] = x + y;
    results[n + i] = x * y;
    results[2u * n + i] = max(x, y);
    results[3u * n + i] = float16_t(float(x) * 3.0);
}

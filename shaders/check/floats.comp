// Functions of 32-bit floats of a[i], twelve results for each i.
//
// Binding 0: storage buffer, read: a, f32[n], positive
// Binding 1: storage buffer, written: results, f32[12][n]
// Push constants: none.
// Groups: x = ceil(n / 64)
#version 450

layout(local_size_x = 64) in;

layout(std430, set = 0, binding = 0) readonly buffer A {
    float a[];
};
layout(std430, set = 0, binding = 1) writeonly buffer Results {
    float results[];
};

void main() {
    uint n = uint(a.length());
    uint i = gl_GlobalInvocationID.x;
    if (i >= n) {
        return;
    }
    float x = a[i];
    results[i] = sqrt(x);
    results[n + i] = inversesqrt(x);
    results[2u * n + i] = exp2(x);
    results[3u * n + i] = log2(x);
    results[4u * n + i] = floor(x) + ceil(x) + fract(x);
    results[5u * n + i] = unpackHalf2x16(packHalf2x16(vec2(x, -x))).y;
    results[6u * n + i] = float(packUnorm4x8(vec4(x / 8.0, 0.0, 0.0, 0.0)));
    results[7u * n + i] = ldexp(x, 3);
    results[8u * n + i] = mix(x, 2.0, 0.25);
    results[9u * n + i] = length(vec3(x, 2.0, 3.0));
    results[10u * n + i] = determinant(mat3(x, 1.0, 2.0, 3.0, x, 4.0, 5.0, 6.0, x));
    results[11u * n + i] = intBitsToFloat(floatBitsToInt(x) ^ int(0x80000000u));
}

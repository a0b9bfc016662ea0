// Operations of 64-bit floats on a[i] and b[i], six results for each i.
//
// Binding 0: storage buffer, read: a, f64[n], positive
// Binding 1: storage buffer, read: b, f64[n], positive
// Binding 2: storage buffer, written: results, f64[6][n]
// Push constants: none.
// Groups: x = ceil(n / 64)
// Needs: shaderFloat64.
#version 450

layout(local_size_x = 64) in;

layout(std430, set = 0, binding = 0) readonly buffer A {
    double a[];
};
layout(std430, set = 0, binding = 1) readonly buffer B {
    double b[];
};
layout(std430, set = 0, binding = 2) writeonly buffer Results {
    double results[];
};

void main() {
    uint n = uint(a.length());
    uint i = gl_GlobalInvocationID.x;
    if (i >= n) {
        return;
    }
    double x = a[i], y = b[i];
    results[i] = x + y;
    results[n + i] = x * y;
    results[2u * n + i] = x / y;
    results[3u * n + i] = sqrt(x);
    results[4u * n + i] = floor(x) - ceil(y);
    results[5u * n + i] = double(float(x)) + double(int(y));
}

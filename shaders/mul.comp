// product[i] = a[i] * b[i], for as many elements as all three arrays have.
//
// Binding 0: storage buffer, read: a, f32[n]
// Binding 1: storage buffer, read: b, f32[n]
// Binding 2: storage buffer, written: product, f32[n]
// Push constants: none; n comes from the descriptors' ranges.
// Groups: x = ceil(n / 64), one element an invocation.
#version 450

layout(local_size_x = 64) in;

layout(std430, set = 0, binding = 0) restrict readonly buffer A {
    float a[];
};

layout(std430, set = 0, binding = 1) restrict readonly buffer B {
    float b[];
};

layout(std430, set = 0, binding = 2) restrict writeonly buffer Product {
    float product[];
};

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < uint(product.length()) && i < uint(a.length()) && i < uint(b.length())) {
        product[i] = a[i] * b[i];
    }
}

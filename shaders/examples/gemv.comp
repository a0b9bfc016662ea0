// y = a x for a row-major f32 matrix; one workgroup makes one element of y.
//
// Binding 0: storage buffer, read: a, f32[m, n]
// Binding 1: storage buffer, read: x, f32[n]
// Binding 2: storage buffer, written: y, f32[m]
// Push constants (8 bytes):
//     0  uint m
//     4  uint n
// Groups: any number in x; a workgroup strides over the rows, so x = min(m, 65535) is best.
#version 450

layout(local_size_x = 64) in;

layout(std430, set = 0, binding = 0) restrict readonly buffer A {
    float a[];
};

layout(std430, set = 0, binding = 1) restrict readonly buffer X {
    float x[];
};

layout(std430, set = 0, binding = 2) restrict writeonly buffer Y {
    float y[];
};

layout(push_constant) uniform Push {
    uint m;
    uint n;
} push;

shared float sums[gl_WorkGroupSize.x];

void main() {
    uint local = gl_LocalInvocationID.x;
    for (uint row = gl_WorkGroupID.x; row < push.m; row += gl_NumWorkGroups.x) {
        float sum = 0.0;
        for (uint column = local; column < push.n; column += gl_WorkGroupSize.x) {
            sum += a[row * push.n + column] * x[column];
        }
        sums[local] = sum;
        barrier();
        for (uint half_size = gl_WorkGroupSize.x / 2u; half_size > 0u; half_size /= 2u) {
            if (local < half_size) {
                sums[local] += sums[local + half_size];
            }
            barrier();
        }
        if (local == 0u) {
            y[row] = sums[0];
        }
        // The next row's sums must not replace sums[0] before it is read.
        barrier();
    }
}

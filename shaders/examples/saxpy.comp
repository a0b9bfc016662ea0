// y[i] = a * x[i] + y[i], for as many elements as both arrays have.
//
// Binding 0: storage buffer, read: x, f32[n]
// Binding 1: storage buffer, read and written: y, f32[n]
// Push constants (4 bytes):
//     0  float a
// Groups: x = ceil(n / 64) for one element an invocation; fewer work too.
#version 450

layout(local_size_x = 64) in;

layout(std430, set = 0, binding = 0) restrict readonly buffer X {
    float x[];
};

layout(std430, set = 0, binding = 1) restrict buffer Y {
    float y[];
};

layout(push_constant) uniform Push {
    float a;
} push;

void main() {
    uint count = min(uint(x.length()), uint(y.length()));
    uint stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < count; i += stride) {
        y[i] = push.a * x[i] + y[i];
    }
}

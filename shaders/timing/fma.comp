// Does fused multiply-adds and hardly anything else: its rate is the arithmetic peak that a kernel can reach, and its
// time is in proportion to `iterations`.
//
// Each invocation does 32 * iterations multiply-adds in eight independent chains of vec4, 64 * iterations flops.
//
// Binding 0: storage buffer of vec4, written: one element an invocation, so that the work has a result.
// Push constants (8 bytes):
//     0  uint iterations
//     4  float factor      1.0 keeps all values where they are
// Specialization constants: 0 local_size (64).
// Groups: x (y = z = 1), as many as elements / local_size.
// Needs: Shader capability only.
#version 450

layout(local_size_x = 64, local_size_x_id = 0, local_size_y = 1, local_size_z = 1) in;
layout(constant_id = 0) const uint local_size = 64;

layout(std430, set = 0, binding = 0) restrict writeonly buffer Target {
    vec4 elements[];
} target;

layout(push_constant) uniform Push {
    uint iterations;
    float factor;
} push;

void main() {
    vec4 f = vec4(push.factor);
    vec4 start = vec4(float(gl_LocalInvocationID.x));
    vec4 a = start, b = start + 1.0, c = start + 2.0, d = start + 3.0;
    vec4 e = start + 4.0, g = start + 5.0, h = start + 6.0, k = start + 7.0;
    for (uint i = 0u; i < push.iterations; i++) {
        a = fma(a, f, f);
        b = fma(b, f, f);
        c = fma(c, f, f);
        d = fma(d, f, f);
        e = fma(e, f, f);
        g = fma(g, f, f);
        h = fma(h, f, f);
        k = fma(k, f, f);
    }
    if (gl_GlobalInvocationID.x < uint(target.elements.length())) {
        target.elements[gl_GlobalInvocationID.x] = ((a + b) + (c + d)) + ((e + g) + (h + k));
    }
}

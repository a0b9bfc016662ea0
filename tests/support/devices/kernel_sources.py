"""Sources of kernels that several tests use."""

ACCUMULATE = """#version 450
layout(local_size_x = 8) in;
layout(constant_id = 3) const int step_size = 1;
layout(std430, binding = 0) buffer Total { int total[]; };
layout(push_constant) uniform Push { int first; ivec3 rest; float scale[2]; mat2 turn; } push;
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < total.length()) {
        total[i] += push.first * step_size + push.rest.x * 10 + push.rest.y * 100 + push.rest.z * 1000
            + int(push.scale[0]) * 10000 + int(push.scale[1]) * 100000
            + int(push.turn[1][0]) * 1000000 + int(push.turn[0][1]) * 10000000;
    }
}
"""

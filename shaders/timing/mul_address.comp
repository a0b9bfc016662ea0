// c[i] = a[i] * b[i] on buffers that are given by device address: `mul` without descriptors.
//
// Bindings: none. Push constants (32 bytes):
//     0   uint64 a, b, c   addresses of float32 arrays
//     24  uint count       elements
//     28  uint reserved
// Groups: x (y = z = 1) of 64 invocations, one an element.
// Needs: bufferDeviceAddress.
#version 450
#extension GL_EXT_buffer_reference : require

layout(local_size_x = 64) in;

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Input {
    float values[];
};

layout(buffer_reference, std430, buffer_reference_align = 4) writeonly buffer Output {
    float values[];
};

layout(push_constant) uniform Push {
    Input a;
    Input b;
    Output c;
    uint count;
    uint reserved;
} push;

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < push.count) {
        push.c.values[i] = push.a.values[i] * push.b.values[i];
    }
}

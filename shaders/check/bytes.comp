// Operations of bytes and 16-bit integers on a[i] and b[i].
//
// Binding 0: storage buffer, read: a, s8[n]
// Binding 1: storage buffer, read: b, s16[n]
// Binding 2: storage buffer, written: bytes, s8[n]: a[i] + b[i]
// Binding 3: storage buffer, written: words, s16[n]: a[i] * b[i]
// Push constants: none.
// Groups: x = ceil(n / 64)
// Needs: shaderInt8, shaderInt16, storageBuffer8BitAccess, storageBuffer16BitAccess.
#version 450
#extension GL_EXT_shader_explicit_arithmetic_types : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_16bit_storage : require

layout(local_size_x = 64) in;

layout(std430, set = 0, binding = 0) readonly buffer A {
    int8_t a[];
};
layout(std430, set = 0, binding = 1) readonly buffer B {
    int16_t b[];
};
layout(std430, set = 0, binding = 2) writeonly buffer Bytes {
    int8_t bytes[];
};
layout(std430, set = 0, binding = 3) writeonly buffer Words {
    int16_t words[];
};

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < uint(a.length())) {
        bytes[i] = a[i] + int8_t(b[i]);
        words[i] = int16_t(a[i]) * b[i];
    }
}

// Fills the byte range [offset, offset + size) with a pattern, whatever its alignment.
//
// Binding 0: storage buffer, read and written. The descriptor's range has to be a multiple of 4 bytes
//     (a partial last word is out of reach of 32-bit access) and cover the range.
// Push constants (12 bytes):
//     0  uint offset   first byte, relative to the descriptor's base, so that the base itself can be
//                      rounded down to minStorageBufferOffsetAlignment
//     4  uint size     bytes; 0 writes nothing; offset + size < 2^32
//     8  uint pattern  four bytes in memory order; byte `offset + i` becomes byte `i % 4` of it.
//                      A pattern of 1 or 2 bytes comes repeated to 4.
// Groups: x of 1 to 65535 (y = z = 1); each invocation strides over the whole grid.
// Needs: Shader capability only.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "byte_range.glsl"

layout(local_size_x = 64) in;

layout(std430, set = 0, binding = 0) restrict buffer Target {
    uint words[];
} target;

layout(push_constant) uniform Push {
    uint offset;
    uint size;
    uint pattern;
} push;

void main() {
    if (push.size == 0u) {
        return;
    }
    uint shift = 8u * (push.offset & 3u);
    uint value = shift == 0u ? push.pattern : (push.pattern << shift) | (push.pattern >> (32u - shift));
    uint end = min(last_word(push.offset, push.size) + 1u, uint(target.words.length()));
    uint stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint word = first_word(push.offset) + gl_GlobalInvocationID.x; word < end; word += stride) {
        uint mask = word_mask(word, push.offset, push.size);
        if (mask == 0xFFFFFFFFu) {
            target.words[word] = value;
        } else {
            // Atomic, so that at no time does a neighbouring byte change: work that runs at the same time
            // may own it.
            atomicAnd(target.words[word], value | ~mask);
            atomicOr(target.words[word], value & mask);
        }
    }
}

// Copies `size` bytes from any byte offset to any byte offset. Both bindings may be the same buffer
// as long as the two byte ranges do not overlap; they may share a word.
//
// Binding 0: storage buffer, read: the source.
// Binding 1: storage buffer, read and written: the target.
//     The ranges of both descriptors have to be multiples of 4 bytes (a partial last word is out of reach
//     of 32-bit access) and cover the byte ranges. Outside of them nothing is read or written.
// Push constants (12 bytes), offsets relative to the base of the binding's descriptor:
//     0  uint source_offset  first byte read
//     4  uint target_offset  first byte written
//     8  uint size           bytes; 0 writes nothing; offset + size < 2^32 for both
// Groups: x of 1 to 65535 (y = z = 1); each invocation strides over the whole grid.
// Needs: Shader capability only.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "byte_range.glsl"

layout(local_size_x = 64) in;

// Not `restrict`: one buffer may be bound twice.
layout(std430, set = 0, binding = 0) readonly buffer Source {
    uint words[];
} source;

layout(std430, set = 0, binding = 1) buffer Target {
    uint words[];
} target;

layout(push_constant) uniform Push {
    uint source_offset;
    uint target_offset;
    uint size;
} push;

uint source_word(uint word) {
    return word < uint(source.words.length()) ? source.words[word] : 0u;
}

void main() {
    if (push.size == 0u) {
        return;
    }
    // Byte b of the target is byte b + distance of the source, modulo 2^32.
    uint distance = push.source_offset - push.target_offset;
    uint shift = 8u * (distance & 3u);
    uint end = min(last_word(push.target_offset, push.size) + 1u, uint(target.words.length()));
    uint stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint word = first_word(push.target_offset) + gl_GlobalInvocationID.x; word < end; word += stride) {
        // In the first word of the target this may lie before the source's start and wrap around; the byte
        // offset wraps at 2^32, so the word index has to wrap at 2^30.
        uint low = (4u * word + distance) >> 2;
        uint high = (low + 1u) & 0x3FFFFFFFu;
        uint value = source_word(low);
        if (shift != 0u) {
            value = (value >> shift) | (source_word(high) << (32u - shift));
        }
        uint mask = word_mask(word, push.target_offset, push.size);
        if (mask == 0xFFFFFFFFu) {
            target.words[word] = value;
        } else {
            // Atomic, so that at no time does a neighbouring byte change: it may be a byte of the source,
            // or belong to work that runs at the same time.
            atomicAnd(target.words[word], value | ~mask);
            atomicOr(target.words[word], value & mask);
        }
    }
}

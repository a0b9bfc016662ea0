// A byte range [offset, offset + size) seen as the 32-bit words that it touches.
//
// Every offset and size is in bytes and relative to the base of the storage-buffer descriptor;
// offset + size is below 2^32, which maxStorageBufferRange (at most 2^32 - 1) holds anyway.
#ifndef PUMICE_BYTE_RANGE
#define PUMICE_BYTE_RANGE

uint first_word(uint offset) {
    return offset >> 2;
}

// The last word touched; size > 0.
uint last_word(uint offset, uint size) {
    return (offset + size - 1u) >> 2;
}

// The bits of word `word` that belong to the range; the word is one of those that it touches.
uint word_mask(uint word, uint offset, uint size) {
    uint mask = 0xFFFFFFFFu;
    if (word == first_word(offset)) {
        mask &= 0xFFFFFFFFu << (8u * (offset & 3u));
    }
    if (word == last_word(offset, size)) {
        mask &= 0xFFFFFFFFu >> (8u * (3u - ((offset + size - 1u) & 3u)));
    }
    return mask;
}

#endif

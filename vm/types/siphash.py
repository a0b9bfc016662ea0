"""SipHash-2-4, which the operation ``buffer.hash`` computes."""

from __future__ import annotations

import numpy as np


def siphash_2_4(data: memoryview) -> int:
    """Returns the hash of some bytes, unsigned.

    The key is the sixteen bytes 00 … 0f, of the algorithm's test vectors (J.-P. Aumasson and D. J. Bernstein, "SipHash:
    a fast short-input PRF", appendix A).
    """
    k0, k1 = 0x0706_0504_0302_0100, 0x0F0E_0D0C_0B0A_0908
    v0 = k0 ^ int.from_bytes(b"somepseu", "big")
    v1 = k1 ^ int.from_bytes(b"dorandom", "big")
    v2 = k0 ^ int.from_bytes(b"lygenera", "big")
    v3 = k1 ^ int.from_bytes(b"tedbytes", "big")
    mask = 0xFFFF_FFFF_FFFF_FFFF
    length = len(data)
    whole = length - length % 8
    words = np.frombuffer(data[:whole], dtype="<u8") if whole else np.empty(0, dtype="<u8")
    last = int.from_bytes(data[whole:], "little") | (length & 0xFF) << 56

    def rounds(v0: int, v1: int, v2: int, v3: int, count: int) -> tuple[int, int, int, int]:
        for _ in range(count):
            v0 = (v0 + v1) & mask
            v1 = ((v1 << 13 | v1 >> 51) & mask) ^ v0
            v0 = (v0 << 32 | v0 >> 32) & mask
            v2 = (v2 + v3) & mask
            v3 = ((v3 << 16 | v3 >> 48) & mask) ^ v2
            v0 = (v0 + v3) & mask
            v3 = ((v3 << 21 | v3 >> 43) & mask) ^ v0
            v2 = (v2 + v1) & mask
            v1 = ((v1 << 17 | v1 >> 47) & mask) ^ v2
            v2 = (v2 << 32 | v2 >> 32) & mask
        return v0, v1, v2, v3

    # In pieces, so that a long buffer does not become one Python list of ints as long as itself.
    for start in range(0, len(words), 8192):
        for word in words[start : start + 8192].tolist():
            v0, v1, v2, v3 = rounds(v0, v1, v2, v3 ^ word, 2)
            v0 ^= word
    v0, v1, v2, v3 = rounds(v0, v1, v2, v3 ^ last, 2)
    v0, v1, v2, v3 = rounds(v0 ^ last, v1, v2 ^ 0xFF, v3, 4)
    return v0 ^ v1 ^ v2 ^ v3

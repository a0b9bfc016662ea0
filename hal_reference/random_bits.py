"""Counter-based random bits: Threefry and Philox.

Source: Salmon et al., *Parallel random numbers: as easy as 1, 2, 3*, 2011.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from .program import Array, Evaluator, Node

_MASK: Final = np.uint64(0xFFFFFFFF)
_ROTATIONS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))
_PHILOX_MULTIPLIERS: Final = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_PHILOX_WEYL: Final = (0x9E3779B9, 0xBB67AE85)


def threefry(key: tuple[int, int], counters: tuple[Array, Array]) -> tuple[Array, Array]:
    """Computes twenty rounds of Threefry 2x32 over arrays of 32-bit counters."""
    keys = (key[0], key[1], key[0] ^ key[1] ^ 0x1BD11BDA)
    x, y = (counters[0] + keys[0]).astype(np.uint32), (counters[1] + keys[1]).astype(np.uint32)
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            x = x + y
            y = ((y << np.uint32(rotation)) | (y >> np.uint32(32 - rotation))) ^ x
        x = x + np.uint32(keys[(group + 1) % 3])
        y = y + np.uint32((keys[(group + 2) % 3] + group + 1) & 0xFFFFFFFF)
    return x, y


def philox(key: tuple[int, int], counters: Sequence[Array]) -> list[Array]:
    """Computes ten rounds of Philox 4x32 over arrays of 32-bit counters."""
    a, b, c, d = (counter.astype(np.uint64) for counter in counters)
    low, high = key
    for _ in range(10):
        first, second = a * _PHILOX_MULTIPLIERS[0], c * _PHILOX_MULTIPLIERS[1]
        a, b, c, d = (
            (second >> np.uint64(32)) ^ b ^ np.uint64(low),
            second & _MASK,
            (first >> np.uint64(32)) ^ d ^ np.uint64(high),
            first & _MASK,
        )
        low, high = (low + _PHILOX_WEYL[0]) & 0xFFFFFFFF, (high + _PHILOX_WEYL[1]) & 0xFFFFFFFF
    return [value.astype(np.uint32) for value in (a, b, c, d)]


def rng_bit_generator(_: Evaluator, node: Node, operands: Sequence[Array]) -> Sequence[Array]:
    """Returns the next state and random bits, as in XLA: a state of 64-bit words, the key first."""
    state = np.ascontiguousarray(operands[0])
    words = [int(word) for word in state.view(np.uint64)]
    spec = node.types[1]
    width = spec.dtype.itemsize
    total = math.prod(spec.shape)
    is_philox = node.attributes["rng_algorithm"] != "THREE_FRY"
    key = (words[0] & 0xFFFFFFFF, words[0] >> 32)
    per_word = (total * max(width, 4) + 3) // 4
    if is_philox:
        bits, used = _philox_words(key, words, per_word, width)
    else:
        bits, used = _threefry_words(key, words[1], spec.shape, width)
    # A state of two words has no upper half of the counter, so the key takes its place.
    new = [words[0], (words[1] + used) & (2**64 - 1), *words[2:]]
    if width == 8:
        pairs = bits.reshape(-1, 2)[:total].astype(np.uint64)
        values = pairs[:, 0] | (pairs[:, 1] << np.uint64(32))
    else:
        values = bits[:total]
    result = values.astype(f"u{width}").view(spec.dtype).reshape(spec.shape)
    return [np.array(new, np.uint64).view(state.dtype).reshape(state.shape), result]


def halved(shape: Sequence[int]) -> tuple[int, list[int]]:
    """Returns the dimension along which pairs of 32-bit words lie (the first even one, or else the longest), and the
    shape with half that dimension, rounded up.
    """
    even = [axis for axis, length in enumerate(shape) if length % 2 == 0]
    axis = even[0] if even else max(range(len(shape)), key=lambda dimension: shape[dimension])
    return axis, [-(-length // 2) if dimension == axis else length for dimension, length in enumerate(shape)]


def _threefry_words(key: tuple[int, int], counter: int, shape: Sequence[int], width: int) -> tuple[Array, int]:
    axis, half = halved(shape) if shape and width < 8 else (0, list(shape))
    count = math.prod(half)
    numbers = np.arange(count, dtype=np.uint64) + np.uint64(counter)
    x, y = threefry(key, ((numbers & _MASK).astype(np.uint32), (numbers >> np.uint64(32)).astype(np.uint32)))
    if width == 8 or not shape:
        return np.stack([x, y], -1).reshape(-1), count
    pairs = np.stack([x.reshape(half), y.reshape(half)], axis + 1)
    whole = pairs.reshape([2 * length if dimension == axis else length for dimension, length in enumerate(half)])
    return np.take(whole, np.arange(shape[axis]), axis).reshape(-1), count


def _philox_words(key: tuple[int, int], words: Sequence[int], count: int, width: int) -> tuple[Array, int]:
    blocks = (count + 3) // 4
    numbers = np.arange(blocks, dtype=np.uint64) + np.uint64(words[1])
    high = words[2] if len(words) > 2 else words[0]
    carry = (numbers < np.uint64(words[1])).astype(np.uint64) + np.uint64(high)
    lanes = [numbers & _MASK, numbers >> np.uint64(32), carry & _MASK, carry >> np.uint64(32)]
    return np.stack(philox(key, lanes), -1).reshape(-1), blocks

"""The cache of recordings: the oldest makes room, and what is used again is the youngest."""

from __future__ import annotations

from pumice.hal_vulkan.commands.recording_cache import RecordingCache


def test_the_oldest_makes_room() -> None:
    given_back: list[str] = []
    cache: RecordingCache[int, str] = RecordingCache(2, given_back.append)
    assert cache.evict() is None
    assert cache.keep(1, "one") == "one" and cache.keep(2, "two") == "two"
    assert cache.use(1) == "one" and cache.use(3) is None
    cache.keep(3, "three")
    assert given_back == ["two"] and list(cache) == [1, 3]
    assert cache.get(1) == "one" and cache.evict() == "one"  # get leaves the order
    assert cache.holds("three") and not cache.holds("one")
    cache.drop()
    assert given_back == ["two", "three"] and not cache

"""Memory ranking: IREE's bits, the order on recorded devices, and what is never picked."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.profiles import recorded_profiles

from pumice.hal.memory import BufferUsage, MemoryTypeFlags
from pumice.hal_vulkan.instance.profile import DeviceProfile, MemoryHeap, MemoryProperty, MemoryType
from pumice.hal_vulkan.memory.memory_type import rank_memory_types
from pumice.status import InvalidArgumentError, PumiceError

PROFILES = recorded_profiles()
EVERY = (1 << 32) - 1
UPLOAD = MemoryTypeFlags.HOST_VISIBLE | MemoryTypeFlags.HOST_COHERENT
READBACK = UPLOAD | MemoryTypeFlags.HOST_CACHED
SPECIAL = (
    MemoryProperty.LAZILY_ALLOCATED
    | MemoryProperty.PROTECTED
    | MemoryProperty.DEVICE_COHERENT_AMD
    | MemoryProperty.DEVICE_UNCACHED_AMD
    | MemoryProperty.RDMA_CAPABLE_NV
)
REQUESTS = (
    MemoryTypeFlags.NONE,
    MemoryTypeFlags.DEVICE_LOCAL,
    MemoryTypeFlags.OPTIMAL_FOR_DEVICE,
    MemoryTypeFlags.HOST_LOCAL | MemoryTypeFlags.DEVICE_VISIBLE,
    MemoryTypeFlags.DEVICE_LOCAL | UPLOAD,
    UPLOAD,
    READBACK,
)


def rank(profile: DeviceProfile, flags: MemoryTypeFlags, bits: int = EVERY) -> tuple[int, ...]:
    return rank_memory_types(profile.memory_types, profile.memory_heaps, bits, flags)


def properties(profile: DeviceProfile, index: int) -> MemoryProperty:
    return MemoryProperty(profile.memory_types[index].property_flags)


def test_bits_seen_in_compiled_modules_have_names() -> None:
    """Constants that the IREE 3.13 compiler writes into modules."""
    assert MemoryTypeFlags(0x30) == MemoryTypeFlags.DEVICE_LOCAL
    assert MemoryTypeFlags(0x56) == MemoryTypeFlags.HOST_LOCAL | MemoryTypeFlags.DEVICE_VISIBLE
    assert BufferUsage(0xC03) == BufferUsage.DEFAULT
    assert BufferUsage(0x80C03) == BufferUsage.DEFAULT | BufferUsage.SHARING_IMMUTABLE
    assert BufferUsage(0x9000C03) == BufferUsage.DEFAULT | BufferUsage.MAPPING


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("flags", REQUESTS, ids=lambda flags: f"{flags:#x}")
def test_every_recorded_device_answers_every_request(name: str, flags: MemoryTypeFlags) -> None:
    profile = PROFILES[name]
    ranked = rank(profile, flags)
    assert ranked
    assert len(set(ranked)) == len(ranked)
    for index in ranked:
        props = properties(profile, index)
        assert not props & SPECIAL
        if flags & UPLOAD:
            assert props & UPLOAD == UPLOAD  # the two enumerations share these bit values
    first = properties(profile, ranked[0])
    if flags & 0x20 and any(properties(profile, i) & MemoryProperty.DEVICE_LOCAL for i in ranked):
        assert first & MemoryProperty.DEVICE_LOCAL
    if flags & MemoryTypeFlags.HOST_CACHED and any(properties(profile, i) & MemoryProperty.HOST_CACHED for i in ranked):
        assert first & MemoryProperty.HOST_CACHED


@pytest.mark.parametrize("name", [n for n, p in PROFILES.items() if p.device_type.name == "DISCRETE"])
def test_discrete_devices(name: str) -> None:
    profile = PROFILES[name]
    plain = rank(profile, MemoryTypeFlags.DEVICE_LOCAL)
    assert not properties(profile, plain[0]) & MemoryProperty.HOST_VISIBLE
    fallback = [i for i in plain if not properties(profile, i) & MemoryProperty.DEVICE_LOCAL]
    assert fallback, "an exhausted video memory needs somewhere to go"
    assert not properties(profile, rank(profile, UPLOAD)[0]) & MemoryProperty.DEVICE_LOCAL
    readback = properties(profile, rank(profile, READBACK)[0])
    assert readback & MemoryProperty.HOST_CACHED or name == "required_limits"
    assert not readback & MemoryProperty.DEVICE_LOCAL


@pytest.mark.parametrize("name", ["nvidia_rtx_5060_dozen", "required_limits"])
def test_device_memory_that_the_host_does_not_see(name: str) -> None:
    """Who asks for both gets the host's, and device-local memory stays for the others."""
    profile = PROFILES[name]
    (local,) = (i for i, t in enumerate(profile.memory_types) if t.property_flags == MemoryProperty.DEVICE_LOCAL)
    assert local not in rank(profile, MemoryTypeFlags.DEVICE_LOCAL | UPLOAD)
    assert rank(profile, MemoryTypeFlags.DEVICE_LOCAL)[0] == local


SMALL_BAR = ("nvidia_gtx_1660_windows", "amd_rx_6600_windows", "nvidia_gtx_1650_windows")


@pytest.mark.parametrize("name", SMALL_BAR)
def test_small_bar_is_kept_for_those_who_ask(name: str) -> None:
    profile = PROFILES[name]
    window = next(
        i
        for i, t in enumerate(profile.memory_types)
        if profile.memory_heaps[t.heap_index].size <= 256 << 20 and not t.property_flags & SPECIAL
    )
    assert rank(profile, MemoryTypeFlags.DEVICE_LOCAL)[-1] == window
    assert rank(profile, UPLOAD)[-1] == window
    assert rank(profile, MemoryTypeFlags.DEVICE_LOCAL | UPLOAD)[0] == window


def test_resizable_bar_is_a_heap_like_another() -> None:
    profile = PROFILES["nvidia_rtx_4060"]
    first, second = rank(profile, MemoryTypeFlags.DEVICE_LOCAL)[:2]
    assert properties(profile, first) == MemoryProperty.DEVICE_LOCAL
    assert properties(profile, second) & MemoryProperty.DEVICE_LOCAL, "all of video memory is mappable here"


def test_special_memory_alone_is_refused_with_reasons() -> None:
    profile = PROFILES["amd_rx_5500_xt_radv"]
    bits = sum(1 << i for i, t in enumerate(profile.memory_types) if t.property_flags & SPECIAL)
    with pytest.raises(InvalidArgumentError, match="DEVICE_UNCACHED_AMD"):
        rank(profile, MemoryTypeFlags.DEVICE_LOCAL, bits)


def test_missing_property_is_named() -> None:
    profile = PROFILES["apple_m2_moltenvk"]
    with pytest.raises(InvalidArgumentError, match=re.escape("lacks HOST_VISIBLE|HOST_COHERENT")):
        rank(profile, UPLOAD, 0b001)
    with pytest.raises(InvalidArgumentError, match="not among the type bits"):
        rank(profile, UPLOAD, 0)


@pytest.mark.parametrize("flags", [0x80, -2])
def test_unknown_flags_are_refused(flags: int) -> None:
    with pytest.raises(InvalidArgumentError, match="bits within 0x7f"):
        rank(PROFILES["lavapipe_mesa_22_3_6"], flags)  # type: ignore[arg-type]


def test_a_refusal_names_properties_and_heaps() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        rank(PROFILES["lavapipe_mesa_22_3_6"], UPLOAD, 0)
    assert "type 0 (DEVICE_LOCAL|HOST_VISIBLE|HOST_COHERENT|HOST_CACHED, heap 0 of 2.0 GiB)" in str(caught.value)


@pytest.mark.slow
@given(data=st.data())
def test_only_fitting_types_are_ever_picked(data: st.DataObject) -> None:
    heaps = tuple(
        MemoryHeap(size, flags)
        for size, flags in data.draw(
            st.lists(st.tuples(st.integers(0, 1 << 36), st.integers(0, 3)), min_size=1, max_size=4)
        )
    )
    types = tuple(
        MemoryType(flags, heap)
        for flags, heap in data.draw(
            st.lists(st.tuples(st.integers(0, 0x1FF), st.integers(0, len(heaps) - 1)), max_size=12)
        )
    )
    bits = data.draw(st.integers(0, EVERY))
    flags = MemoryTypeFlags(data.draw(st.integers(0, 0x7F)))
    asks = flags & (READBACK)
    need = (MemoryProperty.HOST_VISIBLE if asks else 0) | (int(flags) & MemoryProperty.HOST_COHERENT)

    def fits(index: int) -> bool:
        props = types[index].property_flags
        return bool(bits >> index & 1 and not props & SPECIAL and props & need == need)

    try:
        ranked = rank_memory_types(types, heaps, bits, flags)
    except PumiceError:
        ranked = ()
    assert sorted(ranked) == [i for i in range(len(types)) if fits(i)]

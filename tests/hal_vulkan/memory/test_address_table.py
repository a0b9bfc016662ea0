"""Device addresses that no live buffer has are reported: past an end, across one, freed, made up."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from support.devices.device_images import glsl, run
from support.devices.host_buffers import HOST

from pumice.hal_vulkan.device import Device
from pumice.hal_vulkan.instance.driver import Driver
from pumice.hal_vulkan.memory.address_table import AddressTable
from pumice.spirv.instrument.addresses import MAX_RANGES, TABLE_WORDS
from pumice.spirv.instrument.checks import SanitizeOptions
from pumice.spirv.instrument.passes import instrument
from pumice.spirv.instrument.reports import Report, ReportKind

pytestmark = pytest.mark.vulkan

SOURCE = """
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
layout(local_size_x = 1) in;
layout(buffer_reference, buffer_reference_align = 4) buffer P { uint v; uint w; };
layout(buffer_reference, buffer_reference_align = 4) buffer Q { uvec2 v; };
layout(binding = 0) buffer B { uvec2 at; uint is_wide; uint got; };
void main() { got = 1; if (is_wide == 0) got = P(at).v; else { uvec2 two = Q(at).v; got = two.x + two.y; } }
"""


def test_addresses_outside_of_live_buffers_are_reported(driver: Driver) -> None:
    found = instrument(glsl(SOURCE), guard=False, sanitize=SanitizeOptions())
    assert found is not None
    with Device(driver) as device:
        if not device.device_addresses:
            pytest.skip("no device addresses")
        before = device.create_buffer(100, memory_type=HOST)
        table = device.allocator.take_address_table()
        control = device.create_buffer(16, memory_type=HOST)
        report = device.create_buffer(found.report_bytes, memory_type=HOST)
        executable = device.create_executable(found.code)

        def reported(address: int, *, wide: bool = False) -> Report | None:
            control.write(struct.pack("<QII", address, wide, 0))
            report.write(bytes(found.report_bytes))
            report.write(struct.pack("<Q", table), 4 * TABLE_WORDS[0])
            run(device, executable.pipeline(), [control, report])
            said = Report.read(report.read(), found.sites)
            got = struct.unpack("<I", control.read(12, 4))[0]
            assert got == (0 if said else 7 + 7 * wide)
            if said is not None:
                assert (said.site.kind, said.limit) == (ReportKind.WILD_ADDRESS, 8 if wide else 4)
                assert (said.site.rule, said.index) == ("wild", address)
            return said

        others = [device.create_buffer(100, memory_type=HOST) for _ in range(37)]
        for one in (before, *others):
            one.write(np.full(one.size // 4, 7, np.uint32).tobytes())
            assert reported(one.device_address) is None
            assert reported(one.device_address + one.size - 4) is None
            assert reported(one.device_address + one.size) is not None
            assert reported(one.device_address + one.size - 8, wide=True) is None
            assert reported(one.device_address + one.size - 4, wide=True) is not None
        assert reported(1 << 47) is not None
        assert reported(16) is not None
        freed = others[5].device_address
        others[5].close()
        device.wait_idle(20)
        device.compute_queue.retire()
        assert reported(freed) is not None
        assert reported(others[6].device_address) is None
        device.allocator.give_back_address_table()


def test_more_ranges_than_shaders_search_give_no_verdict() -> None:
    ffi = pytest.importorskip("pumice.hal_vulkan.vulkan.functions").ffi
    memory = ffi.new("char[]", 16 * (1 + (1 << 16)))
    table = AddressTable(memory)
    for number in range(MAX_RANGES):
        table.add(4096 * number, 10)
    table.publish()
    assert struct.unpack("<II", bytes(ffi.buffer(memory, 8))) == (MAX_RANGES, 0)
    table.add(1 << 40, 10)
    table.publish()
    assert struct.unpack("<II", bytes(ffi.buffer(memory, 8)))[1] == 1
    table.remove(0)
    for _ in range(40):
        table.publish()
    head, is_unknown = struct.unpack("<II", bytes(ffi.buffer(memory, 8)))
    assert (head & MAX_RANGES, is_unknown) == (MAX_RANGES, 0)
    first = 1 + (head >> 12)
    ranges = np.frombuffer(ffi.buffer(memory), np.uint64)[2 * first :][: 2 * MAX_RANGES].reshape(-1, 2)
    assert (ranges[:, 0] == [*range(4096, 4096 * MAX_RANGES, 4096), 1 << 40]).all()
    assert (ranges[:, 1] - ranges[:, 0] == 12).all()

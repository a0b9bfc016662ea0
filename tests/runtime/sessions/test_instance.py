"""Instances: each device opened once, for all sessions of it, and closed with it."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import pumice
from pumice.status import ClosedError, NotFoundError
from pumice.vm.assembly.assembler import assemble
from pumice.vm.execution.bytecode_module import BytecodeModule

pytestmark = pytest.mark.vulkan

IDENTITY = """
vm.module @program
vm.export @identity
vm.func @identity(%r0: !hal.buffer_view) -> (!hal.buffer_view)
    attributes {"iree.abi.declaration" = "sync func @identity(%x: tensor<4xf32>) -> (%y: tensor<4xf32>)"} {
  vm.return %r0
}
""".replace("\n    attributes", " attributes")


def identity() -> BytecodeModule:
    return BytecodeModule(assemble(IDENTITY))


def test_a_device_is_opened_once_whatever_it_is_called() -> None:
    with pumice.Instance() as instance:
        assert instance.devices == ()
        first = instance.device("vulkan://0")
        assert instance.device("vulkan://0") is first
        assert instance.device(first.uri) is first
        assert instance.device(f"vulkan://{first.name}") is first
        assert instance.devices == (first,)
        assert pumice.live_objects()["device"] == 1
        assert first.name in repr(instance)
    assert first.is_closed and instance.is_closed and instance.devices == ()
    assert repr(instance) == "<closed Instance>"


def test_threads_get_the_same_device() -> None:
    with pumice.Instance() as instance:
        results: list[pumice.Device] = []
        threads = [threading.Thread(target=lambda: results.append(instance.device())) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(results) == 4 and set(results) == {instance.device()}


def test_a_device_that_was_closed_is_opened_anew() -> None:
    with pumice.Instance() as instance:
        first = instance.device("vulkan://0")
        first.close()
        assert instance.devices == ()
        second = instance.device("vulkan://0")
        assert second is not first and not second.is_closed


def test_what_is_there_to_open() -> None:
    with pumice.Instance() as instance:
        assert [one.name for one in instance.available] == [one.name for one in pumice.list_devices()]
        assert instance.devices == ()
        with pytest.raises(NotFoundError, match="no device is 'vulkan://none such'"):
            instance.device("vulkan://none such")


def test_a_closed_instance_opens_nothing() -> None:
    instance = pumice.Instance()
    instance.close()
    instance.close()
    with pytest.raises(ClosedError, match="this instance was closed"):
        instance.device()
    with pytest.raises(ClosedError, match="this instance was closed"):
        pumice.Session("vulkan", instance=instance)
    with pytest.raises(ClosedError, match="this instance was closed"):
        pumice.Session(instance=instance)


def test_a_close_that_fails_is_continued(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = pumice.Instance()
    first, second = instance.device("vulkan://0"), instance.device("reference")
    with monkeypatch.context() as patch:
        patch.setattr(first.hal, "close", lambda timeout: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            instance.close()
    assert second.is_closed and not first.is_closed
    instance.close()
    assert first.is_closed


def test_sessions_of_an_instance_share_devices_and_arrays() -> None:
    with pumice.Instance() as instance:
        one, other = pumice.Session(instance=instance), pumice.Session("vulkan", instance=instance)
        with one, other:
            assert one.device is other.device and one.instance is instance
            one.append_module(identity())
            other.append_module(identity())
            x = np.arange(4, dtype=np.float32)
            passed = other.call("program.identity", one.call("program.identity", x))
        # Sessions come and go; the device is the instance's.
        assert not instance.devices[0].is_closed
        np.testing.assert_array_equal(passed.numpy(), x)
    assert passed.is_closed


def test_a_session_survives_its_instance_being_closed_first() -> None:
    instance = pumice.Instance()
    session = pumice.Session(instance=instance)
    session.append_module(identity())
    session.call("program.identity", [1, 2, 3, 4])
    instance.close()
    with pytest.raises(ClosedError, match="closed"):
        session.call("program.identity", [1, 2, 3, 4])
    session.close()


def test_a_session_without_an_instance_has_one_of_its_own() -> None:
    session = pumice.Session("vulkan")
    device = session.device
    assert session.instance.devices == (device,)
    session.close()
    assert device.is_closed and session.instance.is_closed
    with pumice.open_device() as mine:
        session = pumice.Session(mine)
        assert session.instance.devices == ()
        session.close()
        assert not mine.is_closed

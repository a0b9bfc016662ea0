"""Programs on the reference device, through sessions: no Vulkan, targets of a module, asynchronous calls."""

from __future__ import annotations

import asyncio
import os
import struct
import subprocess
import sys
import time
from contextlib import aclosing
from pathlib import Path

import numpy as np
import pytest
from support.waiting import Blocked, until

import pumice
from pumice.formats.element_type import ElementType
from pumice.hal.programs.fence import HalFence
from pumice.hal_reference.device import Device
from pumice.runtime.modules.parameters.module import io_parameters_module
from pumice.runtime.parameters.index import ParameterIndex
from pumice.status import (
    ClosedError,
    DeadlineExceededError,
    IncompatibleError,
    InvalidArgumentError,
    PumiceError,
    UnavailableError,
    UnimplementedError,
)
from pumice.vm.types.buffer import VmBuffer

ADD = """
func.func public @main(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>) -> (tensor<2x4xf32>, tensor<2x3xf32>) {
  %c = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %d = stablehlo.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %e = stablehlo.multiply %a, %d : tensor<2x3xf32>
  return %c, %e : tensor<2x4xf32>, tensor<2x3xf32>
}
func.func public @identity(%a: tensor<4xi4>) -> tensor<4xi4> { return %a : tensor<4xi4> }
func.func public @joined(%a: tensor<2xf32>) -> tensor<2xf32> {
  %e = stablehlo.constant dense<> : tensor<0xf32>
  %r = stablehlo.concatenate %e, %a, dim = 0 : (tensor<0xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}
func.func public @narrow(%a: tensor<5xi4>) -> tensor<5xi4> {
  %b = stablehlo.add %a, %a : tensor<5xi4>
  return %b : tensor<5xi4>
}
"""
SLOW = """
func.func public @main(%n: tensor<i32>) -> tensor<i32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r = stablehlo.while(%i = %zero) : tensor<i32>
   cond {
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j : tensor<i32>
  }
  return %r : tensor<i32>
}
"""
A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


@pytest.fixture(scope="module")
def both() -> bytes:
    return pumice.compile(ADD, targets=("vulkan", "reference"))


def check(session: pumice.Session) -> None:
    product, scaled = session.call("module.main", A, B)
    np.testing.assert_allclose(product.numpy(), A @ B, rtol=1e-6)
    np.testing.assert_array_equal(scaled.numpy(), A * np.arange(1, 7, dtype=np.float32).reshape(2, 3))


@pytest.mark.parametrize("device", ["reference", pytest.param("vulkan", marks=pytest.mark.vulkan)])
def test_a_module_of_two_targets_runs_on_either(both: bytes, device: str) -> None:
    with pumice.Session(device=device) as session:
        session.load(both)
        check(session)
        np.testing.assert_array_equal(session.call("module.joined", A[0, :2]).numpy(), A[0, :2])
        four = np.array([-8, 7, 0, -1, 3], ElementType.INT_4.dtype)
        doubled = session.call("module.narrow", four)
        unpacked = ElementType.INT_4.unpack(doubled.buffer.read(0, 3), (5,))
        np.testing.assert_array_equal(unpacked.astype(np.int8), [0, -2, 0, -2, 6])  # modulo 16


@pytest.mark.vulkan
@pytest.mark.parametrize("order", [["reference", "vulkan"], ["vulkan", "reference"]])
def test_with_several_devices_the_first_that_takes_a_format_counts(both: bytes, order: list[str]) -> None:
    with pumice.Session(device=order) as session:
        session.load(both)
        check(session)
        (result, _) = session.call("module.main", A, B)
        assert result.device is session.devices[0]
    only = pumice.compile(ADD, targets=("vulkan",))
    with pumice.Session(device=order) as session:
        session.load(only)
        arrays = [session.devices[0].asarray(array) for array in (A, B)]
        product, _ = session.call("module.main", *arrays)
        np.testing.assert_allclose(product.numpy(), A @ B, rtol=1e-6)


def test_a_module_for_another_device_says_so() -> None:
    """Checks that the error names the module's targets, and how to get the missing one."""
    wanted = r"executables of the format vulkan-spirv-fb, which no device here runs.*--target vulkan,reference"
    with pumice.Session(device="reference") as session, pytest.raises(UnavailableError, match=wanted):
        session.load(pumice.compile(ADD))


@pytest.mark.vulkan
def test_a_module_for_the_reference_device_says_so_on_vulkan() -> None:
    wanted = r"executables of the format pumice-reference, which no device here runs.*--target vulkan,reference"
    with pumice.Session(device="vulkan") as session, pytest.raises(UnavailableError, match=wanted):
        session.load(pumice.compile(ADD, targets=["reference"]))


def test_what_another_compiler_made_for_vulkan_says_so() -> None:
    wanted = "compiled for Vulkan devices, and this session has the reference device"
    with pumice.Session(device="reference") as session, pytest.raises(IncompatibleError, match=wanted):
        session.load(Path(__file__).parents[2] / "examples" / "chain" / "smooth.vmfb")


@pytest.mark.parametrize("targets", [(), ("metal",), ("vulkan", "cuda")])
def test_targets_are_known(targets: tuple[str, ...]) -> None:
    with pytest.raises(InvalidArgumentError, match="expected targets among vulkan, reference"):
        pumice.compile(ADD, targets=targets)


@pytest.mark.slow
def test_no_vulkan_is_loaded(tmp_path: Path) -> None:
    """Checks that neither the library nor the binding nor their users are loaded."""
    program = tmp_path / "add.mlir"
    program.write_text(ADD)
    script = f"""
import sys, numpy as np, pumice
module = pumice.compile(open({str(program)!r}).read(), targets=("reference",))
with pumice.Session(device="reference") as session:
    session.load(module)
    a, b = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)
    first, _ = session.call("module.main", a, session.device.asarray(b))
    assert (first.numpy() == 3).all()
    with session.profile():
        session.call("module.main", a, b)
    fence = pumice.Fence([(session.device.hal.create_semaphore(1), 1)])
    session.await_fence(fence, 10)
    names = [name for name in sys.modules if "vulkan" in name]
assert all(name == "pumice.compiler.targets.vulkan" for name in names), names
"""
    environment = dict(os.environ, PUMICE_VULKAN_LIBRARY=str(tmp_path / "none.so"), PUMICE_CACHE_DIR=str(tmp_path))
    subprocess.run([sys.executable, "-c", script], env=environment, check=True, timeout=120)

    def run(device: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", "from pumice.tools.cli import main; main(prog_name='pumice')", "run"]
        flags = ["--input=2x3xf32=1", "--input=3x4xf32=1", "--expected_output=2x4xf32=3", "--expected_output=(ignored)"]
        command += [str(program), "--device", device, "--function=main", *flags]
        return subprocess.run(command, check=False, env=environment, capture_output=True, text=True, timeout=120)

    done = run("reference")
    assert done.returncode == 0 and "[SUCCESS]" in done.stdout and "ran on reference" in done.stderr, done
    done = run("vulkan")
    assert done.returncode != 0 and "PUMICE_VULKAN_LIBRARY" in done.stderr, done


def test_the_environment_names_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUMICE_DEVICE", "reference")
    with pumice.Instance() as instance, pumice.Session(instance=instance) as session:
        assert (session.device.name, session.device.uri) == ("reference", "reference")
        assert instance.device("reference") is session.device and repr(session.device) == (
            "<pumice.Device 'reference' (cpu)>"
        )


def test_what_only_vulkan_has_says_so() -> None:
    with pumice.open_device("reference") as device:
        for use in (
            lambda: device.profile,
            lambda: device.vulkan,
            lambda: device.load_kernel("x.comp"),
            lambda: pumice.Session(device).allocator,
        ):
            with pytest.raises(UnimplementedError, match="the reference device has no Vulkan"):
                use()
        array = device.zeros((2, 3), np.int16)
        array[1] = 7
        assert array.copy().numpy().tolist() == [[0, 0, 0], [7, 7, 7]] and array[1].map().base is not None


@pytest.fixture
def slow() -> bytes:
    return pumice.compile(SLOW, targets=("reference",))


def test_calls_in_the_background(both: bytes, slow: bytes) -> None:
    async def main() -> None:
        with pumice.Session(device="reference", options=pumice.SessionOptions(concurrent=True)) as session:
            session.load(both)
            f = session.lookup("module.main")
            results = await asyncio.gather(*(f.call_async(A * n, B) for n in range(8)))
            for n, (product, _) in enumerate(results):
                np.testing.assert_allclose(product.numpy(), (A * n) @ B, rtol=1e-6, atol=1e-6)
            count = 0
            async with aclosing(f.stream(((A + n, B) for n in range(20)), depth=4)) as stream:
                async for product, _ in stream:
                    np.testing.assert_allclose(product.numpy(), (A + count) @ B, rtol=1e-5, atol=1e-5)
                    count += 1
            assert count == 20
            assert f.submit(A, B).result()[0].shape == (2, 4)

    asyncio.run(main())


@pytest.mark.slow
def test_a_timeout_ends_a_loop(slow: bytes) -> None:
    with pumice.Session(device="reference") as session:
        session.load(slow)
        assert session.call("module.main", np.int32(50)).item() == 50
        begin = time.monotonic()
        with pytest.raises(DeadlineExceededError):
            session.call("module.main", np.int32(1 << 30), timeout=0.3)
        assert time.monotonic() - begin < 20
        assert session.call("module.main", np.int32(3)).item() == 3


@pytest.mark.slow
def test_a_device_closes_under_running_work(slow: bytes) -> None:
    device = pumice.open_device("reference")
    session = pumice.Session(device)
    session.load(slow)
    call = Blocked(lambda: session.call("module.main", np.int32(1 << 30)))
    time.sleep(0.2)
    device.close()
    call.join(30)
    assert isinstance(call.error, PumiceError)
    with pytest.raises(ClosedError):
        session.call("module.main", np.int32(1))
    session.close()


def test_a_closed_device_leaves_no_thread() -> None:
    devices = [Device() for _ in range(20)]
    for device in devices:
        device.compute_queue.submit(())
        device.wait_idle()
    threads = [device.compute_queue._thread for device in devices]
    for device in devices:
        device.close()
        device.close()
    until(
        lambda: not any(thread is not None and thread.is_alive() for thread in threads), 0.5
    )  # idle ones live for 1 s


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_child_gets_an_error_and_opens_its_own(both: bytes) -> None:
    script = """
import os, sys, numpy as np, pumice
module = sys.stdin.buffer.read()
session = pumice.Session(device="reference")
session.load(module)
a, b = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)
session.call("module.main", a, b)
child = os.fork()
if not child:
    try:
        session.call("module.main", a, b)
        os._exit(1)
    except pumice.PumiceError as error:
        assert "forked" in str(error), error
    fresh = pumice.Session(device="reference")
    fresh.load(module)
    os._exit(0 if (fresh.call("module.main", a, b)[0].numpy() == 3).all() else 2)
assert os.waitpid(child, 0)[1] == 0
session.call("module.main", a, b)
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], input=both, check=True, timeout=120)


def test_parameters_are_loaded(tmp_path: Path) -> None:
    """Checks that the module ``io_parameters`` fills buffers of any device."""
    values = np.arange(5, dtype=np.float32)
    module = io_parameters_module({"": ParameterIndex.from_arrays({"a": values})})
    load = module.exports["load"][0].bind(module.new_state())
    table, text, spans = struct.pack("<II", 0, 1), b"a", struct.pack("<QQQ", 4, 0, 16)
    with Device() as device:
        done = HalFence(device)
        keys = [VmBuffer.wrap(data) for data in (table, text, spans)]
        (buffer,) = load(device, -1, None, done, None, -1, 0x30, 0xC03, *keys).values()
        done.wait_until(time.monotonic() + 30)
        np.testing.assert_array_equal(np.frombuffer(buffer.read(), np.float32), values[1:])

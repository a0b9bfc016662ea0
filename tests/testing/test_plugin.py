"""The plug-in in pytest runs of its own, within this process: what fails, what is skipped, what is said."""

from __future__ import annotations

import functools
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.pytester import SysModulesSnapshot
from click.testing import CliRunner
from support.devices.features import require_cut_loops

from pumice.hal_vulkan.instance.driver import Driver
from pumice.runtime.opening import open_device
from pumice.status import DeviceLostError
from pumice.testing import plugin
from pumice.testing.requirements import driver_text
from pumice.tools.cli import main

pytest_plugins = ["pytester"]
pytestmark = [pytest.mark.vulkan, pytest.mark.usefixtures("driver")]

SCALE = """
#version 450
layout(local_size_x = 64) in;
layout(constant_id = 3) const int last = 0;
layout(binding = 0) readonly buffer In { float x[]; };
layout(binding = 1) writeonly buffer Out { float y[]; };
layout(push_constant) uniform Push { float factor; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < x.length()) y[i] = x[i] * factor + (i >= 64 && i < last ? 1.0 : 0.0);
}
"""
COUNT = """
#version 450
layout(local_size_x = 1) in;
layout(binding = 0) buffer Out { uint y[]; };
layout(push_constant) uniform Push { uint n; };
void main() { uint s = 0; for (uint i = 0; i < n; ++i) s += i ^ (s << 1); y[gl_GlobalInvocationID.x] = s; }
"""
COPY = """
#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0, r32f) readonly uniform image2D source;
layout(binding = 1, r32f) writeonly uniform image2D target;
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    imageStore(target, at, imageLoad(source, at));
}
"""
HEAD = """
import numpy as np, pumice, pytest
from pumice.testing import assert_close
X = np.linspace(0, 1, 128, dtype=np.float32)
kept = []
"""


@pytest.fixture(scope="module", autouse=True)
def _modules_stay() -> Iterator[None]:
    """Of what a run imports only its tests are forgotten: pytester would have each have pumice's classes anew."""
    with pytest.MonkeyPatch.context() as patch:
        snapshot = functools.partial(SysModulesSnapshot, lambda name: not name.startswith("test_"))
        patch.setattr(pytest.Pytester, "_Pytester__take_sys_modules_snapshot", lambda self: snapshot())
        yield


@pytest.fixture(autouse=True)
def _alone(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with kernels, and neither other plug-ins nor the settings of the run around it."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    for name in ("CI", "BUILD_NUMBER", "PUMICE_DEVICE", "PUMICE_VALIDATION", "PYTEST_ADDOPTS"):
        monkeypatch.delenv(name, raising=False)
    pytester.makeini("[pytest]\nfilterwarnings = error")
    for name, text in {"scale.comp": SCALE, "count.comp": COUNT, "copy.comp": COPY}.items():
        (pytester.path / name).write_text(text.lstrip())


def run(pytester: pytest.Pytester, body: str, *options: str, validation: bool = False) -> pytest.RunResult:
    """Runs a file of tests on lavapipe."""
    pytester.makepyfile(HEAD + body)
    switch = "--pumice-validation" if validation else "--no-pumice-validation"
    fixed = ("-p", "no:cacheprovider", "--strict-markers")
    device = () if "--pumice-device" in options else ("--pumice-device", "vulkan")
    return pytester.runpytest_inprocess(*fixed, *device, switch, "-rA", *options, plugins=[plugin])


def name_of(driver: Driver) -> str:
    """The name of the best device, which the plug-in is told to take."""
    return driver.profiles[driver.select()].name


def outcomes(result: pytest.RunResult) -> dict[str, str]:
    """How each test ended: ``failed``, ``passed``, ``skipped``, or ``error`` after it."""
    lines = "\n".join(result.outlines)
    return {name: outcome.lower() for outcome, name in re.findall(r"^(PASSED|FAILED|ERROR) \S+::(\w+)", lines, re.M)}


def test_a_device_that_was_lost_before_was_lost_by_no_test(pytester: pytest.Pytester) -> None:
    """As in a run of pytest within a process that had lost one."""
    with open_device("vulkan") as device:
        device.vulkan.lose(DeviceLostError("by this test, on purpose"))
        result = run(pytester, "def test_good(pumice_device):\n    pumice_device.asarray(X)\n")
    assert outcomes(result) == {"test_good": "passed"}
    result.stdout.no_fnmatch_line("*was lost by*")


@pytest.mark.sample(3, "several runs")
def test_a_fault_fails_the_test_that_caused_it_and_no_other(pytester: pytest.Pytester, driver: Driver) -> None:
    require_cut_loops(driver)
    result = run(
        pytester,
        """
def test_good(pumice_kernel, pumice_device):
    x = pumice_device.asarray(X)
    y = pumice_kernel("scale.comp")(x, pumice_device.empty(128), factor=2.0)
    assert_close(y, X * 2)

def test_good_image(pumice_kernel, pumice_device):
    image = pumice_device.asimage(X.reshape(8, 16))
    assert_close(pumice_kernel("copy.comp")(image, pumice_device.empty_image((8, 16), "r32float")), X.reshape(8, 16))

def test_wrong(pumice_kernel):
    y = pumice_kernel("scale.comp", specialization={3: 128})(X, pumice.empty(128), factor=2.0)
    assert_close(y, X * 2)

def test_leaves_a_buffer(pumice_device):
    kept.append(pumice_device.asarray(X))

def test_after_it(pumice_device):
    assert pumice_device.asarray(X).numpy()[0] == 0

def test_cut_loop(pumice_kernel, pumice_device):
    pumice_kernel("count.comp")(pumice_device.empty(1, np.uint32), n=70_000)  # nobody reads it

def test_loop(pumice_kernel, pumice_device):
    pumice_kernel("count.comp")(pumice_device.empty(1, np.uint32), n=60_000)

def test_loses_the_device(pumice_device):
    pumice_device.vulkan.fn.vkQueueSubmit = lambda *arguments: -4
    pumice_device.asarray(X).copy()

def test_with_a_fresh_one(pumice_device):
    assert pumice_device.asarray(X).copy().numpy()[0] == 0
""",
    )
    assert outcomes(result) == {
        "test_good": "passed",
        "test_good_image": "passed",
        "test_wrong": "failed",
        "test_leaves_a_buffer": "error",
        "test_after_it": "passed",
        "test_cut_loop": "failed",
        "test_loop": "passed",
        "test_loses_the_device": "failed",
        "test_with_a_fresh_one": "passed",
    }
    text = result.stdout.str()
    assert "NotCloseError: 64 of 128 elements differ (50 %)" in text
    assert "native objects left behind: 1 buffer; close what the test opens" in text
    assert "nobody read this result: DATA_LOSS" in text and "the driver ended the loop at" in text
    (lost,) = [line for line in result.outlines if line.startswith("this test lost the device.")]
    assert "VK_ERROR_DEVICE_LOST" in lost and "Last test that left it well:" in lost and "::test_loop." in lost
    (summary,) = [
        line for line in result.outlines if line.startswith(f"pumice: {name_of(driver)}") and "was lost" in line
    ]
    assert "::test_loses_the_device; later tests had a fresh device" in summary


@pytest.mark.sample(3, "several runs")
def test_the_last_test_of_a_module_is_asked_what_it_leaves(pytester: pytest.Pytester) -> None:
    """Though its teardown closes the device, and what the fixtures of class and module hold is not its own."""
    for name, body in {
        "leaks": 'def test_leaks(pumice_device):\n    kept.append(pumice_device.load_kernel("scale.comp"))\n',
        "fixtures": """
@pytest.fixture(scope="module")
def kernel(pumice_device):
    with pumice_device.load_kernel("scale.comp") as kernel:
        yield kernel, [pumice_device.asarray(X) for _ in range(3)]

@pytest.fixture(scope="class")
def offset(pumice_device):
    return pumice_device.asarray(X)

@pytest.fixture
def x(pumice_device):
    return pumice_device.asarray(X)

class TestInside:
    def test_own_arrays(self, kernel, offset, x, pumice_session):
        self.y = kernel[0](x, pumice.empty(128), factor=2.0)

    def test_less_than_the_fixtures_hold(self, kernel, offset, x):
        kept.append(x)

class TestHeld:
    @pytest.fixture(autouse=True)
    def make(self, pumice_device):
        self.x = pumice_device.asarray(X)

    def test_self(self, kernel):
        assert_close(kernel[0](self.x, pumice.empty(128), factor=2.0), X * 2)
""",
        "fails": """
def test_fails(pumice_device):
    kept.append(pumice_device.asarray(X))
    pytest.fail("for a reason")
""",
        "fixture_fails": """
@pytest.fixture
def broken(pumice_device):
    kept.append(pumice_device.asarray(X))
    yield
    raise RuntimeError("for a reason")

def test_broken(broken): pass
""",
        "unittest": """
import unittest

class TestCase(unittest.TestCase):
    @pytest.fixture(autouse=True)
    def make(self, pumice_device):
        self.x = pumice_device.asarray(X)

    def test_case(self):
        self.y = self.x.copy()
""",
        "limited": """
@pytest.mark.limit_live("1 buffer")
def test_limited(pumice_device):
    kept.append(pumice_device.asarray(X))
""",
        "lost": """
def test_lost(pumice_device):
    pumice_device.vulkan.fn.vkQueueSubmit = lambda *arguments: -4
    kept.append(pumice_device.asarray(X).copy())
""",
        "looks_up": """
@pytest.mark.timeout_device(60)
def test_looks_up(request):
    kept.append(request.getfixturevalue("pumice_device").asarray(X))
""",
    }.items():
        pytester.makepyfile(**{f"test_{name}": HEAD + body})
    result = run(pytester, "def test_good(pumice_device):\n    pumice_device.asarray(X)\n")
    result.assert_outcomes(passed=9, failed=2, errors=4)
    assert set(re.findall(r"^ERROR \S+::(\w+) - Failed", "\n".join(result.outlines), re.M)) == {
        "test_leaks",
        "test_less_than_the_fixtures_hold",
        "test_looks_up",
    }
    text = result.stdout.str()
    left = re.findall(r"^native objects left behind: ([^;]+);", text, re.M)
    assert sorted(left) == ["1 buffer", "1 buffer", "1 pipeline"]


def test_a_validation_message_fails_the_test_that_caused_it(pytester: pytest.Pytester, driver: Driver) -> None:
    if not driver.validation:
        pytest.skip("runs with PUMICE_VALIDATION=1 and the Khronos validation layers")
    result = run(
        pytester,
        """
def test_overrun(pumice_device):
    hal = pumice_device.vulkan
    buffer = hal.create_buffer(64)
    hal.set_name("VK_OBJECT_TYPE_BUFFER", buffer.handle, "the positions")
    with hal.create_command_buffer() as commands, buffer:
        commands.begin()
        hal.fn.vkCmdFillBuffer(commands._handle, buffer.handle, 1 << 40, 64, 0)

def test_next(pumice_device):
    pumice_device.asarray(X).copy().numpy()
""",
        validation=True,
    )
    assert outcomes(result) == {"test_overrun": "failed", "test_next": "passed"}
    result.stdout.fnmatch_lines(
        ["*VUID-vkCmdFillBuffer-dstOffset-00024 (objects: *the positions*", "*1 failed, 1 passed*"]
    )
    profile = driver.profiles[driver.select()]
    assert any(
        line.startswith(f"pumice: {profile.name}, driver {driver_text(profile)}")
        and profile.driver_info in line
        and re.search(r"Vulkan 1\..*VK_LAYER_KHRONOS_validation\)$", line)
        for line in result.outlines
    )


@pytest.mark.sample(3, "several runs")
def test_markers(pytester: pytest.Pytester, driver: Driver) -> None:
    profile = driver.profiles[driver.select()]
    result = run(
        pytester,
        """
cache = {}

@pytest.mark.gpu
def test_gpu(): pass

@pytest.mark.needs("timelineSemaphore", "VK_KHR_of_nobody")
def test_needs(): pass

@pytest.mark.needs("timelineSemaphore")
@pytest.mark.skip_driver("llvmpipe<1")
def test_has(pumice_device): pass

@pytest.mark.needs("timelineSemafore")
def test_misspelt(): pass

@pytest.mark.skip_driver("{driver}>=1")
def test_not_there(): pass

@pytest.mark.limit_live("1 buffer")
def test_allowed(pumice_device):
    kept.append(pumice_device.asarray(X))

@pytest.mark.limit_live("1 buffer")
def test_too_many(pumice_device):
    kept.extend(pumice_device.asarray(X) for _ in range(3))

@pytest.mark.limit_live("0 buffers", warmups=1)
def test_fills_a_cache(pumice_device):
    cache.setdefault(0, pumice_device.asarray(X))

@pytest.mark.timeout_device(0.05)
def test_too_slow(pumice_kernel, pumice_device):
    pumice_kernel("count.comp")(pumice_device.empty(4000, np.uint32), n=20_000, groups=4000)

@pytest.mark.timeout_device(100)
def test_fast_enough(pumice_kernel, pumice_device):
    assert pumice_kernel("count.comp")(pumice_device.empty(1, np.uint32), n=1).numpy() == 0
""".replace("{driver}", profile.driver_name),
    )
    assert outcomes(result) == {
        "test_has": "passed",
        "test_misspelt": "error",
        "test_allowed": "passed",
        "test_too_many": "error",
        "test_fills_a_cache": "passed",
        "test_too_slow": "failed",
        "test_fast_enough": "passed",
    }
    result.assert_outcomes(passed=5, failed=1, errors=2, skipped=3)
    text = result.stdout.str()
    result.stdout.re_match_lines([r"SKIPPED \[1\] test_\w+\.py:\d+: needs a GPU"])
    assert f"needs a GPU; the device is {profile.name}" in text and "lacks VK_KHR_of_nobody" in text
    assert f"not for {profile.driver_name}>=1; the driver is {driver_text(profile)}" in text
    assert "did you mean timelineSemaphore" in text
    assert "native objects left behind: 2 buffers;" in text
    assert "took more than 0.05 s, the limit of timeout_device" in text and "In flight: count" in text


@pytest.mark.parametrize(
    "mark",
    [
        "limit_live",
        "limit_live(2)",
        'limit_live("2 buffers", warmups="1")',
        'limit_live("2 buffers", runs=1)',
        "timeout_device",
        "timeout_device(0)",
        "timeout_device('5')",
        "needs",
        "skip_driver(23)",
        "gpu(1)",
    ],
)
def test_arguments_of_markers_are_checked(pytester: pytest.Pytester, mark: str) -> None:
    result = run(pytester, f"@pytest.mark.{mark}\ndef test_it(): pass\n")
    assert outcomes(result) == {"test_it": "error"}
    name = mark.partition("(")[0]
    assert re.search(rf"^the marker {name}\(.*\): expected {name}", result.stdout.str(), re.M)


@pytest.mark.sample(3, "several runs")
def test_what_wider_fixtures_make_is_theirs_and_made_again_after_a_loss(
    pytester: pytest.Pytester, driver: Driver
) -> None:
    result = run(
        pytester,
        """
@pytest.fixture(scope="module")
def kernel(pumice_device):
    with pumice_device.load_kernel("scale.comp") as kernel:
        yield kernel

@pytest.fixture(scope="session")
def own():
    with pumice.open_device() as device:
        assert device.profile.name == "{device}"  # as the plug-in was told
        yield device

@pytest.mark.parametrize("turn", range(2))
def test_it(turn, kernel, own):
    assert_close(kernel(X, pumice.empty(128), factor=3), X * 3)
    own.asarray(X)

def test_lost(kernel):
    kernel.device.vulkan.fn.vkQueueSubmit = lambda *arguments: -4
    kernel(X, pumice.empty(128), factor=3)

def test_again(kernel, own):
    assert_close(kernel(X, pumice.empty(128), factor=4), X * 4)

class TestInside:
    def test_again(self, kernel):
        assert_close(kernel(X, pumice.empty(128), factor=5), X * 5)
""".replace("{device}", name_of(driver)),
    )
    result.assert_outcomes(passed=4, failed=1)


@pytest.mark.sample(3, "several runs")
def test_failures_outside_of_the_function(pytester: pytest.Pytester, driver: Driver) -> None:
    """Complaints come once, and a failed test is not told that its traceback keeps objects."""
    require_cut_loops(driver)
    result = run(
        pytester,
        """
@pytest.fixture
def loses(pumice_device):
    yield
    pumice_device.vulkan.fn.vkQueueSubmit = lambda *arguments: -4
    pumice_device.asarray(X).copy()

def test_in_teardown(loses): pass

def test_keeps(pumice_device):
    array = pumice_device.asarray(X)
    assert array is None

def test_fails(pumice_device):
    array = pumice_device.asarray(X)
    pytest.fail("for a reason")

def test_leaves(pumice_device):
    kept.append(pumice_device.asarray(X))

def test_skips(pumice_device):
    pytest.skip("for a reason")

def test_of_nobodys_concern():
    kept.append(pumice.open_device())

@pytest.mark.gpu
def test_is_skipped(): pass

def test_ends_it():
    kept.pop().close()

@pytest.mark.xfail(strict=True)
def test_expected(pumice_kernel, pumice_device):
    pumice_kernel("count.comp")(pumice_device.empty(1, np.uint32), n=70_000)
""",
    )
    assert outcomes(result) == {
        "test_in_teardown": "error",
        "test_keeps": "failed",
        "test_fails": "failed",
        "test_leaves": "error",
        "test_of_nobodys_concern": "passed",
        "test_ends_it": "passed",
    }
    result.assert_outcomes(passed=4, failed=2, errors=2, skipped=2, xfailed=1)
    assert result.stdout.str().count("native objects left behind: ") == 1


def test_a_failure_says_how_to_run_it_again_and_that_does(pytester: pytest.Pytester, driver: Driver) -> None:
    result = run(
        pytester,
        """
import ml_dtypes

def test_kernel(pumice_kernel, pumice_device):
    x = pumice_device.asarray(X)
    y = pumice_kernel("scale.comp", specialization={3: 100})(x, pumice_device.empty(128), factor=2.0, groups=(2, 1, 1))
    x.copy_from(np.zeros_like(X))  # what went in is kept all the same
    assert_close(y.numpy().reshape(8, 16), (X * 2).reshape(8, 16))

def test_program(pumice_session):
    pumice_session.load("DIGITS/digits.vmfb")
    odds, digit = pumice_session.call("module.classify", np.load("DIGITS/three.npy"))
    assert_close(digit, 4)

def test_no_array(pumice_kernel):
    first = pumice_kernel("scale.comp")(X, pumice.empty(128), factor=2.0)
    second = pumice_kernel("scale.comp")(first, pumice.empty(128), factor=3.0)
    assert second[-1] == 7
""".replace("DIGITS", str(Path(__file__).parents[2] / "examples" / "digits")),
        "--pumice-artifacts",
        "found",
    )
    result.assert_outcomes(failed=3)
    lines = re.findall(r"^  \(cd (\S+) && (pumice run .*)\)$", result.stdout.str(), re.M)
    assert len(lines) == 4
    answers = []
    for folder, line in lines:
        assert Path(folder).parent == pytester.path / "found"
        assert line in (Path(folder) / "reproduce.sh").read_text().splitlines()
        os.chdir(folder)
        done = CliRunner().invoke(main, shlex.split(line)[1:])
        answers.append((done.exit_code, done.output))
    assert [status for status, _ in answers] == [1, 1, 0, 0]
    assert "36 of 128 element(s) differ" in answers[0][1] and "[64]: expected 1.007874, got 2.007874" in answers[0][1]
    assert "element at index 0 (3) does not match the expected (4)" in answers[1][1]
    assert answers[2][1].rstrip().endswith(" 6") and answers[3][1].rstrip().endswith(" 2")  # the last one comes first
    names = {
        path.name
        for path in (
            pytester.path / "found" / "test_a_failure_says_how_to_run_it_again_and_that_does.py-test_kernel"
        ).iterdir()
    }
    assert names >= {"got.npy", "expected.npy", "difference.png", "kernel.spv", "binding0.npy", "push.bin"}
    times = (pytester.path / "found" / "timing.md").read_text()
    assert times.count("| failed |") == 3 and "3 tests" in times and name_of(driver) in times


def test_without_a_folder_failures_are_kept_with_temporary_files(pytester: pytest.Pytester) -> None:
    body = """
def test_kernel(pumice_kernel):
    assert_close(pumice_kernel("scale.comp")(X, pumice.empty(128), factor=2.0), X)
"""
    result = run(pytester, body, "--basetemp", str(pytester.path / "temporary"))
    result.stdout.fnmatch_lines(["  (cd */temporary/pumice/*-test_kernel && pumice run *"])


def test_a_named_device_has_to_be_there(pytester: pytest.Pytester) -> None:
    body = "def test_one(pumice_device): pass\ndef test_other(): pass\n"
    result = run(pytester, body, "--pumice-device", "vulkan://97")
    assert outcomes(result) == {"test_one": "error", "test_other": "passed"}
    result.stdout.fnmatch_lines(["pumice: no device: no device is*", "*asked for: --pumice-device*"])
    assert "testbed.py" not in result.stdout.str()  # no traceback of the plug-in


def test_runs_that_need_no_device_have_no_header(pytester: pytest.Pytester) -> None:
    result = run(pytester, "def test_other(): pass\n")
    assert "pumice:" not in result.stdout.str()
    result = run(pytester, "def test_one(pumice_device): pass\n", "--no-pumice")
    result.assert_outcomes(skipped=1)
    assert "pumice:" not in result.stdout.str()

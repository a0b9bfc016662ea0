"""The parts of the plug-in that are decided without a device: which device, limits, drivers by version, times."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pumice.hal_vulkan import DeviceProfile, DeviceType
from pumice.status import InvalidArgumentError, NotFoundError, UnavailableError
from pumice.testing import DriverRange, LiveLimit, missing_features, plugin, testbed
from pumice.testing.markers import MARKERS
from pumice.testing.requirements import driver_text, driver_version
from pumice.testing.testbed import Testbed, choose, in_ci
from pumice.testing.timing import TimedTest, write_times


def profile(**facts: object) -> DeviceProfile:
    known: dict[str, object] = {
        "name": "llvmpipe (LLVM 15.0.6, 256 bits)",
        "device_type": DeviceType.CPU,
        "api_version": (1, 3, 230),
        "memory_types": (),
        "memory_heaps": (),
        "queue_families": (),
        "driver_name": "llvmpipe",
        "driver_info": "Mesa 22.3.6 (LLVM 15.0.6)",
        "driver_id": 13,
    }
    return DeviceProfile(**{**known, **facts})  # type: ignore[arg-type]


NVIDIA = {"name": "NVIDIA H200", "device_type": DeviceType.DISCRETE, "driver_name": "NVIDIA", "driver_id": 4}


@pytest.mark.parametrize(
    ("device", "environ", "ci", "uri", "is_named"),
    [
        (None, {}, False, "vulkan", False),
        (None, {}, True, "lavapipe", True),
        ("vulkan://1", {"PUMICE_DEVICE": "lavapipe"}, True, "vulkan://1", True),
        (None, {"PUMICE_DEVICE": "vulkan://0"}, True, "vulkan://0", True),
        (None, {"PUMICE_DEVICE": ""}, False, "vulkan", False),
    ],
)
def test_which_device(device: str | None, environ: dict[str, str], ci: bool, uri: str, is_named: bool) -> None:
    choice = choose(device, None, environ, in_ci=ci)
    assert choice.uri == uri and bool(choice.named) is is_named


def test_validation_is_on_in_ci_unless_somebody_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PUMICE_VALIDATION", raising=False)
    assert choose(None, None, {}, in_ci=True).validation and not choose(None, None, {}, in_ci=False).validation
    assert not choose(None, False, {}, in_ci=True).validation
    monkeypatch.setenv("PUMICE_VALIDATION", "1")
    assert choose(None, None, {}, in_ci=False).validation and not choose(None, False, {}, in_ci=False).validation
    assert in_ci({"CI": "true"}) and in_ci({"BUILD_NUMBER": "7"}) and not in_ci({"CI": ""})


def test_a_device_that_nobody_named_may_be_absent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    missing = UnavailableError("no Vulkan loader")
    monkeypatch.delenv("PUMICE_VALIDATION", raising=False)

    def absent(**options: object) -> None:
        raise missing

    monkeypatch.setattr(testbed, "shared_driver", absent)
    bed = Testbed(choose(None, False, {}, in_ci=False), tmp_path)
    assert bed.absence() == "no Vulkan device here: no Vulkan loader" and bed.header == "no device: no Vulkan loader"
    for device, ci, who in (("lavapipe", False, "--pumice-device"), (None, True, "the default in CI")):
        with pytest.raises(UnavailableError, match=f"no Vulkan loader .asked for: {who}"):
            Testbed(choose(device, False, {}, in_ci=ci), tmp_path).absence()
    missing = UnavailableError("the layer VK_LAYER_KHRONOS_validation is not installed")
    with pytest.raises(UnavailableError, match="asked for: the default in CI; --no-pumice-validation turns it off"):
        Testbed(choose(None, None, {}, in_ci=True), tmp_path).absence()
    with pytest.raises(UnavailableError, match="asked for: --pumice-validation"):
        Testbed(choose(None, True, {}, in_ci=False), tmp_path).absence()


def test_limits() -> None:
    limit = LiveLimit.parse("2 buffers, 1 pipeline")
    assert limit.counts == {"buffer": 2, "pipeline": 1}
    assert limit.exceeded({"buffer": 1}, {"buffer": 3, "pipeline": 1}) == {}
    assert limit.exceeded({"buffer": 1}, {"buffer": 4, "semaphore": 1, "pipeline": 0}) == {"buffer": 1, "semaphore": 1}
    for text, words in {
        "two buffers": "expected a limit such as",
        "": "expected a limit",
        "2 bufers": "did you mean buffer",
    }.items():
        with pytest.raises(InvalidArgumentError, match=words):
            LiveLimit.parse(text)


@pytest.mark.parametrize(
    ("text", "facts", "is_in"),
    [
        ("llvmpipe<23", {}, True),
        ("lavapipe < 23", {}, True),
        ("llvmpipe<22", {}, False),
        ("llvmpipe<=22", {}, True),
        ("llvmpipe==22.3", {}, True),
        ("llvmpipe!=22.3.6", {}, False),
        ("llvmpipe>22", {}, False),
        ("llvmpipe>=22.3.6,<22.4", {}, True),
        ("mesa", {}, True),
        ("radv", {}, False),
        ("NVIDIA>=550,<560", {**NVIDIA, "driver_info": "555.42.02"}, True),
        ("nvidia<550", {**NVIDIA, "driver_info": "", "driver_version": 535 << 22 | 129 << 14}, True),
        ("mesa", {**NVIDIA, "driver_info": "555.42.02"}, False),
        ("H200", {**NVIDIA, "driver_info": ""}, True),
    ],
)
def test_drivers_by_version(text: str, facts: dict[str, object], is_in: bool) -> None:
    assert (profile(**facts) in DriverRange.parse(text)) is is_in


def test_driver_versions() -> None:
    assert driver_version(profile()) == (22, 3, 6) and driver_text(profile()) == "llvmpipe 22.3.6"
    packed = profile(driver_info="", driver_version=1 << 22 | 2 << 12 | 3)
    assert driver_version(packed) == (1, 2, 3)
    for text in ("", "<23", "llvmpipe<", "llvmpipe<new", "llvmpipe<23,", "llvmpipe=23"):
        with pytest.raises(InvalidArgumentError, match="expected a driver and bounds"):
            DriverRange.parse(text)


def test_missing_features() -> None:
    has = profile(features=frozenset({"shaderFloat16"}), extensions=frozenset({"VK_KHR_one"}))
    assert missing_features(has, ["shaderFloat16", "VK_KHR_one"]) == []
    assert missing_features(has, ["shaderFloat64", "VK_KHR_two"]) == ["shaderFloat64", "VK_KHR_two"]
    with pytest.raises(NotFoundError, match="did you mean shaderFloat16"):
        missing_features(has, ["shaderFlaot16"])


def test_the_page_has_every_option_marker_and_fixture() -> None:
    page = (Path(__file__).parents[2] / "docs" / "testing-in-ci.md").read_text(encoding="utf-8")
    options = re.findall(r'"(--[\w-]+)"', Path(plugin.__file__).read_text(encoding="utf-8"))
    for name in {*options, *plugin._FIXTURES, *(line.partition(":")[0] for line in MARKERS.values())}:
        assert f"`{name}" in page, name


def test_times(tmp_path: Path) -> None:
    times = {f"test_{number}": TimedTest({"call": number / 1000}) for number in range(60)}
    times["test_a|b"] = TimedTest({"setup": 1.0, "call": 2.0}, "failed")
    write_times(tmp_path / "new" / "timing.md", "some device", times)
    lines = (tmp_path / "new" / "timing.md").read_text().splitlines()
    assert lines[2] == "some device. 61 tests, 4.77 s in all."
    assert lines[6] == r"| test_a\|b | 1.000 | 2.000 | 0.000 | failed |"
    assert lines[-1] == "and 11 more, none of them slower." and len(lines) == 6 + 50 + 2

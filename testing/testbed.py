"""The device that tests run on, chosen by options and environment, and its properties before it is opened."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

from ..base.lazy_dataclass import dataclass
from ..base.switches import switch
from ..hal_vulkan import DeviceProfile, DeviceType, Driver, shared_driver
from ..runtime import Device, open_device
from ..status import NotFoundError, PumiceError, UnavailableError
from .recording import Recorder
from .requirements import DriverRange, driver_text, missing_features
from .watch import Watch

LAVAPIPE: Final = "lavapipe"
_LAYER: Final = "VK_LAYER_KHRONOS_validation"
_LLVMPIPE: Final = 13  # VK_DRIVER_ID_MESA_LLVMPIPE


@dataclass(frozen=True, slots=True)
class Choice:
    """The choice of the device that tests run on.

    Attributes:
        uri: the URI for ``pumice.open_device``.
        named: the source of the URI; empty for the default outside CI. A named device must exist.
        validation: whether the validation layers are on.
        validation_named: the source of the choice of validation.
    """

    uri: str
    named: str
    validation: bool
    validation_named: str


def choose(device: str | None, validation: bool | None, environ: Mapping[str, str], *, in_ci: bool) -> Choice:
    """Chooses the device of the command line or environment, else lavapipe with validation in CI, else the best.

    Raises:
        InvalidArgumentError: ``PUMICE_VALIDATION`` says neither on nor off.
    """
    uri, named = "vulkan", ""
    if device:
        uri, named = device, "--pumice-device"
    elif environ.get("PUMICE_DEVICE"):
        uri, named = environ["PUMICE_DEVICE"], "PUMICE_DEVICE"
    elif in_ci:
        uri, named = LAVAPIPE, "the default in CI; --pumice-device names another"
    said = switch("PUMICE_VALIDATION")
    if validation is not None:
        return Choice(uri, named, validation, "--pumice-validation")
    if said is not None:
        return Choice(uri, named, said, "PUMICE_VALIDATION")
    return Choice(uri, named, in_ci, "the default in CI; --no-pumice-validation turns it off")


class Testbed:
    """The device of a test run.

    Attributes:
        choice: the requested device.
        watch, recorder: the watch and the recorder of the process's tests.
        artifacts: the folder for failures.
    """

    __test__ = False  # no class of tests

    def __init__(self, choice: Choice, artifacts: Path) -> None:
        self.choice = choice
        self.artifacts = artifacts
        self.watch: Watch = Watch()
        self.recorder: Recorder = Recorder()

    @cached_property
    def _found(self) -> tuple[Driver | None, int, PumiceError | None]:
        try:
            driver = shared_driver(validation=self.choice.validation)
            return driver, driver.select(self.choice.uri), None
        except PumiceError as error:
            return None, 0, error

    @property
    def profile(self) -> DeviceProfile:
        """The device's profile.

        Raises:
            PumiceError: the device or the validation layers are missing; the message says what requested them.
        """
        driver, index, error = self._found
        if error is not None:
            raise error
        assert driver is not None
        return driver.profiles[index]

    def absence(self) -> str | None:
        """Returns why tests are skipped: there is no device, and none was named. Raises if one was named."""
        error = self._found[2]
        if error is None:
            return None
        is_layer = self.choice.validation and _LAYER in error.message
        who = self.choice.validation_named if is_layer else self.choice.named
        if not who and isinstance(error, (NotFoundError, UnavailableError)):
            return f"no Vulkan device here: {error.message}"
        raise type(error)(f"{error.message} (asked for: {who})", vk_result=error.vk_result) from error

    @cached_property
    def header(self) -> str:
        """Returns a line with device, driver and its version, Vulkan and layers."""
        error = self._found[2]
        if error is not None:
            return f"no device: {error.message.splitlines()[0]}"
        profile = self.profile
        version = ".".join(map(str, profile.api_version))
        layers = f"validation on ({_LAYER})" if self.choice.validation else "validation off"
        info = f" ({profile.driver_info})" if profile.driver_info else ""
        return f"{profile.name}, driver {driver_text(profile)}{info}, Vulkan {version}, {layers}"

    def open(self) -> Device:
        _ = self.profile
        return open_device(self.choice.uri, validation=self.choice.validation)

    def run_options(self) -> list[str]:
        """Returns the options of ``pumice run`` for the same device and settings."""
        is_lavapipe = self.profile.driver_id == _LLVMPIPE
        uuid = self.profile.device_uuid
        uri = (
            LAVAPIPE
            if is_lavapipe
            else f"vulkan://GPU-{uuid}"
            if self.choice.uri == "vulkan" and uuid
            else self.choice.uri
        )
        return ["--device", uri, *(["--validation"] if self.choice.validation else [])]

    def environment(self) -> dict[str, str]:
        """Returns the environment variables that give the same settings to devices that tests open."""
        return {"PUMICE_DEVICE": self.choice.uri, "PUMICE_VALIDATION": str(int(self.choice.validation))}

    # -- reasons for skipping tests --------------------------------------------------------------------

    def not_a_gpu(self) -> str | None:
        """Returns why a test that needs real hardware is skipped, or ``None``."""
        if self.profile.device_type is DeviceType.CPU:
            return f"needs a GPU; the device is {self.profile.name}, which runs on the CPU"
        return None

    def lacks(self, names: Sequence[str]) -> str | None:
        """Returns why a test that needs features or extensions is skipped, or ``None``."""
        missing = missing_features(self.profile, names)
        return f"{self.profile.name} lacks {', '.join(missing)}" if missing else None

    def avoided(self, ranges: Sequence[str]) -> str | None:
        """Returns why a test is skipped on this driver, or ``None``."""
        for text in ranges:
            if self.profile in DriverRange.parse(text):
                return f"not for {text}; the driver is {driver_text(self.profile)}"
        return None


def in_ci(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether this is a CI job, by pytest's criteria."""
    return any(environ.get(name) for name in ("CI", "BUILD_NUMBER"))

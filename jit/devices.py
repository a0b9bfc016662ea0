"""The devices that functions share, and targets of compilation for them."""

from __future__ import annotations

from typing import Final

from ..compiler.kernels.scalars.target import Target
from ..compiler.origin import Origin
from ..runtime import Device, Instance
from ..runtime.opening import REFERENCE
from ..status import InvalidArgumentError, UnavailableError
from ..tuning.database import tuned_target

_instance: Final = Instance()


def check_device(wanted: object) -> None:
    """Raises InvalidArgumentError unless ``wanted`` is a URI, a device or ``None``."""
    if wanted is not None and not isinstance(wanted, str | Device):
        raise InvalidArgumentError(f"device is a URI or an open pumice.Device, got {type(wanted).__name__}")


def shared_device(wanted: str | Device | None) -> Device:
    """Returns an open device unchanged, or opens the device of a URI once for all functions of the process.

    Raises: as ``pumice.open_device``.
    """
    return wanted if isinstance(wanted, Device) else _instance.device(wanted)


def target_for(device: Device, data: bytes, name: str, tune: bool | float) -> Target:
    """Returns the target of a device, tuned for a program first if ``tune`` asks for it.

    Args:
        device: an open device.
        data: the program, as text of the stage ``hlo``.
        name: the program's name in errors.
        tune: the measuring time in seconds, as for ``pumice.jit``.

    Raises:
        UnavailableError: tuning needs the extra ``study``, which is not installed.
        CompileError: the program is wrong, or something in it is not supported.
    """
    if device.uri == REFERENCE:
        return Target(kinds=("reference",))
    if not tune:
        return tuned_target(device.profile)
    try:
        from ..tuning.tuner import DEFAULT_SECONDS, tune_program
    except ModuleNotFoundError as error:
        raise UnavailableError(
            f"pumice.jit(…, tune=…) measures with the extra `study`, which cannot be imported ({error}): "
            "pip install 'pumice[study]'"
        ) from None
    seconds = DEFAULT_SECONDS if tune is True else tune
    return tune_program(data, name, Origin("hlo"), device.profile, device.uri, seconds=seconds)[0]

"""Device URIs: their grammar, and the device that each selects.

Grammar::

    uri     = "vulkan"                    ; the best device
            | "vulkan://" index           ; decimal digits: position in the list
            | "vulkan://" ["GPU-"] uuid   ; 8-4-4-4-12 hexadecimal digits, with or without dashes
            | "vulkan://" name            ; any part of the device's name; percent-encoding allowed
            | "lavapipe"                  ; Mesa's software device, wherever it is in the list

Case never matters. Digits alone are an index, so a name of digits only is written with one digit percent-encoded
(``vulkan://%34090``). The best device is the first device of the best type, discrete before integrated before virtual
before CPU, that pumice can run on. An explicit request never selects another device.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal
from urllib.parse import unquote_to_bytes

from ...base.lazy_dataclass import dataclass
from ...status import InvalidArgumentError, NotFoundError, UnavailableError, shown
from .profile import DeviceProfile, DeviceType

DEVICE_VARIABLE: Final = "PUMICE_DEVICE"
"""The environment variable with the device's URI, for programs that name none."""

_GRAMMAR: Final = (
    "write vulkan (the best device), vulkan://INDEX, vulkan://GPU-UUID, vulkan://PART-OF-THE-NAME "
    "(percent-encoded where it has / ? # or %) or lavapipe"
)
_SCHEME: Final = "vulkan://"
_MAX_URI: Final = 1024
_MAX_INDEX_DIGITS: Final = 9
_UUID: Final = re.compile(r"(gpu-)?([0-9a-f]{8})" + 3 * r"-?([0-9a-f]{4})" + r"-?([0-9a-f]{12})", re.ASCII)
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_MESA_LLVMPIPE: Final = 13  # VK_DRIVER_ID_MESA_LLVMPIPE
_PREFERENCE: Final = (DeviceType.DISCRETE, DeviceType.INTEGRATED, DeviceType.VIRTUAL, DeviceType.CPU, DeviceType.OTHER)


@dataclass(frozen=True, slots=True)
class DeviceUri:
    """A parsed device URI: which form of the grammar it has, and the text for messages.

    ``value`` is the index, the UUID in lower case with dashes, or the decoded name.
    """

    form: Literal["best", "index", "uuid", "name", "lavapipe"]
    value: str
    shown: str


def parse_device_uri(text: str | None = None, env: Mapping[str, str] = MappingProxyType({})) -> DeviceUri:
    """Parses a device URI; ``None`` takes ``PUMICE_DEVICE`` from ``env``, or ``vulkan`` if that is unset or empty."""
    noun, source = "device URI", ""
    if text is None:
        text = env.get(DEVICE_VARIABLE) or "vulkan"
        if env.get(DEVICE_VARIABLE):
            noun += f" in the environment variable {DEVICE_VARIABLE}"
            source = f" (from the environment variable {DEVICE_VARIABLE})"
    if not isinstance(text, str):
        raise InvalidArgumentError(f"a device is named by a URI, got {type(text).__name__}; {_GRAMMAR}")
    said = shown(text) + source

    def wrong(why: str) -> InvalidArgumentError:
        return InvalidArgumentError(f"{noun} {shown(text)}: {why}; {_GRAMMAR}")

    if len(text) > _MAX_URI:
        raise wrong(f"expected at most {_MAX_URI} characters, got {len(text)}")
    stripped = text.strip()
    lowered = stripped.lower()
    if not stripped:
        raise wrong("it is empty")
    if lowered == "vulkan":
        return DeviceUri("best", "", said)
    if lowered == "lavapipe":
        return DeviceUri("lavapipe", "", said)
    if lowered == "reference":
        raise wrong("expected a Vulkan device, which kernels and timing need")
    if not lowered.startswith(_SCHEME):
        raise wrong("expected vulkan or lavapipe at its start, or, for compiled programs, reference")

    raw = stripped[len(_SCHEME) :]
    if not raw.strip():
        raise wrong("nothing follows vulkan://")
    if raw.isascii() and raw.isdigit():
        if len(raw) > _MAX_INDEX_DIGITS:
            raise wrong("the index is too large")
        return DeviceUri("index", str(int(raw)), said)
    if match := _UUID.fullmatch(raw.lower()):
        return DeviceUri("uuid", "-".join(match.groups()[1:]), said)
    if raw.lower().startswith("gpu-"):
        raise wrong("expected a UUID of 8-4-4-4-12 hexadecimal digits after GPU-")
    if reserved := set(raw) & set("/?#"):
        raise wrong(f"{''.join(sorted(reserved))} cannot stand in a name unencoded")
    if _BAD_ESCAPE.search(raw):
        raise wrong("expected two hexadecimal digits after %")
    try:
        name = unquote_to_bytes(raw).decode("utf-8").strip()
    except UnicodeError as error:
        raise wrong("the percent-encoded bytes are not UTF-8") from error
    if not name:
        raise wrong("the name is blank")
    if any(unicodedata.category(character).startswith("C") for character in name):
        raise wrong("the name has control characters")
    return DeviceUri("name", name, said)


def select_device(uri: DeviceUri, profiles: Sequence[DeviceProfile]) -> int:
    """Returns the index of the device that a URI names; ``plan_device`` checks that pumice can run on it.

    Raises:
        NotFoundError: there is no such device; the message lists those that exist.
        InvalidArgumentError: a part of a name matches several different devices.
        UnavailableError: the best device is requested and pumice can run on none; the message says why.
    """
    if not profiles:
        raise NotFoundError(
            f"device {uri.shown}: no Vulkan driver was found; install the GPU vendor's driver, or Mesa's lavapipe "
            "(package mesa-vulkan-drivers on most systems) to run on the CPU"
        )
    match uri.form:
        case "best":
            indices = [index for index, profile in enumerate(profiles) if not profile.problems()]
            if not indices:
                whys = "\n".join(f"  {i}: {p.name}: {'; '.join(p.problems())}" for i, p in enumerate(profiles))
                raise UnavailableError(f"pumice can run on none of the Vulkan devices:\n{whys}")
            indices.sort(key=lambda index: _PREFERENCE.index(profiles[index].device_type))
        case "index":
            indices = [int(uri.value)] if int(uri.value) < len(profiles) else []
        case "uuid":
            # Two drivers for one GPU report the same device UUID; the first is the same device.
            indices = [i for i, p in enumerate(profiles) if p.device_uuid == uri.value]
        case "lavapipe":
            indices = [i for i, p in enumerate(profiles) if p.driver_id == _MESA_LLVMPIPE]
        case "name":
            indices = _by_name(uri, profiles)
    if indices:
        return indices[0]
    hint = ""
    if uri.form == "lavapipe":
        hint = " Mesa's software driver is in the package mesa-vulkan-drivers on most systems."
    if uri.form == "index":
        hint = f" If {uri.value} is part of a name, write vulkan://%{ord(uri.value[0]):x}{uri.value[1:]}."
    raise NotFoundError(f"no device is {uri.shown}.{hint} There are:\n{list_devices(profiles)}")


def list_devices(profiles: Sequence[DeviceProfile], chosen: Container[int] | None = None) -> str:
    """Returns one line for each device, or for the chosen indices: index, name, type, driver and URI."""
    seen: set[str] = set()
    lines = []
    for index, profile in enumerate(profiles):
        by_uuid = profile.device_uuid and profile.device_uuid not in seen
        seen.add(profile.device_uuid)
        uri = f"{_SCHEME}GPU-{profile.device_uuid}" if by_uuid else f"{_SCHEME}{index}"
        driver = profile.driver_name or profile.driver_id_name or "unknown driver"
        if chosen is None or index in chosen:
            lines.append(f"  {index}: {profile.name} ({profile.device_type.name.lower()}, {driver}) {uri}")
    return "\n".join(lines)


def _by_name(uri: DeviceUri, profiles: Sequence[DeviceProfile]) -> list[int]:
    """Returns the devices whose name contains the text.

    An exact match takes precedence over longer names ("RTX 3060 Ti").
    """
    wanted = uri.value.casefold()
    indices = [i for i, p in enumerate(profiles) if wanted in p.name.casefold()]
    indices = [i for i in indices if profiles[i].name.casefold() == wanted] or indices
    models = {(p.name, p.vendor_id, p.device_id, p.driver_id) for p in (profiles[i] for i in indices)}
    if len(models) > 1:
        raise InvalidArgumentError(
            f"device {uri.shown} matches several devices; name one of them:\n{list_devices(profiles, indices)}"
        )
    return indices

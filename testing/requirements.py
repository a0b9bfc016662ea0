"""Requirements of a test on its device: features, extensions, drivers by version."""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from ..base.lazy_dataclass import dataclass
from ..hal_vulkan import DeviceProfile
from ..hal_vulkan.instance.features import feature_structures
from ..status import InvalidArgumentError, NotFoundError, close_to, shown

Version = tuple[int, ...]

_RANGE: Final = re.compile(r"\s*([^<>=!,]*[^<>=!,\s])\s*((?:[<>=!]=?.*)?)")
_BOUND: Final = re.compile(r"\s*(<=|>=|==|!=|<|>)\s*([0-9]+(?:\.[0-9]+)*)\s*")
_COMPARE: Final[Mapping[str, Callable[[Version, Version], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    ">": operator.gt,
}
_MESA: Final = re.compile(r"Mesa (\d+(?:\.\d+)*)")
_DOTTED: Final = re.compile(r"\d+(?:\.\d+)+")
_LAVAPIPE: Final = ("lavapipe", "llvmpipe")  # the Vulkan driver, and its rasteriser
_NVIDIA: Final = 4  # VK_DRIVER_ID_NVIDIA_PROPRIETARY


def driver_version(profile: DeviceProfile) -> Version:
    """Returns the version of a driver as users know it: Mesa's, or the vendor's."""
    match = _MESA.search(profile.driver_info)
    text = match[1] if match else next(iter(_DOTTED.findall(profile.driver_info)), "")
    if text:
        return tuple(map(int, text.split(".")))
    packed = profile.driver_version
    if profile.driver_id == _NVIDIA:
        return packed >> 22, packed >> 14 & 0xFF
    return packed >> 22, packed >> 12 & 0x3FF, packed & 0xFFF


def driver_text(profile: DeviceProfile) -> str:
    """Returns a text such as ``"llvmpipe 22.3.6"``."""
    name = profile.driver_name or profile.driver_id_name or "unknown driver"
    return f"{name} {'.'.join(map(str, driver_version(profile)))}"


@dataclass(frozen=True, slots=True)
class DriverRange:
    """Drivers by a part of their name, within version bounds.

    ``lavapipe`` and ``llvmpipe`` are the same; ``mesa`` means every Mesa driver.
    """

    name: str
    bounds: tuple[tuple[str, Version], ...]

    @classmethod
    def parse(cls, text: str) -> DriverRange:
        """Reads a range from a text such as ``"llvmpipe<23"``, ``"NVIDIA>=550,<560"`` or ``"radv"``.

        Raises:
            InvalidArgumentError: the text has another form.
        """
        match = _RANGE.fullmatch(text)
        bounds = []
        for part in match[2].split(",") if match is not None and match[2] else ():
            bound = _BOUND.fullmatch(part)
            if bound is None:
                match = None
                break
            bounds.append((bound[1], tuple(map(int, bound[2].split(".")))))
        if match is None:
            raise InvalidArgumentError(
                "expected a driver and bounds of its version, such as 'llvmpipe<23' or 'NVIDIA>=550,<560', "
                f"got {shown(text)}"
            )
        return cls(match[1], tuple(bounds))

    def __contains__(self, profile: DeviceProfile) -> bool:
        names = f"{profile.driver_name}\n{profile.driver_id_name}\n{profile.name}".casefold()
        if "Mesa" in profile.driver_info:
            names += "\nmesa"
        wanted = self.name.casefold()
        also = _LAVAPIPE if wanted in _LAVAPIPE else (wanted,)
        if not any(alternative in names for alternative in also):
            return False
        version = driver_version(profile)
        return all(_holds(version, sign, bound) for sign, bound in self.bounds)


def _holds(version: Version, sign: str, bound: Version) -> bool:
    """Returns whether a version is within a bound; 23.x satisfies ``<= 23`` and ``== 23``."""
    width = len(bound)
    return _COMPARE[sign]((*version, *[0] * width)[:width], bound)


def missing_features(profile: DeviceProfile, names: Iterable[str]) -> list[str]:
    """Returns the named features (``"shaderFloat16"``) and extensions (``"VK_KHR_…"``) that a device lacks.

    Raises:
        NotFoundError: there is no such feature.
    """
    missing = []
    for name in names:
        if name in profile.features or name in profile.extensions or name in profile.properties:
            continue
        if not name.startswith("VK_") and name not in _known_features():
            near = close_to(name, _known_features(), 3)
            raise NotFoundError(
                f"Vulkan has no feature {shown(name)}{'; did you mean ' + ', '.join(near) + '?' if near else ''} "
                "(extensions begin with VK_)"
            )
        missing.append(name)
    return missing


@functools.cache
def _known_features() -> frozenset[str]:
    return frozenset(member for structure in feature_structures() for member in structure.members)

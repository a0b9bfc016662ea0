"""The recorded device profiles in ``tests/data/profiles``."""

from __future__ import annotations

import functools
import json
from pathlib import Path

from pumice.hal_vulkan.instance.profile import DeviceProfile

__all__ = ["PROFILE_NAMES", "PROFILE_PATHS", "profile_record", "recorded_profile", "recorded_profiles"]

PROFILE_PATHS = sorted((Path(__file__).parents[1] / "data" / "profiles").glob("*.json"))
PROFILE_NAMES = [path.stem for path in PROFILE_PATHS]


def profile_record(name: str) -> dict[str, object]:
    """A profile as its file has it."""
    record = json.loads((PROFILE_PATHS[0].parent / f"{name}.json").read_text(encoding="utf-8"))
    assert isinstance(record, dict)
    return record


@functools.cache
def recorded_profile(name: str) -> DeviceProfile:
    """One profile."""
    return DeviceProfile.from_json(profile_record(name))


def recorded_profiles() -> dict[str, DeviceProfile]:
    """All profiles by name."""
    return {name: recorded_profile(name) for name in PROFILE_NAMES}

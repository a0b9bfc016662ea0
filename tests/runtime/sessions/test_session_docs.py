"""The design pages of sessions and invocations name files, members and tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pumice
import pumice.vm
from pumice.vm.execution.loop import Loop
from pumice.vm.execution.stack import Stack

ROOT = Path(pumice.__file__).parent
PAGE = "".join((ROOT / "docs/design" / name).read_text(encoding="utf-8") for name in ("session.md", "invocation.md"))


def test_every_test_that_the_page_names_exists() -> None:
    named = set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE))
    assert len(named) > 80
    missing = [
        f"{path}::{name}" for path, name in named if f"\ndef {name}(" not in (ROOT / path).read_text(encoding="utf-8")
    ]
    assert not missing


def test_every_file_that_the_page_names_exists() -> None:
    named = set(re.findall(r"`((?:runtime|vm|hal|hal_vulkan|hal_reference)/[\w/]+\.py)`", PAGE))
    assert len(named) > 30
    assert not [path for path in named if not (ROOT / path).is_file()]


def test_every_member_that_the_page_names_exists() -> None:
    owners = (
        "Session|SessionOptions|Instance|SessionFunction|Context|Invocation|InvokeState|AsyncInvocation|Loop|"
        "WaitFrame|Stack"
    )
    results = re.findall(rf"`({owners})\.(\w+)", PAGE)
    assert len(results) > 40
    for owner, member in results:
        home = {"Stack": Stack, "Loop": Loop}.get(owner) or getattr(pumice, owner, None) or getattr(pumice.vm, owner)
        assert hasattr(home, member), f"{owner}.{member}"

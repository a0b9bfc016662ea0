"""The design page of sessions names files, members and tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pumice
from pumice.vm.context import Context

ROOT = Path(pumice.__file__).parent
PAGE = (ROOT / "docs/design/session.md").read_text(encoding="utf-8")


def test_every_test_that_the_page_names_exists() -> None:
    named = set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE))
    assert len(named) > 20
    missing = [
        f"{path}::{name}" for path, name in named if f"\ndef {name}(" not in (ROOT / path).read_text(encoding="utf-8")
    ]
    assert not missing


def test_every_file_that_the_page_names_exists() -> None:
    named = set(re.findall(r"`((?:runtime|vm)/\w+\.py)`", PAGE))
    assert len(named) > 8
    assert not [path for path in named if not (ROOT / path).is_file()]


def test_every_member_that_the_page_names_exists() -> None:
    for owner, member in re.findall(r"`(Session|SessionOptions|Instance|SessionFunction|Context)\.(\w+)", PAGE):
        home = Context if owner == "Context" else getattr(pumice, owner)
        assert hasattr(home, member), f"{owner}.{member}"

"""Modules with their push constants in memory are valid, and differ in nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from pumice import shaders
from pumice.spirv.binary.push_memory import with_push_constants_in_memory
from pumice.spirv.checks.tools import validate
from pumice.spirv.reflection.reflect import reflect

_SHIPPED = sorted(Path(shaders.__file__).parent.rglob("*.spv"))


@pytest.mark.parametrize("path", _SHIPPED, ids=lambda path: path.stem)
def test_shipped_shaders(path: Path) -> None:
    code = path.read_bytes()
    before = reflect(code)
    moved = with_push_constants_in_memory(code)
    assert moved is not None
    if not any(entry.push_constants for entry in before.entry_points):
        assert moved == code
        return
    validate(moved)
    for old, new in zip(before.entry_points, reflect(moved).entry_points, strict=True):
        assert new.push_constants is None
        assert (new.name, new.local_size) == (old.name, old.local_size)
        if old.push_constants is None:
            continue
        known = {(binding.set, binding.binding) for binding in old.bindings}
        added = [binding for binding in new.bindings if (binding.set, binding.binding) not in known]
        assert [binding.blocks[0].members for binding in added] == [old.push_constants.members]
        assert not added[0].writable
        assert new.bindings[-1] is added[0]  # the last resource of a dispatch

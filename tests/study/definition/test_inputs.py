"""The values of bindings and inputs of studies."""

from __future__ import annotations

import pytest

from pumice.study.definition.inputs import described_type


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        ({"shape": [4, 2], "dtype": "i32", "init": "random"}, "4x2xi32"),
        ({"shape": [8, 8], "format": "rgba8unorm"}, "8x8xrgba8unorm"),
        ("&4xf32=1,2,3,4", "4xf32"),
        ("2x2xf32=@a.npy", "2x2xf32"),
        ("64x64xrgba8unorm=@cat.png", "64x64xrgba8unorm"),
        ("f32=1", "f32"),
        ({"block": {"gain": 1}}, None),
        ("@a.npy", None),
        ("@cat.png", None),
        ("sampler:filter=nearest", None),
        ("3", None),
    ],
)
def test_types_that_descriptions_tell(description: object, expected: str | None) -> None:
    assert described_type(description) == expected

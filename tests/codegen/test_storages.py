"""Which arguments are storages, by what modules say, which may be damaged."""

from __future__ import annotations

import pytest

from pumice.codegen.program.storages import result_of
from pumice.status import InvalidArgumentError
from pumice.vm.bytecode.declaration import parse_declaration


def _result_of(attribute: str) -> int | None:
    declaration = parse_declaration(f"async func @f(%x: tensor<4xf32> {{{attribute}}}) -> ()")
    assert declaration is not None
    return result_of(declaration.arguments[0])


@pytest.mark.parametrize(
    ("attribute", "number"),
    [("iree.abi.output = 0 : index", 0), ("iree.abi.output = 12", 12), ("iree.abi.encoding = 1", None)],
)
def test_storages_name_their_result(attribute: str, number: int | None) -> None:
    assert _result_of(attribute) == number


@pytest.mark.parametrize("text", ["x", "-1 : index", "\x10 : index", "99999", "1 2"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="expected the number of a result in iree.abi.output"):
        _result_of(f"iree.abi.output = {text}")

"""Names of objects by the variables that code assigns them to."""

from __future__ import annotations

import sys
from types import SimpleNamespace

from pumice.base.calling_code import name_in_code


def name(*arguments: object, **named: object) -> str:
    del arguments, named
    return name_in_code(sys._getframe(1))


class Named(str):
    """A name that is a context manager, as kernels are."""

    def __new__(cls) -> Named:
        return super().__new__(cls, name_in_code(sys._getframe(1)))

    def __enter__(self) -> Named:
        return self

    def __exit__(self, *error: object) -> None: ...


at_the_top = name()


def test_variables_and_attributes() -> None:
    local = name()
    with_arguments = name(1, "x", key=[2])
    space = SimpleNamespace()
    space.attribute = name()
    captured = name()
    assert [at_the_top, local, with_arguments, space.attribute] == [
        "at_the_top",
        "local",
        "with_arguments",
        "attribute",
    ]
    assert (lambda: captured)() == "captured"


def test_with_statements() -> None:
    with Named() as opened:
        assert opened == "opened"


def test_other_uses_are_named_by_file_and_line() -> None:
    line = sys._getframe().f_lineno
    assert [name(), str(name())] == [f"test_calling_code:{line + 1}"] * 2
    assert eval("name()", {"name": name}) == ""
    assert name_in_code(None) == ""

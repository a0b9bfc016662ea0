"""Signatures of program functions: what callers pass and receive.

A function's *declaration* (``iree.abi.declaration``) has the types of the source program, its *calling convention*
those of the VM. Without a declaration that fits the convention, arguments are checked against the convention alone.
Values are converted in binding.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...status import InvalidArgumentError
from ...vm.bytecode.calling_convention import CallingConvention
from ...vm.bytecode.declaration import FunctionDeclaration, ValueKind
from .argument import Argument, Result, dtypes_of, element_type_of


@dataclass(frozen=True, slots=True, repr=False)
class Signature:
    """Arguments and results of a function.

    Attributes:
        name: full name.
        arguments, results: in order, without the fences of asynchronous functions.
        convention: the VM's calling convention.
        is_async: whether it takes a wait fence and a signal fence after its arguments, and returns before its work is
            done.
        attributes: reflection attributes of the export.
    """

    name: str
    arguments: tuple[Argument, ...]
    results: tuple[Result, ...]
    convention: CallingConvention
    is_async: bool
    attributes: dict[str, str]

    def __str__(self) -> str:
        arguments = ", ".join(map(str, self.arguments))
        results = ", ".join(map(str, self.results))
        return f"{'async ' if self.is_async else ''}{self.name}({arguments}) -> ({results})"

    def __repr__(self) -> str:
        return f"<Signature {self}>"

    def place(self, arguments: tuple[object, ...], named: Mapping[str, object]) -> tuple[object, ...]:
        """All arguments in order of position.

        Args:
            arguments: given by position.
            named: given by declared name.

        Raises:
            InvalidArgumentError: too many or too few, a name that is not declared, or an argument given twice.
        """
        wanted = self.arguments
        if len(arguments) > len(wanted) or (not named and len(arguments) < len(wanted)):
            raise InvalidArgumentError(f"{self} takes {_count(len(wanted))}, got {len(arguments)}")
        values: dict[int, object] = dict(enumerate(arguments))
        for name, value in named.items():
            positions = [one.position for one in wanted if one.name == name and one.declared is not None]
            if len(positions) != 1:
                which = "no argument" if not positions else f"{len(positions)} arguments"
                raise InvalidArgumentError(f"{self} has {which} named {name!r}; give it by position")
            if positions[0] in values:
                raise InvalidArgumentError(f"{self} got argument {name!r} twice, by position and by name")
            values[positions[0]] = value
        missing = [str(one) for one in wanted if one.position not in values]
        if missing:
            raise InvalidArgumentError(f"{self} takes {_count(len(wanted))}; missing: {', '.join(missing)}")
        return tuple([values[position] for position in range(len(wanted))])


def make_signature(
    name: str, convention: CallingConvention, declaration: FunctionDeclaration | None, attributes: dict[str, str]
) -> Signature:
    """The signature of an export.

    Raises:
        InvalidArgumentError: a variable number of arguments, which only programs can pass.
    """
    letters: list[str] = []
    for element in convention.arguments:
        if not isinstance(element, str):
            raise InvalidArgumentError(
                f"{name} takes a variable number of arguments ({convention.text}); only programs can call it"
            )
        letters.append(element)
    if declaration is not None and not declaration.fits(convention):
        declaration = None
    is_async = declaration.is_async if declaration is not None else attributes.get("iree.abi.model") == "coarse-fences"
    if is_async and letters[-2:] != ["r", "r"]:
        is_async = False
    if is_async:
        letters = letters[:-2]
    arguments = []
    for position, letter in enumerate(letters):
        declared = declaration.arguments[position] if declaration is not None else None
        tensor = declared if declared is not None and declared.kind is ValueKind.TENSOR else None
        element_type = element_type_of(tensor)
        arguments.append(
            Argument(
                declared.name if declared is not None else f"argument{position}",
                letter,
                declared,
                position,
                element_type,
                dtypes_of(element_type),
                tensor.shape if tensor is not None else None,
            )
        )
    results = []
    for position, letter in enumerate(convention.results):
        declared = declaration.results[position] if declaration is not None else None
        results.append(Result(declared.name if declared is not None else f"result{position}", letter, declared))
    return Signature(name, tuple(arguments), tuple(results), convention, is_async, attributes)


def _count(count: int) -> str:
    return f"{count} argument{'s' if count != 1 else ''}"

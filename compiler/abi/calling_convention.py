"""Calling conventions: conversions of entry points' types to types with an ABI.

A program's tensors are values, not memory. A convention decides the form in which each tensor crosses the boundary
between caller and module: its type there (``memref<4xf32>``, ``f32``, a user's ``!my.array``), and whether results are
returned or written to storages that the caller passes. The two functions that make conventions are those of XLA's
runtime (``runtime/calling_convention.h``). The first prepends the context and optionally converts types; the second
also makes results out-parameters. Conventions compose with ``then``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from ...status import InvalidArgumentError, shown
from ..ir.types import FunctionType, ScalarType, ShapedType, Type
from .function_abi import CONTEXT, DEFAULT, Abi, FunctionAbi, misfit
from .type_converter import Role, TypeAbi, TypeConverter, abi_of, to_buffer, to_memory, to_memref, to_value

Given = TypeVar("Given", bound=Type)
_NAME: Final = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)


class ConventionError(InvalidArgumentError):
    """A function type without an ABI in a convention.

    Attributes:
        role: the role of the type at fault; None if the whole function is at fault.
        index: the number of the argument or result; an out-parameter has its number among the results.
    """

    def __init__(self, message: str, role: Role | None = None, index: int = 0) -> None:
        super().__init__(message)
        self.role = role
        self.index = index


@dataclass(frozen=True, slots=True)
class _Boundary:
    """A function's type with arguments and out-parameters separated."""

    arguments: tuple[Type, ...]
    results: tuple[Type, ...]
    outs: tuple[Type, ...] = ()
    has_context: bool = False

    @property
    def type(self) -> FunctionType:
        context = (CONTEXT,) if self.has_context else ()
        return FunctionType([*context, *self.arguments, *self.outs], self.results)


_Step: TypeAlias = Callable[[_Boundary], _Boundary | None]


class CallingConvention:
    """A conversion of entry points' types to types with an ABI.

    The result has the context first, then the arguments, then out-parameters. ``default_convention`` and
    ``results_to_outs_convention`` make the usual conventions; other conventions wrap a function.

    Args:
        function: the conversion. It takes a function's type and returns None, or another type with corresponding
            arguments and results in the same order. The results stay results, or all become arguments after the others.
        name: the name that modules record.
        types: the ABIs of users' types.

    Attributes:
        name: the name as passed; for a composed convention, the parts' names separated by commas.

    Raises:
        InvalidArgumentError: the function cannot be called, or the name is not made of letters, digits, ``_``, ``.``
            and ``-``.
    """

    def __init__(
        self,
        function: Callable[[FunctionType], FunctionType | None],
        name: str = "custom",
        types: TypeConverter | None = None,
    ) -> None:
        if not callable(function):
            raise InvalidArgumentError(f"expected a function from a function's type to another, got {shown(function)}")
        self.name: str = _checked(name)
        self._abis: Mapping[str, TypeAbi] = {} if types is None else types.abis
        self._steps: tuple[_Step, ...] = (functools.partial(_by_function, function, name),)

    def __repr__(self) -> str:
        return f"<CallingConvention {self.name}>"

    def __call__(self, type: FunctionType) -> FunctionType | None:
        """Converts a type; returns None if a type in it has no ABI.

        Raises:
            InvalidArgumentError: a conversion raises, or returns no type.
        """
        try:
            boundary = self._boundary(type)
            self._kinds(boundary)
        except ConventionError:
            return None
        return boundary.type

    def then(self, other: CallingConvention) -> CallingConvention:
        """Composes this convention with one that is applied to its result. The context is prepended once.

        Raises:
            InvalidArgumentError: both conventions register a type, with different ABIs.
        """
        for name, abi in other._abis.items():
            if self._abis.get(name, abi) != abi:
                raise InvalidArgumentError(f"{self.name} and {other.name} register {name} with different ABIs")
        return self._composed(f"{self.name},{other.name}", (*self._steps, *other._steps), {**self._abis, **other._abis})

    def abi(self, type: FunctionType, tensors: FunctionType) -> FunctionAbi:
        """Returns the ABI of a function.

        Args:
            type: the function's type in the program.
            tensors: the same type, with tensors in place of users' types.

        Raises:
            ConventionError: the function has no ABI: a converted type has none, or does not fit the tensor.
            InvalidArgumentError: a conversion raises, or returns no type.
        """
        boundary = self._boundary(type)
        arguments, results = self._kinds(boundary)
        if not boundary.has_context:
            raise ConventionError(
                f"the convention {self.name} gives {boundary.type}, which does not begin with {CONTEXT}; compose it "
                "with default_convention()"
            )
        has_outs = bool(boundary.outs)
        _check_fit("argument", boundary.arguments, arguments, tensors.inputs)
        _check_fit("out" if has_outs else "result", boundary.outs or boundary.results, results, tensors.results)
        return FunctionAbi(self.name, type, boundary.type, arguments, results, has_outs)

    @classmethod
    def _composed(cls, name: str, steps: tuple[_Step, ...], abis: Mapping[str, TypeAbi]) -> CallingConvention:
        made = object.__new__(cls)
        made.name, made._steps, made._abis = name, steps, abis
        return made

    def _boundary(self, type: FunctionType) -> _Boundary:
        if not isinstance(type, FunctionType):
            raise InvalidArgumentError(f"expected the type of a function, got {shown(type)}")
        has_context = type.inputs[:1] == (CONTEXT,)
        boundary = _Boundary(type.inputs[has_context:], type.results, has_context=has_context)
        for step in self._steps:
            converted = step(boundary)
            if converted is None:
                raise ConventionError(f"the convention {self.name} gives nothing for {boundary.type}")
            boundary = converted
        return boundary

    def _kinds(self, boundary: _Boundary) -> tuple[tuple[Abi, ...], tuple[Abi, ...]]:
        """Returns the ABIs of arguments, and of results or out-parameters."""
        arguments = tuple(self._kind(type, "argument", index) for index, type in enumerate(boundary.arguments))
        outs = tuple(self._kind(type, "out", index) for index, type in enumerate(boundary.outs))
        results = tuple(self._kind(type, "result", index) for index, type in enumerate(boundary.results))
        return arguments, outs or results

    def _kind(self, type: Type, role: Role, index: int) -> Abi:
        known = abi_of(type, self._abis)
        kind = known.result if role == "result" else known.argument
        if role == "out" and kind is Abi.VALUE:
            said = "is passed by value, and an out-parameter is memory: convert it for the role out, or return it"
            raise ConventionError(f"{_of(role, index)}, {type}, {said}", role, index)
        if kind is not None:
            return kind
        wanted, other = ("a result", "an argument") if role == "result" else ("an argument", "a result")
        has = f", only as {other}" if known != TypeAbi() else ""
        raise ConventionError(
            f"{_of(role, index)}, {type}, has no ABI as {wanted} by the convention {self.name}{has}: convert it to a "
            "type with one, or register one",
            role,
            index,
        )


def default_convention(types: TypeConverter | None = None, *, name: str = DEFAULT) -> CallingConvention:
    """Prepends the context; with a converter, also converts all arguments and results.

    Raises:
        InvalidArgumentError: ``types`` is not a converter, or the name is not valid.
    """
    return _converting(_checked(name), types, to_outs=False)


def results_to_outs_convention(types: TypeConverter, *, name: str = "outs") -> CallingConvention:
    """Prepends the context, converts all arguments and results, and appends the results to the arguments.

    Raises: as for ``default_convention``.
    """
    return _converting(_checked(name), types, to_outs=True)


def _checked(name: object) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidArgumentError(f"expected a name of letters, digits, '_', '.' and '-', got {shown(name)}")
    return name


def _converting(name: str, types: TypeConverter | None, to_outs: bool) -> CallingConvention:
    if types is not None and not isinstance(types, TypeConverter):
        raise InvalidArgumentError(f"expected a TypeConverter, got {shown(types)}")
    conversions = () if types is None else types.conversions

    def converted(type: Type, role: Role) -> Type:
        for conversion, roles in conversions:
            converted_type = _called(conversion, type, "the conversion") if role in roles else None
            if converted_type is not None:
                return converted_type
        return type

    def step(boundary: _Boundary) -> _Boundary:
        outs = (*boundary.outs, *boundary.results) if to_outs else boundary.outs
        return _Boundary(
            tuple(converted(argument, "argument") for argument in boundary.arguments),
            () if to_outs else tuple(converted(argument, "result") for argument in boundary.results),
            tuple(converted(argument, "out") for argument in outs),
            has_context=True,
        )

    return CallingConvention._composed(name, (step,), {} if types is None else types.abis)


def _by_function(
    function: Callable[[FunctionType], FunctionType | None], name: str, boundary: _Boundary
) -> _Boundary | None:
    converted = _called(function, boundary.type, f"the convention {name}")
    if converted is None:
        return None
    if not isinstance(converted, FunctionType):
        raise InvalidArgumentError(f"the convention {name} gives {converted}; expected the type of a function, or None")
    return _aligned(boundary, converted, f"the convention {name}")


def _aligned(boundary: _Boundary, type: FunctionType, who: str) -> _Boundary:
    """Splits a function's type like the type that it was converted from."""
    has_context = type.inputs[:1] == (CONTEXT,)
    inputs = type.inputs[has_context:]
    if CONTEXT in (*inputs, *type.results):
        raise InvalidArgumentError(f"{who} gives {type}; expected {CONTEXT} as the first argument, and once")
    if boundary.has_context and not has_context:
        raise InvalidArgumentError(f"{who} gives {type} for {boundary.type}, and loses {CONTEXT}")
    arguments, outs, results = (len(types) for types in (boundary.arguments, boundary.outs, boundary.results))
    if (len(inputs), len(type.results)) not in ((arguments + outs, results), (arguments + outs + results, 0)):
        raise InvalidArgumentError(
            f"{who} gives {type} for {boundary.type}; expected {arguments} for the arguments and {outs + results} for "
            "the results, which either stay or all follow the arguments"
        )
    return _Boundary(inputs[:arguments], type.results, inputs[arguments:], has_context)


def _called(function: Callable[[Given], object], type: Given, caller: str) -> Type | None:
    """Calls a user's function; checks its result."""
    try:
        result = function(type)
    except Exception as error:
        said = f"{caller} raises {error.__class__.__name__} for {type}: {error}"
        raise InvalidArgumentError(said) from error
    if result is not None and not isinstance(result, Type):
        raise InvalidArgumentError(
            f"{caller} gives {shown(result)} for {type}; expected a type, which parse_type makes of its text, or None"
        )
    return result


def _check_fit(role: Role, types: Sequence[Type], kinds: Sequence[Abi], tensors: Sequence[Type]) -> None:
    """Checks that types with their ABIs fit the tensors that they stand for."""
    for index, (type, kind, tensor) in enumerate(zip(types, kinds, tensors, strict=True)):
        assert isinstance(tensor, ShapedType)
        problem = _difference(type, tensor) or misfit(kind, tensor)
        if problem is not None:
            raise ConventionError(f"{_of(role, index)}, {tensor}, cannot be {type}: {problem}", role, index)


def _difference(type: Type, tensor: ShapedType) -> str | None:
    """Returns why a type cannot stand for a tensor; None if it can."""
    is_same = (not isinstance(type, ScalarType) or type is tensor.element) and (
        not isinstance(type, ShapedType) or (type.shape, type.element) == (tensor.shape, tensor.element)
    )
    return None if is_same else "shapes and elements have to be the same"


def _of(role: Role, index: int) -> str:
    return {"argument": "argument", "result": "result", "out": "the out-parameter of result"}[role] + f" {index}"


# -- named conventions -----------------------------------------------------------------------------------

_MEMREFS: Final = TypeConverter().add(to_memref).add(to_memory, roles=["out"])

NAMED: Final[Mapping[str, CallingConvention]] = {
    DEFAULT: default_convention(_MEMREFS),
    "outs": results_to_outs_convention(_MEMREFS),
    "values": _converting(
        "values", TypeConverter().add(to_value, roles=["argument", "result"]).add(to_memref), to_outs=False
    ),
    "buffers": _converting("buffers", TypeConverter().add(to_buffer).add(to_memref), to_outs=False),
}
"""Conventions by name: buffer views; results as out-parameters; numbers in registers; static tensors as bare buffers.
"""


def named_convention(names: str) -> CallingConvention:
    """Returns a convention of ``NAMED``, or the composition of several, separated by commas, in order.

    Raises:
        InvalidArgumentError: there is no convention of this name.
    """
    parts = tuple(name.strip() for name in names.split(","))
    for name in parts:
        if name not in NAMED:
            known = ", ".join(NAMED)
            raise InvalidArgumentError(f"expected one of the calling conventions {known}, got {shown(name)}")
    return _composed(parts)


def is_named(convention: CallingConvention) -> bool:
    """Whether ``named_convention`` made a convention."""
    names = tuple(convention.name.split(","))
    return all(name in NAMED for name in names) and _composed(names) is convention


@functools.lru_cache(maxsize=64)
def _composed(names: tuple[str, ...]) -> CallingConvention:
    return functools.reduce(CallingConvention.then, (NAMED[name] for name in names))

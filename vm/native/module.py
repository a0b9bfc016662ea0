"""Modules written in Python: functions with a name and a calling convention, and a state for each context.

There are two styles. Functions::

    module = NativeModule("mymath")

    @module.function("add", "0ii_i")
    def add(a: int, b: int) -> int:
        return a + b

and classes, with one instance as the state of each context::

    class Counter:
        def __init__(self) -> None:
            self.count = 0

        @export("next", "0v_i")
        def next(self) -> int:
            self.count += 1
            return self.count

    module = NativeModule("counter", state=Counter)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from ...base.lazy_dataclass import dataclass
from ...status import AlreadyExistsError, InvalidArgumentError
from ..bytecode.calling_convention import CallingConvention

_MARK: Final = "__pumice_exports__"
_F = TypeVar("_F", bound=Callable[..., Any])


def export(name: str, *conventions: str, suspends: bool | None = None) -> Callable[[_F], _F]:
    """Marks a method as the export ``name`` with these calling conventions; may be stacked.

    Args:
        name: the name, without the module's.
        conventions: the calling conventions; an import gets the convention that it declares.
        suspends: whether it may return a ``Wait``; ``None`` uses the module's setting.

    Raises:
        InvalidArgumentError: the calling convention is missing or malformed.
    """
    if not conventions:
        raise InvalidArgumentError(f"export {name!r} needs a calling convention, such as '0ii_i'")
    marks = [(name, _parse(name, text), suspends) for text in conventions]

    def mark(function: _F) -> _F:
        setattr(function, _MARK, [*marks, *getattr(function, _MARK, [])])
        return function

    return mark


@dataclass(frozen=True, slots=True)
class NativeExport:
    """An exported function: ``target``, or the method of the state with that name."""

    name: str
    convention: CallingConvention
    target: str | Callable[..., Any]
    suspends: bool
    trusted: bool

    def bind(self, state: object) -> Callable[..., Any]:
        """Returns the function to call in a context with this state."""
        if not isinstance(self.target, str):
            return self.target
        bound: Callable[..., Any] = getattr(state, self.target)
        return bound


class NativeModule:
    """A module of Python functions, each with a name and a calling convention.

    ``@module.function("add", "0ii_i")`` exports a function of two i32 that returns an i32. Calling conventions are
    ``0``, the arguments, ``_`` and the results: ``i`` i32, ``I`` i64, ``f`` f32, ``F`` f64, ``r`` a reference or
    ``None``, ``v`` alone for no values, ``C…D`` a tuple that is repeated: ``CiD`` is passed as a tuple of ints,
    ``CirD`` as a tuple of tuples. A function returns ``None``, a value, a tuple of values, or a ``Wait``, which
    suspends the call. With ``state`` the exports are the methods of a class that are marked ``@export(name,
    convention)``, one instance for each context; its ``close`` method, if any, is called when the context is closed,
    and ``trim`` when the session is trimmed.

    Thread rule: add functions before the first context uses it; read-only afterwards. The functions of one context are
    called by one thread at a time unless the context is concurrent.

    Args:
        name: the name that imports use.
        version: the version, compared with ``minimum_version`` of dependencies.
        state: a function that makes the state of one context; the marked methods of the state's class are the exports.
        trusted: whether functions and results are not checked, for modules whose tests check their conventions.
        suspends: whether its functions may return a ``Wait``, unless an export says otherwise. Calls of functions that
            never return it are cheaper.

    Raises:
        InvalidArgumentError: the name is missing, or the state is not a class or a functools.partial of a class; or as
            ``function``.
    """

    def __init__(
        self,
        name: str,
        *,
        version: int = 0,
        state: Callable[[], object] | None = None,
        trusted: bool = False,
        suspends: bool = True,
    ) -> None:
        if not isinstance(name, str) or not name:
            raise InvalidArgumentError(f"a module needs a name, a str, got {name!r}")
        self.name = name
        self.version = version
        self._state = state
        self._trusted = trusted
        self._suspends = suspends
        self._exports: dict[str, list[NativeExport]] = {}
        if state is not None:
            owner = state if isinstance(state, type) else getattr(state, "func", None)  # functools.partial of a class
            if not isinstance(owner, type):
                raise InvalidArgumentError(
                    f"module {name!r}: state must be a class, or functools.partial of one, got {type(state).__name__}"
                )
            self._collect(owner)

    def _collect(self, owner: type) -> None:
        for attribute in dir(owner):
            # A subclass that overrides an exported method need not mark it again.
            marked = [getattr(base.__dict__.get(attribute), _MARK, None) for base in owner.__mro__]
            for name, convention, suspends in next(filter(None, marked), ()):
                if not self._trusted:
                    _check_parameters(getattr(owner, attribute), name, convention, bound=True)
                self._add(name, convention, suspends, attribute)

    def _add(
        self, name: str, convention: CallingConvention, suspends: bool | None, target: str | Callable[..., Any]
    ) -> None:
        overloads = self._exports.setdefault(name, [])
        if any(convention == other.convention for other in overloads):
            raise AlreadyExistsError(f"module {self.name!r} already exports {name} with {convention.text}")
        may_suspend = self._suspends if suspends is None else suspends
        overloads.append(NativeExport(name, convention, target, may_suspend, self._trusted))

    def function(self, name: str, convention: str, *, suspends: bool | None = None) -> Callable[[_F], _F]:
        """Exports the decorated function as ``name``; ``suspends`` as for ``export``.

        Raises:
            InvalidArgumentError: the calling convention is malformed, or the function does not accept that number of
                arguments.
            AlreadyExistsError: the name is already exported with this convention.
        """
        parsed = _parse(name, convention)

        def add(function: _F) -> _F:
            if not callable(function):
                raise InvalidArgumentError(f"export {name!r} is a function, got {type(function).__name__}")
            if not self._trusted:
                _check_parameters(function, name, parsed, bound=False)
            self._add(name, parsed, suspends, function)
            return function

        return add

    @property
    def exports(self) -> Mapping[str, tuple[NativeExport, ...]]:
        """The exports by name, with their overloads."""
        return {name: tuple(overloads) for name, overloads in self._exports.items()}

    def find_export(self, name: str) -> tuple[NativeExport, ...]:
        """Returns the overloads of a name; empty if the name is not exported."""
        return tuple(self._exports.get(name, ()))

    def new_state(self) -> object:
        """Returns the state of one context."""
        return None if self._state is None else self._state()

    def __repr__(self) -> str:
        return f"<NativeModule {self.name} {self.version}, {len(self._exports)} exports>"


def _parse(name: object, convention: object) -> CallingConvention:
    if not isinstance(name, str) or not name:
        raise InvalidArgumentError(f"an export needs a name, a str, got {name!r}")
    if not isinstance(convention, str):
        raise InvalidArgumentError(
            f"export {name!r}: a calling convention is a str such as '0ii_i', got {convention!r}"
        )
    return CallingConvention.parse(convention)


def _check_parameters(
    function: Callable[..., object], name: str, convention: CallingConvention, *, bound: bool
) -> None:
    """Refuses at export a function that does not accept the convention's arguments."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # many built-in functions have no signature
        return
    count = len(convention.arguments)
    try:
        signature.bind(*[None] * (count + bound))
    except TypeError as error:
        raise InvalidArgumentError(
            f"export {name!r} passes {count} argument{'s' if count != 1 else ''} by its convention "
            f"{convention.text!r}, which {getattr(function, '__name__', 'the function')}{signature} does not take: "
            f"{error}"
        ) from None

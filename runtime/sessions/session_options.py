"""Options of a session: parameters, limits, built-in modules."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Final, TypeAlias

from ...base.lazy_dataclass import dataclass
from ...status import InvalidArgumentError, NotFoundError
from ...vm.execution.stack import DEFAULT_MAX_DEPTH

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..parameters.index import ParameterIndex

BUILTIN_MODULES: Final = ("hal", "io_parameters")

ParameterSource: TypeAlias = "ParameterIndex | str | os.PathLike[str] | Mapping[str, npt.ArrayLike]"
"""The parameters of a scope: an index, the path of a file, or arrays by key."""


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """Options of a session.

    Attributes:
        parameters: the values that programs load by scope and key (``io_parameters``): for each scope an index, the
            path of an ``.irpa``, ``.safetensors``, ``.gguf``, ``.npy`` or ``.npz`` file, or arrays by key.
        max_stack_depth: the most nested calls of an invocation.
        concurrent: whether calls may overlap, from several threads or asynchronously. Without it asynchronous calls
            queue, and a second thread is refused.
        builtin_modules: the names of the built-in modules that programs may import from; each is added when one does.

    Raises:
        InvalidArgumentError: a value has the wrong type.
        NotFoundError: there is no such built-in module.
    """

    parameters: Mapping[str, ParameterSource] = field(default_factory=dict)
    max_stack_depth: int = DEFAULT_MAX_DEPTH
    concurrent: bool = False
    builtin_modules: frozenset[str] = frozenset(BUILTIN_MODULES)

    def __post_init__(self) -> None:
        if not isinstance(self.parameters, Mapping):
            raise InvalidArgumentError(
                "parameters maps scopes to files, indices or arrays, such as {'model': 'model.irpa'}; "
                f"got {self.parameters!r}"
            )
        pairs: list[tuple[object, object]] = list(self.parameters.items())
        for scope, source in pairs:
            if not isinstance(scope, str) or not (isinstance(source, (str, os.PathLike, Mapping)) or _is_index(source)):
                raise InvalidArgumentError(
                    f"parameters[{scope!r}] is an index, a path or arrays by key, got {type(source).__name__}"
                )
        names: object = self.builtin_modules
        if isinstance(names, str):
            raise InvalidArgumentError(f"builtin_modules is a set of names, got {self.builtin_modules!r}")
        for name in self.builtin_modules:
            if name not in BUILTIN_MODULES:
                raise NotFoundError(
                    f"there is no built-in module {name!r}, only {', '.join(BUILTIN_MODULES)}; add your own with "
                    "append_module"
                )

    def parameter_indices(self) -> dict[str, ParameterIndex]:
        """Returns ``parameters`` by scope, with files opened."""
        return {scope: _index_of(source) for scope, source in self.parameters.items()}


def _is_index(source: object) -> bool:
    from ..parameters.index import ParameterIndex  # here: most sessions have no parameters

    return isinstance(source, ParameterIndex)


def _index_of(source: ParameterSource) -> ParameterIndex:
    from ..parameters.index import ParameterIndex

    if isinstance(source, ParameterIndex):
        return source
    if isinstance(source, (str, os.PathLike)):
        return ParameterIndex.from_file(source)
    return ParameterIndex.from_arrays(source)

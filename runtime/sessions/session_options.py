"""Options of a session: parameters, limits, built-in modules."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Final, TypeAlias

from ...base.lazy_dataclass import dataclass
from ...base.memory_budget import MemoryBudget
from ...status import InvalidArgumentError, NotFoundError
from ...vm.execution.deadlines import timeout_seconds
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
        max_stack_depth: the largest number of nested calls of an invocation.
        concurrent: whether calls may overlap, from several threads or asynchronously. Otherwise asynchronous calls
            queue, and a second thread is rejected.
        builtin_modules: the names of the built-in modules that programs may import from; each is added when needed.
        max_memory: the largest number of bytes of device memory that the session's programs may hold at once:
            constants, transients, and kept results. ``None`` means no limit, for this and the next two options.
        max_host_memory: the largest number of bytes that their buffers, lists and globals may hold on the host at once.
        max_time: the longest time of a call in seconds, whatever its ``timeout``, and of a module's initializers.

    Raises:
        InvalidArgumentError: a value has the wrong type.
        NotFoundError: there is no such built-in module.
    """

    parameters: Mapping[str, ParameterSource] = field(default_factory=dict)
    max_stack_depth: int = DEFAULT_MAX_DEPTH
    concurrent: bool = False
    builtin_modules: frozenset[str] = frozenset(BUILTIN_MODULES)
    max_memory: int | None = None
    max_host_memory: int | None = None
    max_time: float | None = None

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
        for name, limit in (("max_memory", self.max_memory), ("max_host_memory", self.max_host_memory)):
            if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
                raise InvalidArgumentError(f"{name} is a number of bytes or None, got {limit!r}")
        if self.max_time is not None and timeout_seconds(self.max_time) == 0:
            raise InvalidArgumentError(f"max_time is a number of seconds above 0 or None, got {self.max_time!r}")
        names: object = self.builtin_modules
        if isinstance(names, str):
            raise InvalidArgumentError(f"builtin_modules is a set of names, got {self.builtin_modules!r}")
        for name in self.builtin_modules:
            if name not in BUILTIN_MODULES:
                raise NotFoundError(
                    f"there is no built-in module {name!r}, only {', '.join(BUILTIN_MODULES)}; add your own with "
                    "append_module"
                )

    def budget(self, name: str, kind: str) -> MemoryBudget | None:
        """Returns a new budget for one of the limits on memory; None if it is not set."""
        limit = getattr(self, name)
        return None if limit is None else MemoryBudget(limit, kind, f"SessionOptions.{name}")

    def parameter_indices(self) -> dict[str, ParameterIndex]:
        """Returns ``parameters`` by scope, with files opened."""
        return {scope: _index_of(source) for scope, source in self.parameters.items()}


def _is_index(source: object) -> bool:
    from ..parameters.index import ParameterIndex  # imported here: most sessions have no parameters

    return isinstance(source, ParameterIndex)


def _index_of(source: ParameterSource) -> ParameterIndex:
    from ..parameters.index import ParameterIndex

    if isinstance(source, ParameterIndex):
        return source
    if isinstance(source, (str, os.PathLike)):
        return ParameterIndex.from_file(source)
    return ParameterIndex.from_arrays(source)

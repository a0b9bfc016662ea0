"""Bindings and push constants that a shader declares and does not use: arguments for them are dropped, with a note.

So the passes of a program can share one list of arguments, where each uses some of them.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Final

from ....hal_vulkan import EntryPoint, ShaderModuleReflection
from ....spirv.reflection.block_dtype import member_names
from ....spirv.reflection.reflection_types import Declaration
from .parameter import KernelArgument, Parameter
from .push import Defaults, Named, Push

_log: Final = logging.getLogger("pumice.kernels")
_SEQUENCES: Final = (list, tuple)


class Unused:
    """Bindings and push constants that a module declares and a kernel does not use.

    Attributes:
        bindings: the unused bindings, by set, then by binding.
        present: whether there is anything unused.
    """

    def __init__(self, reflection: ShaderModuleReflection, entry: EntryPoint, kernel: str) -> None:
        self._kernel = kernel
        used = {(binding.set, binding.binding) for binding in entry.bindings}
        block = entry.constants
        own = {name for binding in entry.bindings for b in binding.blocks for name in b.names}
        own.update(member_names(block.members) if block is not None else ())
        self.bindings: Sequence[Declaration] = [d for d in reflection.declared if (d.set, d.binding) not in used]
        self._names = {name for declaration in self.bindings for name in declaration.names} - own
        self._push = set(reflection.declared_push_constants) - own
        self._has_push = block is not None
        self.present: bool = bool(self.bindings or self._push)
        self._noted: set[str] = set()

    def without_named(self, named: Named, push: Push) -> tuple[Named, Push]:
        """Returns named arguments and push constants without unused ones."""
        dropped = named.keys() & (self._names | self._push)
        if isinstance(push, Mapping) and (more := push.keys() & self._push):
            push = {name: value for name, value in push.items() if name not in more} or None
            dropped |= more
        if push is not None and len(push) and self._push and not self._has_push:
            dropped |= self._push
            push = None
        if not dropped:
            return named, push
        self._note(sorted(dropped))
        return {name: value for name, value in named.items() if name not in dropped}, push

    def ignores(self, name: str, key: tuple[int, int] | None = None) -> bool:
        """Whether an argument is for an unused binding, by name or by (set, binding), or an unused push constant."""
        if name in self._names or (not name and any((d.set, d.binding) == key for d in self.bindings)):
            self._note([name or f"binding {key and key[1]}"])
            return True
        is_push = key is None and (name in self._push or bool(self._push and not self._has_push))
        if is_push:
            self._note([name])
        return is_push

    def without_defaults(self, defaults: Defaults) -> Defaults:
        """Returns defaults of push constants without the unused ones."""
        if defaults is None or not self._push:
            return defaults
        if isinstance(defaults, Mapping):
            return {name: value for name, value in defaults.items() if name not in self._push} or None
        return defaults if self._has_push else None

    def without_positional(
        self, arrays: Sequence[KernelArgument], parameters: Sequence[Parameter]
    ) -> Sequence[KernelArgument]:
        """Returns positional arguments without those for unused bindings.

        Args:
            arrays: the arguments. They count unused bindings only if they are too many for ``parameters``.
            parameters: the parameters that take positional arguments.
        """
        counts: dict[tuple[int, int], int] = {}
        for parameter in parameters:
            key = parameter.binding.set, parameter.binding.binding
            counts[key] = counts.get(key, 0) + 1
        if not self.bindings or _matched(arrays, counts) is not None:
            return arrays
        unused = {(d.set, d.binding): d for d in self.bindings}
        matched = _matched(arrays, dict(sorted({**counts, **{k: d.count or 1 for k, d in unused.items()}}.items())))
        if matched is None:
            return arrays
        self._note([_label(unused[key]) for key, _ in matched if key in unused])
        return [array for key, part in matched if key not in unused for array in part]

    def __str__(self) -> str:
        """The unused declarations for the end of a message; ``""`` if there are none."""
        declared = [*map(_label, self.bindings), *sorted(self._push)]
        return f" (declared and unused: {', '.join(declared)})" if declared else ""

    def _note(self, dropped: Sequence[str]) -> None:
        new = [name for name in dropped if name not in self._noted]
        if new:
            self._noted.update(new)
            _log.warning(
                "%s: arguments for %s are ignored: the shader declares them, and this entry point does not use them",
                self._kernel,
                ", ".join(new),
            )


def _matched(
    arrays: Sequence[KernelArgument], counts: Mapping[tuple[int, int], int]
) -> list[tuple[tuple[int, int], Sequence[KernelArgument]]] | None:
    """Returns the arguments of each binding: a list for a whole array of bindings, or its items; ``None`` if their
    number differs.
    """
    matched: list[tuple[tuple[int, int], Sequence[KernelArgument]]] = []
    at = 0
    for key, count in counts.items():
        is_list = at < len(arrays) and isinstance(arrays[at], _SEQUENCES)
        taken = 1 if count > 1 and is_list else count
        matched.append((key, arrays[at : at + taken]))
        at += taken
    return matched if at == len(arrays) else None


def _label(declaration: Declaration) -> str:
    name = f" ({declaration.names[0]})" if declaration.names else ""
    where = f"binding {declaration.binding}{name}"
    return f"set {declaration.set} {where}" if declaration.set else where

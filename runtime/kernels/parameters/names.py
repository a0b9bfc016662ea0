"""The assignment of a call's arguments to bindings: by position, by name, and by ``out=``.

The rules are those of a Python function whose parameters are the bindings that ``out=`` does not fill. Positional
arguments are for the first of these, names for any others. ``out=`` fills the last written bindings that the call does
not name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from ....hal_vulkan import ShaderModuleReflection
from ....spirv.reflection.block_dtype import block_dtype, element_dtype, only_array
from ....spirv.reflection.reflection_types import BufferBlock, PushConstantBlock
from ....status import InvalidArgumentError, NotFoundError, close_to, shown
from ...arrays.array import DeviceArray
from ...images.image import DeviceImage
from .arguments import Out, PerElement, declared, listed
from .parameter import KernelArgument, Parameter
from .push import Named
from .unused import Unused

_SEQUENCES: Final = (list, tuple)


class Names:
    """The names of a kernel's bindings and push constants in a call."""

    def __init__(
        self,
        parameters: Sequence[Parameter],
        push: Sequence[str],
        kernel: str,
        unused: Unused | None = None,
        noun: str = PushConstantBlock.noun,
    ) -> None:
        """Indexes the names. ``push`` has the names of the push constants or uniforms, which messages call ``noun``;
        ``kernel`` is the kernel's name, for messages; ``unused`` has the bindings for which positional arguments are
        dropped.
        """
        self._noun = noun
        self._unused = unused
        self._parameters = parameters
        self._by_index = {parameter.index: parameter for parameter in parameters}
        self._push = tuple(push)
        self._kernel = kernel
        # The argument of each parameter in calls without names, by argument counts.
        self._plans: dict[tuple[int, int], list[int]] = {}
        bindings: dict[str, dict[tuple[int, int], list[int]]] = {}
        for parameter in parameters:
            binding = parameter.binding
            for name in dict.fromkeys(n for block in binding.blocks for n in block.names):
                bindings.setdefault(name, {}).setdefault((binding.set, binding.binding), []).append(parameter.index)
        self._shared = {name: [p[0] for p in places.values()] for name, places in bindings.items() if len(places) > 1}
        self._indices = {
            name: indices for name, places in bindings.items() if len(places) == 1 for indices in places.values()
        }

    def place(
        self, arrays: Sequence[KernelArgument], out: Out, named: Named
    ) -> tuple[tuple[KernelArgument, ...], Named]:
        """Returns one argument for each binding, and the remaining named values for the push constants."""
        parameters, kernel = self._parameters, self._kernel
        outs = listed(out)
        if not named:
            known = self._plans.get((len(arrays), len(outs)))
            if known is not None:
                arguments = [*arrays, *outs]
                return tuple([arguments[index] for index in known]), named
        placed, push = self._by_name(named)
        if out is not None:
            free = [p.index for p in parameters if p.written and p.index not in placed]
            if len(outs) > len(free):
                raise InvalidArgumentError(
                    f"{kernel}: {len(outs)} array(s) in out= for {len(free)} written binding(s) without a name: "
                    f"{declared(parameters)}"
                )
            filled = dict(zip(free[len(free) - len(outs) :], outs, strict=True))
        else:
            filled = {}
        rest = [p for p in parameters if p.index not in filled]
        if self._unused is not None:
            arrays = self._unused.without_positional(arrays, [p for p in rest if p.index not in placed])
        if not named and len(arrays) == len(rest):
            order = {index: at for at, index in enumerate([*(p.index for p in rest), *filled])}
            self._plans[len(arrays), len(outs)] = [order[p.index] for p in parameters]
        if len(arrays) < len(rest):
            arrays = _spread(rest, arrays)
        if len(arrays) > len(rest):
            also = f", {len(filled)} of them by out=" if filled else ""
            raise InvalidArgumentError(
                f"{kernel} takes {len(parameters)} array(s){also}, got {len(arrays)}; "
                f"it declares {declared(parameters)}{self._unused or ''}"
            )
        for parameter, array in zip(rest, arrays, strict=False):
            if parameter.index in placed:
                raise InvalidArgumentError(
                    f"{kernel}: {parameter.label} got an array by position and another by name; positional arrays are "
                    f"for the first bindings: {declared(rest)}"
                )
            placed[parameter.index] = array
        placed.update(filled)
        missing = [p.label for p in parameters if p.index not in placed]
        if missing:
            lists = next((text for text in map(_wrong_list, rest, arrays) if text), "")
            problem = lists or f"{', '.join(dict.fromkeys(missing))} missing"
            raise InvalidArgumentError(f"{kernel}: {problem}; the shader declares {declared(parameters)}")
        return tuple(placed[p.index] for p in parameters), push

    @property
    def single(self) -> dict[str, int]:
        """The names of bindings that take one argument, with the index of their parameter."""
        return {name: indices[0] for name in self._declared_names() if len(indices := self._indices[name]) == 1}

    def grid(self, name: str) -> PerElement:
        """Returns the grid of ``groups=name``."""
        if name in self._shared:
            self._check(name)
        indices = self._indices.get(name)
        if indices is None:
            known = list(self._indices)
            close = close_to(name, known, 1)
            raise InvalidArgumentError(
                f"{self._kernel}: groups is an int or up to three, none negative, or an argument's name, of: "
                f"{', '.join(self._declared_names()) or 'none, its bindings have no names'}; got {shown(name)}"
                + (f"; did you mean {close[0]}?" if close else "")
            )
        return PerElement(indices[0])

    def blocks(self, name: str) -> tuple[BufferBlock, ...]:
        """Returns the blocks of the binding with that name; none if there is no such binding."""
        if name in self._shared:
            self._check(name)
        return self._by_index[self._indices[name][0]].binding.blocks if name in self._indices else ()

    def check_push(self, fields: Iterable[str]) -> None:
        """Checks that the names in a call that passes all bindings by position are push constants."""
        for name in fields:
            self._check(name)
            if name in self._indices:
                label = self._by_index[self._indices[name][0]].label
                raise InvalidArgumentError(
                    f"{self._kernel}: {label} got an array by position and another by name; give one of them"
                )

    def _by_name(self, named: Named) -> tuple[dict[int, KernelArgument], Named]:
        placed: dict[int, KernelArgument] = {}
        push: Named = {}
        for name, value in named.items():
            self._check(name)
            indices = self._indices.get(name)
            if indices is None:
                push[name] = value
                continue
            parameter = self._by_index[indices[0]]
            if indices[0] in placed:
                raise InvalidArgumentError(
                    f"{self._kernel}: {parameter.label} got two arrays, by its variable's and by its block's name"
                )
            count = parameter.binding.count
            if count <= 1:  # a run-time sized array gets its list as a whole
                placed[indices[0]] = value
            elif isinstance(value, _SEQUENCES) and len(value) == count:
                placed.update(zip(indices, value, strict=True))
            else:
                got = f"{len(value)}" if isinstance(value, _SEQUENCES) else _type_name(value)
                raise InvalidArgumentError(
                    f"{self._kernel}: {parameter.label} is an array of {count} bindings; {name}= takes a list of "
                    f"{count} arrays, got {got}"
                )
        return placed, push

    def _check(self, name: str) -> None:
        """Raises for a name that is unknown or ambiguous."""
        if name in self._shared:
            labels = [self._by_index[index].label for index in self._shared[name]]
            others = [n for index in self._shared[name] for n in self._names_of(index) if n not in self._shared]
            advice = f"write {' and '.join(f'{n}=' for n in others)}, or give" if others else "give"
            raise InvalidArgumentError(
                f"{self._kernel}: {shown(name)} names {' and '.join(labels)}; {advice} the arrays by position"
            )
        if name in self._indices:
            if name in self._push:
                raise InvalidArgumentError(
                    f"{self._kernel}: {shown(name)} names {self._by_index[self._indices[name][0]].label} and a "
                    f"{self._noun}; give the array by position and the {self._noun} as push={{{name!r}: …}}"
                )
        elif name not in self._push and (self._push or self._indices):
            known = [*self._indices, *self._push]
            close = close_to(name, known, 1)
            guess = f"; did you mean {close[0]}?" if close else ""
            raise NotFoundError(
                f"{self._kernel} has no {self._noun} {shown(name)}; it has: {', '.join(self._push) or 'none'}; and no "
                f"binding of that name: {', '.join(self._declared_names()) or 'its bindings have none'}{guess}"
            )

    def _declared_names(self) -> list[str]:
        """Returns the names of bindings, without those of their blocks' members."""
        declared_names = {name for p in self._parameters for b in p.binding.blocks for name in (b.name, b.structure)}
        return [name for name in self._indices if name in declared_names]

    def __str__(self) -> str:
        return ", ".join(self._declared_names()) or "no bindings with names"

    def _names_of(self, index: int) -> list[str]:
        blocks = self._by_index[index].binding.blocks
        return [name for block in blocks for name in block.names if name in self._indices]


def _type_name(value: object) -> str:
    return (
        f"one array of shape {value.shape}"
        if isinstance(value, (np.ndarray, DeviceArray, DeviceImage))
        else type(value).__name__
    )


def _spread(parameters: Sequence[Parameter], arrays: Sequence[KernelArgument]) -> list[KernelArgument]:
    """Replaces a list passed by position for a whole array of bindings by its items."""
    spread: list[KernelArgument] = []
    for array in arrays:
        at = len(spread)
        parameter = parameters[at] if at < len(parameters) else None
        count = parameter.binding.count if parameter is not None else 0
        first = at == 0 or parameter is None or parameters[at - 1].binding != parameter.binding
        numbers = isinstance(array, _SEQUENCES) and any(isinstance(item, (int, float)) for item in array)
        if count > 1 and first and isinstance(array, _SEQUENCES) and len(array) == count and not numbers:
            spread += array
        else:
            spread.append(array)
    return spread


def _wrong_list(parameter: Parameter, value: KernelArgument) -> str:
    """Describes the error in a positional argument for an array of bindings; ``""`` if there is none."""
    count = parameter.binding.count
    if count <= 1:
        return ""
    got = f"one of {len(value)}" if isinstance(value, _SEQUENCES) else _type_name(value)
    return f"{parameter.label} is an array of {count} bindings and takes a list of {count}, got {got}"


def dtype_of_block(
    name: str,
    length: int | None,
    names: Names,
    parameters: Sequence[Parameter],
    reflection: ShaderModuleReflection,
    kernel: str,
) -> np.dtype[np.generic]:
    """Returns the dtype of a binding's block, or of a pointer's target block; see ``Kernel.dtype``."""
    blocks = names.blocks(name) or tuple(b for b in reflection.pointees if b.name == name)
    block = next((b for b in blocks if name in (b.name, b.structure)), None)
    if block is None or not block.members:
        pointed = ", ".join(b.name for b in reflection.pointees)
        shown_blocks = [b for parameter in parameters for b in parameter.binding.blocks if b.members]
        known = [word for shown_block in shown_blocks for word in (shown_block.name, shown_block.structure) if word]
        raise NotFoundError(
            f"{kernel} has no block {shown(name)}; it has: {', '.join(dict.fromkeys(known)) or 'none'}"
            + (f"; and pointers to: {pointed}" if pointed else "")
        )
    if length is not None and (isinstance(length, bool) or not isinstance(length, int) or length < 0):
        raise InvalidArgumentError(f"length is a number of elements, got {shown(length)}")
    if only_array(block.members) is not None and length is None:
        return element_dtype(block)
    return block_dtype(block, length)

"""Values of a recording that change between runs: push constants and arguments, by name.

A name is that of a push constant or of a binding, as in a call. It may be qualified, where calls differ:
``"advect.dt"`` for the calls of one kernel, ``"advect[1].dt"`` for the second of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from ...status import InvalidArgumentError, NotFoundError, shown
from ..arrays.array import DeviceArray
from ..arrays.recorder import Step
from ..images.image import DeviceImage
from ..images.sampler import Sampler
from ..images.texel_array import TexelArray
from ..kernels.parameters.parameter import KernelArgument
from ..kernels.parameters.push import PushValue
from ..kernels.recorded_call import RecordedCall

Value: TypeAlias = "KernelArgument | PushValue"
"""A push constant, or an argument for a binding."""

_ON_DEVICE: Final = (DeviceArray, DeviceImage, TexelArray, Sampler)
_NAME: Final = re.compile(r"(?:(?P<kernel>.*?)(?:\[(?P<number>\d+)\])?\.)?(?P<member>[^.\[\]]+)")


def with_values(steps: Sequence[Step], values: Mapping[str, Value]) -> tuple[Step, ...]:
    """Returns steps with other values, by name.

    A push constant is set in every call that has one of the name. An array takes the place of the array that the name
    stands for, wherever the recording uses that; a value of the host takes the place of values of the host.

    Raises:
        NotFoundError: no call has the name; the message lists those that exist.
        InvalidArgumentError: the name stands for different values in several calls, or no call takes the value.
    """
    changed = list(steps)
    for name, value in values.items():
        _set(changed, name, value)
    return tuple(changed)


def push_targets(steps: Sequence[Step], name: str) -> list[tuple[int, str]]:
    """Returns the indices of the calls whose push constant a name stands for, and its name in each; none for others."""
    pushed = []
    for index, call, member in _calls(steps, name):
        if call.binder.names.single.get(member) is not None:
            return []
        if member in call.binder.push_members:
            pushed.append((index, member))
    return pushed


def _set(steps: list[Step], name: str, value: Value) -> None:
    pushed: list[int] = []
    bound: list[tuple[int, int]] = []  # indices of the step, and of the parameter
    for index, call, member in _calls(steps, name):
        if member in call.binder.push_members:
            pushed.append(index)
        parameter = call.binder.names.single.get(member)
        if parameter is not None:
            bound.append((index, parameter))
    if pushed and bound:
        raise InvalidArgumentError(
            f"{name} is a push constant of {_label(steps, pushed[0])} and a binding of {_label(steps, bound[0][0])}: "
            f"write {_label(steps, pushed[0])}.{name}, or the other"
        )
    if pushed:
        _set_push(steps, name, pushed, value)
    elif bound:
        _set_argument(steps, name, bound, value)
    else:
        raise NotFoundError(f"the recording has no value {shown(name)}; it has: {', '.join(_known(steps)) or 'none'}")


def _calls(steps: Sequence[Step], name: str) -> Iterator[tuple[int, RecordedCall, str]]:
    """Yields the calls that a name may stand for, each with its index and the name in it."""
    match = _NAME.fullmatch(name)
    if match is None:
        return
    kernel, number, member = match["kernel"], match["number"], match["member"]
    counts: dict[str, int] = {}
    for index, step in enumerate(steps):
        if isinstance(step, RecordedCall):
            at = counts[step.name] = counts.get(step.name, -1) + 1
            if (kernel is None or kernel == step.name) and (number is None or int(number) == at):
                yield index, step, member


def _call(steps: Sequence[Step], index: int) -> RecordedCall:
    step = steps[index]
    assert isinstance(step, RecordedCall)
    return step


def _label(steps: Sequence[Step], index: int) -> str:
    """Returns the qualification of a call: its kernel's name, with a number if there are several."""
    name = steps[index].name
    same = [at for at, step in enumerate(steps) if isinstance(step, RecordedCall) and step.name == name]
    return name if len(same) == 1 else f"{name}[{same.index(index)}]"


def _known(steps: Sequence[Step]) -> list[str]:
    names: dict[str, None] = {}
    for step in steps:
        if isinstance(step, RecordedCall):
            names.update(dict.fromkeys((*step.binder.push_members, *step.binder.names.single)))
    return list(names)


def _set_push(steps: list[Step], name: str, indices: Sequence[int], value: Value) -> None:
    member = name.rpartition(".")[2]
    old = {_call(steps, index).push_bytes(member): index for index in indices}
    if len(old) > 1:
        raise InvalidArgumentError(_ambiguous(steps, name, list(old.values())[:2]))
    for index in indices:
        call = _call(steps, index)
        steps[index] = call.with_push(member, value)


def _set_argument(steps: list[Step], name: str, places: Sequence[tuple[int, int]], value: Value) -> None:
    member = name.rpartition(".")[2]
    olds = {id(_call(steps, index).arguments[parameter]): (index, parameter) for index, parameter in places}
    if not isinstance(value, _ON_DEVICE):
        for index, parameter in places:
            call = _call(steps, index)
            if parameter not in call.constants:
                raise InvalidArgumentError(
                    f"{_label(steps, index)}.{member} was recorded with an array on the device, got "
                    f"{type(value).__name__}: write that array with copy_from(), or give another on the device"
                )
            steps[index] = call.with_argument(parameter, value)
        return
    if len(olds) > 1:
        raise InvalidArgumentError(_ambiguous(steps, name, [index for index, _ in list(olds.values())[:2]]))
    index, parameter = next(iter(olds.values()))
    replace(steps, _call(steps, index).arguments[parameter], value, f"{_label(steps, index)}.{name.rpartition('.')[2]}")


def replace(steps: list[Step], old: object, new: KernelArgument, where: str) -> None:
    """Replaces an argument in all steps that use it."""
    uses = getattr(old, "uses", None)
    for index, step in enumerate(steps):
        step = step.replaced(old, new)
        if uses is not None and any(marked is uses for marked, _, _ in step.marks):
            raise InvalidArgumentError(
                f"{where} cannot be replaced by name: {steps[index].name} uses another view of the same array, or its "
                "address: record again with the other array"
            )
        steps[index] = step


def _ambiguous(steps: Sequence[Step], name: str, indices: Sequence[int]) -> str:
    member = name.rpartition(".")[2]
    first, second = (f"{_label(steps, index)}.{member}" for index in indices)
    return f'{name} stands for different values in {first} and {second}: give {{"{first}": …}} for one of them'

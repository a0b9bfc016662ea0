"""A function of a compiled program as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from ..formats.image_format import ImageFormat
from ..formats.picture import array_to_picture, picture_to_array
from ..hal_vulkan import Buffer, CommandBuffer
from ..runtime import DeviceArray, Session
from ..runtime.device import Device
from ..runtime.sessions.signature import Argument, Signature, dtypes_of, element_type_of
from ..status import InvalidArgumentError
from ..vm.execution.bytecode_module import BytecodeModule
from .picture import Picture, Size
from .uniforms import Uniforms

if TYPE_CHECKING:
    from ..runtime.images.image import DeviceImage

Role = Literal["time", "frame", "mouse", "state"]

_MOUSE: Final = (4,)


class ProgramPicture(Picture):
    """The first result of a function that is called once a frame.

    Of its arguments the first float without a shape is the time in seconds, the first integer without one the number of
    the frame, and the first vector of four floats the mouse. The others are its state: zeros at first, then the results
    after the picture, in order.
    """

    def __init__(self, device: Device, module: BytecodeModule, function: str) -> None:
        """Loads a module; ``function`` is its function's name.

        Raises:
            NotFoundError: there is no such function.
            InvalidArgumentError: the first result is not a picture, or the program's state has no next value among the
                results.
        """
        self.device = device
        self._session = Session(device)
        try:
            self._session.append_module(module)
            self._function = self._session.lookup(f"{module.name}.{function}")
            signature = self._function.signature.without_storages()
            height, width, channels, dtype = _picture_of(signature)
            self._roles = _roles(signature.inputs)
            self._states = [
                argument for argument, role in zip(signature.inputs, self._roles, strict=True) if role == "state"
            ]
            _check_states(signature, self._states)
        except BaseException:
            self._session.close()
            raise
        self.size: Size = (width, height)
        self._is_direct = dtype == np.float32 and channels == 4
        self._format = ImageFormat.parse("rgba32float" if self._is_direct else "rgba8unorm")
        self.image: DeviceImage = device.empty_image((height, width), self._format.name)
        self.restart()

    def restart(self) -> None:
        self._values: list[Any] = [np.zeros(_shape_of(state), state.dtypes[0]) for state in self._states]

    def resize(self, size: Size, image_format: str = "rgba8unorm") -> None:
        """Does nothing, as the program determines the picture's size."""

    def record(self, commands: CommandBuffer, uniforms: Uniforms, told: Buffer) -> None:
        values = {"time": uniforms.time, "frame": uniforms.frame, "mouse": uniforms.mouse}
        state = iter(self._values)
        results = self._function(*(next(state) if role == "state" else values[role] for role in self._roles))
        picture, *following = results if isinstance(results, tuple) else (results,)
        self._values = following[: len(self._values)]
        if self._is_direct and isinstance(picture, DeviceArray) and picture.device is self.device:
            commands.copy_buffer_to_image(picture.buffer, self.image.hal)
        else:
            name = self._function.name
            self.image.copy_from(picture_to_array(array_to_picture(np.asarray(picture), name), self._format, name))

    def close(self) -> None:
        self._session.close()


def _picture_of(signature: Signature) -> tuple[int, int, int, np.dtype[np.generic]]:
    """Returns height, width, channels and dtype of the first result."""
    first = signature.results[0] if signature.results else None
    declared = None if first is None else first.declared
    dtypes = dtypes_of(element_type_of(declared))
    shape = declared.shape if declared is not None and declared.is_tensor else None
    sizes = [size for size in shape or () if size]
    if not dtypes or len(sizes) != len(shape or ()) or len(sizes) not in (2, 3) or sizes[2:] not in ([], [3], [4]):
        raise InvalidArgumentError(
            f"{signature.name}: expected a picture as the first result, a tensor of height x width, or that x 3 or 4, "
            f"of floats from 0 to 1 or integers from 0 to 255; its results are "
            f"{', '.join(map(str, signature.results)) or 'none'}"
        )
    return sizes[0], sizes[1], sizes[2] if len(sizes) == 3 else 1, dtypes[0]


def _roles(arguments: Sequence[Argument]) -> list[Role]:
    roles: list[Role] = []
    for argument in arguments:
        shape = argument.shape if argument.is_tensor else ()
        kind = argument.dtypes[0].kind if argument.dtypes else {"f": "f", "F": "f"}.get(argument.letter, "i")
        role: Role = "state"
        if shape == () and kind == "f":
            role = "time"
        elif shape == () and kind in "iu":
            role = "frame"
        elif shape == _MOUSE and kind == "f":
            role = "mouse"
        roles.append("state" if role in roles else role)
    return roles


def _check_states(signature: Signature, states: Sequence[Argument]) -> None:
    wanted = [state.type_text for state in states]
    result_types = [result.type_text for result in signature.results[1:]]
    if wanted != result_types[: len(wanted)] or not all(state.dtypes for state in states):
        raise InvalidArgumentError(
            f"{signature.name}: expected the next values of {', '.join(map(str, states))} as the results after the "
            f"picture; these are {', '.join(result_types) or 'none'}"
        )


def _shape_of(argument: Argument) -> tuple[int, ...]:
    shape = argument.shape or ()
    if None in shape:
        raise InvalidArgumentError(f"expected state of a fixed shape, got {argument}")
    return tuple(size for size in shape if size is not None)

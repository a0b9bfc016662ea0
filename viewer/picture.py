"""The interface of pictures: each makes one image per frame."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from ..base.closeable import Closeable
from ..formats.picture import texels_to_picture
from ..hal_vulkan import Buffer, CommandBuffer
from ..hal_vulkan.pipelines.reports import ReportSlot
from ..runtime import DeviceImage
from ..runtime.device import Device
from .uniforms import Uniforms

Size = tuple[int, int]


class Picture(Closeable):
    """A source of frames, which are images on its device.

    Calling sequence: ``resize`` → ``record`` for each frame, in order → ``close``.

    Attributes:
        device: the picture's device.
        image: the image that the last recorded frame writes; ``resize`` replaces it.
        is_upward: whether the first row of the image is the lowest one.
        counts_upward: whether the source counts rows, and the mouse's position, from below, as Shadertoy does.
        size: the width and height.
        reports: the reports of its instrumented shaders.
        recorded: the key of a frame's commands, which may be submitted again as long as it is the same; ``None`` if
            each frame has its own.
    """

    device: Device
    image: DeviceImage
    is_upward: bool = False
    counts_upward: bool = False
    size: Size
    reports: tuple[ReportSlot, ...] = ()
    recorded: object = None

    @abstractmethod
    def resize(self, size: Size, image_format: str = "rgba8unorm") -> None:
        """Makes the objects that depend on the size; a source with a fixed size keeps it.

        Args:
            size: the width and height.
            image_format: the format that is shown without a conversion, for sources that leave it open.
        """

    def take_over(self, before: Picture) -> None:
        """Takes the state of an earlier version of it, which is closed next.

        After the next ``resize``, the common declarations have its contents.
        """

    @abstractmethod
    def record(self, commands: CommandBuffer, uniforms: Uniforms, told: Buffer) -> None:
        """Adds the commands of a frame.

        Args:
            commands: the commands that are being recorded.
            uniforms: the uniforms of this frame.
            told: the buffer that holds what ``pack`` returns when the commands run.
        """

    def pack(self, uniforms: Uniforms) -> bytes:
        """Packs the uniforms that a frame's commands read, at most ``UNIFORM_BYTES``."""
        return b""

    def restart(self) -> None:
        """Resets the state that frames pass on, if there is any."""


def pixels_of(picture: Picture) -> np.ndarray:
    """Returns the picture as an array of shape (height, width, 4), uint8, once the frame is done."""
    image = picture.image
    pixels = texels_to_picture(image.texels(), image.format, "the picture")
    return np.flipud(pixels) if picture.is_upward else pixels

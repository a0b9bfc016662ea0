"""Exports of the ``hal`` module about collectives between devices, which are not implemented."""

from __future__ import annotations

from ....status import UnimplementedError
from ....vm.native.module import export
from .device_table import DeviceTable
from .reference import Ref


class Channel:
    """A collective channel; none can be made."""


class Event:
    """An event within a command buffer; no module makes one."""


class ChannelExports(DeviceTable):
    """``hal.channel.*``."""

    @export("channel.create", "0rIIrrii_r", "0rIirrii_r")
    def channel_create(
        self, device: Ref, affinity: int, flags: int, identifier: Ref, group: Ref, rank: int, count: int
    ) -> Channel:
        """Not implemented."""
        raise _no_collectives("channel.create")

    @export("channel.split", "0riiI_r", "0riii_r")
    def channel_split(self, channel: Ref, color: int, key: int, flags: int) -> Channel:
        """Not implemented."""
        raise _no_collectives("channel.split")

    @export("channel.rank_and_count", "0r_ii")
    def channel_rank_and_count(self, channel: Ref) -> tuple[int, int]:
        """Not implemented."""
        raise _no_collectives("channel.rank_and_count")

    @export("command_buffer.collective", "0rriiiirrIIIII_v")
    def command_buffer_collective(self, *arguments: Ref) -> None:
        """Not implemented."""
        raise _no_collectives("command_buffer.collective")


def _no_collectives(what: str) -> UnimplementedError:
    return UnimplementedError(
        f"{what}: collectives between devices are not implemented; compile the program for one device a context"
    )

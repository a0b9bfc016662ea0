"""Flame views: the host's and the device's time in a program's calls, from a profile.

>>> with session.profile() as profile:
...     session.call("module.predict", image)
>>> flame_figure(profile).show()
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from plotly import graph_objects as go

from ....runtime.profiling.entry import ProfiledCall
from ....runtime.profiling.profile import Profile
from .chart import Chart, label, new_figure
from .palette import FAINT, MUTED, SEGMENT_COLOURS
from .units import percent_text, time_text

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_SHARES: Final = {
    "arguments_ns": ("arguments", "record"),
    "vm_ns": ("virtual machine", "update"),
    "hal_ns": ("HAL", "submit"),
    "native_ns": ("other native functions", "create"),
    "waits_ns": ("waits", "wake"),
    "results_ns": ("results", "read"),
}
"""The host's shares: their names, and the segments whose colours they use."""
_HEIGHT: Final = 210
_LEAST: Final = 0.002


class _Tree:
    """The blocks of an icicle: names, parents, own times and colours. A block is as wide as its own time and its
    children's.
    """

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.names: list[str] = []
        self.parents: list[str] = []
        self.own: list[float] = []
        self.idle: list[float] = []
        self.colours: list[str] = []

    def add(self, name: str, parent: str, own: float, colour: str, idle: float = 0.0) -> str:
        """Adds a block to another, or at the root for ``""``; ``idle`` widens the block, but is not part of the time in
        its text. Returns the block's id.
        """
        self.ids.append(f"{parent}/{name}")
        self.names.append(label(name))
        self.parents.append(parent)
        self.own.append(max(own + idle, 0.0))
        self.idle.append(idle)
        self.colours.append(colour)
        return self.ids[-1]

    def figure(self, whole: float, low: float, high: float) -> go.Icicle:
        totals = dict(zip(self.ids, self.own, strict=True))
        for index in reversed(range(len(self.ids))):
            if self.parents[index]:
                totals[self.parents[index]] += totals[self.ids[index]]
        told = [totals[name] - idle for name, idle in zip(self.ids, self.idle, strict=True)]
        return go.Icicle(
            ids=self.ids,
            labels=self.names,
            parents=self.parents,
            values=self.own,
            branchvalues="remainder",
            sort=False,
            domain={"y": [low, high]},
            tiling={"orientation": "v", "pad": 1},
            pathbar={"visible": False},
            marker={"colors": self.colours, "line": {"width": 0}},
            leaf={"opacity": 1},  # texts are coloured for the colours themselves
            text=[f"{time_text(time, 3)}, {percent_text(time / whole if whole else None)}" for time in told],
            texttemplate="%{label}<br>%{text}",
            hovertemplate="<b>%{label}</b><br>%{text} of a call<extra></extra>",
        )


def flame_figure(profile: Profile) -> Figure:
    """Draws the mean call of a profile as two icicles of one scale: the host's time by purpose and native function, and
    the device's by export. Blocks below 0.2 % are merged into their parents.
    """
    figure = go.Figure()
    calls = [call for call in profile.calls if call.vm_ns is not None] or list(profile.calls)
    whole = sum(call.total_ns for call in calls) / max(len(calls), 1)
    host, device = _host(profile, calls, whole), _device(profile, whole)
    figure.add_trace(host.figure(whole, 0.56, 1))
    figure.add_trace(device.figure(whole, 0, 0.44))
    new_figure(figure, 2 * _HEIGHT + 60, legend=False, left=8)
    figure.update_layout(margin={"l": 8, "r": 8, "t": 26, "b": 8}, xaxis_visible=False, yaxis_visible=False)
    for name, y in (("host", 1.0), ("device, on the same scale", 0.44)):
        figure.add_annotation(
            text=name,
            x=0,
            y=y,
            xref="paper",
            yref="paper",
            xanchor="left",
            yanchor="bottom",
            showarrow=False,
            font={"size": 12, "color": MUTED},
        )
    return figure


def _host(profile: Profile, calls: list[ProfiledCall], whole: float) -> _Tree:
    natives: dict[tuple[str, str], float] = defaultdict(float)
    names = {call.number: call.name for call in calls}
    # Waits are a separate share: they do not count as time of the native function.
    waited: dict[tuple[int | None, str], list[tuple[int, int]]] = defaultdict(list)
    for wait in profile.waits:
        waited[wait.call, wait.name].append((wait.begin_ns, wait.end_ns))
    for name, call, begin, end in profile.native_calls:
        if call in names:
            inside = sum(
                min(end, last) - max(begin, first) for first, last in waited[call, name] if first < end and begin < last
            )
            natives[names[call], name] += (end - begin - inside) / len(calls)
    tree = _Tree()
    root = tree.add(
        "a call" if len(set(names.values())) > 1 else next(iter(names.values()), "no calls"), "", 0.0, FAINT
    )
    for function in dict.fromkeys(names.values()):
        mine = [call for call in calls if call.name == function]
        parent = root if len(set(names.values())) == 1 else tree.add(function, root, 0.0, FAINT)
        for field, (name, segment) in _SHARES.items():
            time = sum(getattr(point, field) or 0 for point in mine) / len(calls)
            if time <= 0:
                continue
            parts = [
                (spent, native)
                for (caller, native), spent in natives.items()
                if caller == function and spent > _LEAST * whole and _share_of(native) == field
            ]
            share = tree.add(name, parent, time - sum(spent for spent, _ in parts), SEGMENT_COLOURS[segment])
            for spent, native in sorted(parts, reverse=True):
                tree.add(native, share, spent, SEGMENT_COLOURS[segment])
    return tree


def _share_of(native: str) -> str:
    return "hal_ns" if native.startswith("hal.") else "native_ns"


def _device(profile: Profile, whole: float) -> _Tree:
    tree = _Tree()
    count = max(len(profile.calls), 1)
    numbers = {call.number for call in profile.calls}
    busy = sum(call.device_ns or 0.0 for call in profile.calls) / count
    root = tree.add("device", "", 0.0, FAINT, idle=whole - busy)
    times: dict[str, float] = defaultdict(float)
    for dispatch in profile.dispatches:
        if dispatch.call in numbers and dispatch.duration_ns is not None:
            times[dispatch.name] += dispatch.duration_ns / count
    # Dispatches that ran side by side took less than the sum of their times.
    scale = busy / sum(times.values()) if times and busy else 0.0
    for name, time in sorted(times.items(), key=lambda pair: -pair[1]):
        tree.add(name, root, scale * time, SEGMENT_COLOURS["execute"])
    return tree


def flame_chart(profile: Profile, name: str) -> Chart:
    count = len(profile.calls)
    text = (
        f"The mean of {count} calls in which every dispatch was timed, which lengthens them. Above, the host: arguments"
        ", the program's own code in the virtual machine, functions of the HAL, waits, results. Below, the device: how "
        "long each export ran; grey is the time in which the device had nothing of the call to do. A click on a block "
        "enlarges it."
    )
    return Chart(f"A call of {name}", text, flame_figure(profile))

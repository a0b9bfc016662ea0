"""Kinds of targets and their settings: the table for checks, defaults and docs/reference/study.md."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ...base.lazy_dataclass import dataclass
from ...spirv.sources.language import LANGUAGES
from ...status import InvalidArgumentError, shown
from .messages import did_you_mean
from .sample import SEGMENTS
from .setting_types import (
    BINDINGS,
    BOOLEAN,
    DEFINES,
    ELEMENT_TYPE,
    FILES,
    FOLDERS,
    GROUPS,
    INPUTS,
    NUMBERS,
    PUSH,
    SECONDS,
    TEXT,
    SettingType,
    choice,
    integer,
)

MAX_DISPATCHES: Final = 1 << 16
"""The largest number of dispatches in a sample; each costs a driver about 100 bytes and a microsecond."""

_MANY: Final = 1 << 12
_LONGEST_LOOK: Final = 1_000_000
"""The longest wait of ``wait = "look"``, in microseconds."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of a kind of target; None is also accepted if it is the default."""

    name: str
    type: SettingType
    doc: str
    default: object = None
    required: bool = False

    def check(self, value: object) -> object:
        """Returns the value in its canonical form; an error is located at the path within the value."""
        return None if value is None and self.default is None and not self.required else self.type.check(value)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of target, its default headline, and whether the empty kernel can be measured in the same setting."""

    name: str
    doc: str
    measure: str
    settings: tuple[Setting, ...]
    baseline: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(setting.name for setting in self.settings)

    def find(self, name: str) -> Setting:
        """Returns the setting of a name. InvalidArgumentError: there is none; the message lists all."""
        for setting in self.settings:
            if setting.name == name:
                return setting
        raise InvalidArgumentError(
            f"no setting of kind {self.name} is named {shown(name)}{did_you_mean(name, self.names)}; "
            f"its settings are {', '.join(self.names)}"
        )


_SOURCE: Final = (
    Setting("defines", DEFINES, "macros of the source", {}),
    Setting("language", choice(*LANGUAGES), "of the source, where the name of the file does not tell"),
    Setting("include_dirs", FOLDERS, "folders for the source's `#include`, relative to the study's", []),
)
_KINDS: Final = (
    Kind(
        "kernel",
        "Dispatches of a kernel, for which the host waits.",
        "execute",
        (
            Setting(
                "source",
                TEXT,
                "`builtin:` and a name, or a file: SPIR-V or a source",
                required=True,
            ),
            Setting("entry_point", TEXT, "the entry point, where there are several"),
            Setting("specialization", NUMBERS, "values of specialization constants by number or name", {}),
            *_SOURCE,
            Setting("push", PUSH, "push constants by name, or in the order of the block", {}),
            Setting("groups", GROUPS, "workgroups; inferred by default"),
            Setting(
                "bindings",
                BINDINGS,
                "a table `{shape, dtype, init}`, of images `{shape, format, init, sampler}`, or a text "
                "(`4xf32=1,2,3,4`, `64x64xrgba8unorm=@cat.png`, `sampler:filter=nearest`) for each; with `name` in a "
                "table for the "
                "binding of that variable or block, and `{block = {…}}` for a block by its members",
                [],
            ),
            Setting("dtype", ELEMENT_TYPE, "element type of bindings that have none of their own", "f32"),
            Setting("subgroup_size", integer(1), "ask for subgroups of this size"),
            Setting("batch", integer(1, MAX_DISPATCHES), "dispatches in a command buffer", 1),
            Setting("command_buffers", integer(1, _MANY), "command buffers in a submission", 1),
            Setting("in_flight", integer(1, _MANY), "submissions before the host waits", 1),
            Setting("queues", integer(1), "queues that submissions are spread over", 1),
            Setting("record", choice("once", "each"), "whether commands are recorded once, or for each sample", "once"),
            Setting("barrier", choice("between", "none"), "what is between dispatches of a command buffer", "between"),
            Setting("indirect", BOOLEAN, "whether the device reads the number of workgroups from memory", False),
            Setting("descriptors", choice("auto", "sets", "push", "address"), "how bindings reach the kernel", "auto"),
            Setting(
                "calls",
                choice("native", "hal", "kernel"),
                "what is timed: Vulkan's calls, the HAL's, or a kernel's",
                "native",
            ),
            Setting("wait", choice("host", "thread", "poll", "look"), "how the host waits", "host"),
            Setting("look", integer(0, _LONGEST_LOOK), 'microseconds that `wait = "look"` looks before it sleeps', 50),
            Setting("read", BOOLEAN, "whether the results are read back in each sample", False),
            Setting("update", BOOLEAN, "whether the inputs are written in each sample", False),
            Setting(
                "timestamps",
                choice("span", "each", "none"),
                "device timestamps: around all dispatches, each, or none",
                "span",
            ),
            Setting(
                "cache",
                choice("hot", "cold"),
                "whether device memory is swept before each sample; default: `sampling.cache`",
            ),
            Setting(
                "ranges",
                integer(1, MAX_DISPATCHES),
                "ranges of memory that the dispatches' bindings rotate through",
                1,
            ),
            Setting("robust", BOOLEAN, "whether the device checks accesses", False),
            Setting("sanitize", BOOLEAN, "whether the kernel reports accesses that go wrong", False),
            Setting("host_sleep", SECONDS, "seconds of sleep in each sample, for tests", 0),
            Setting(
                "host_sleep_in",
                choice(*(name for name in SEGMENTS if name != "call")),
                "the segment of the sleep",
                "record",
            ),
        ),
        baseline=True,
    ),
    Kind(
        "module",
        "Calls of a function of a compiled module.",
        "total",
        (
            Setting("source", TEXT, "a `.vmfb` file", required=True),
            Setting("function", TEXT, "the function; the only one where not given"),
            Setting(
                "inputs", INPUTS, "arguments: texts as for `pumice run --input`, or tables `{shape, dtype, init}`", []
            ),
            Setting("in_flight", integer(1, _MANY), "calls before the host waits", 1),
            Setting("path", choice("session", "direct", "async"), "how it is called", "session"),
            Setting("read", BOOLEAN, "whether the results are read back in each sample", True),
            Setting("parameters", FILES, "parameter files by scope", {}),
            Setting("sanitize", BOOLEAN, "whether kernels report accesses that go wrong", False),
        ),
    ),
    Kind(
        "graph",
        "Runs of a recording: many calls of kernels as one submission.",
        "execute",
        (
            Setting("source", TEXT, "a Python file, whose kernels are texts or come with pumice", required=True),
            Setting("function", TEXT, "its function that takes the device and returns the recording", "record"),
            Setting("values", NUMBERS, "push constants by name, as for `Recording.update`", {}),
            Setting("batch", integer(1, _MANY), "runs in a submission", 1),
            Setting("calls", choice("native", "run"), "what is timed: Vulkan's calls, or `Recording.run`", "native"),
        ),
    ),
    Kind(
        "copy",
        "Copies of memory.",
        "execute",
        (
            Setting("bytes", integer(1), "bytes of a copy", required=True),
            Setting(
                "direction",
                choice("host_to_device", "device_to_host", "device_to_device", "host_write", "host_read"),
                "direction; `host_` ones are by the host through mapped memory",
                "host_to_device",
            ),
            Setting("memory", TEXT, "the kind of memory: device_local, host_local, host_cached or mapped"),
            Setting("batch", integer(1, MAX_DISPATCHES), "copies in a command buffer", 1),
            Setting("offset", integer(0), "start in both buffers, in bytes", 0),
        ),
    ),
    Kind(
        "pipeline",
        "Creation of a compute pipeline.",
        "create",
        (
            Setting("source", TEXT, "as for a kernel", required=True),
            *_SOURCE,
            Setting("entry_point", TEXT, "the entry point, where there are several"),
            Setting("specialization", NUMBERS, "values of specialization constants by number or name", {}),
            Setting("cache", choice("cold", "memory", "disk"), "which pipeline cache has the pipeline", "cold"),
            Setting("dispatch", BOOLEAN, "whether the first dispatch is part of the sample", True),
        ),
    ),
    Kind(
        "semaphore",
        "Signals of a timeline semaphore, on which waiters wake.",
        "wake",
        (
            Setting("signal", choice("host", "device"), "who signals", "host"),
            Setting("wait", choice("host", "thread", "poll", "asyncio", "look"), "how waiters wait", "host"),
            Setting("look", integer(0, _LONGEST_LOOK), 'microseconds that `wait = "look"` looks before it sleeps', 50),
            Setting("waiters", integer(1, _MANY), "number of waiters", 1),
        ),
    ),
    Kind(
        "submit",
        "Submissions of no work.",
        "submit",
        (
            Setting("command_buffers", integer(0, _MANY), "command buffers in a submission", 1),
            Setting("waits", integer(0, _MANY), "semaphores that it waits for", 0),
            Setting("signals", integer(1, _MANY), "semaphores that it signals", 1),
            Setting("in_flight", integer(1, _MANY), "submissions before the host waits", 1),
            Setting("dispatches", integer(0, MAX_DISPATCHES), "dispatches of the empty kernel in a command buffer", 0),
        ),
    ),
)

KINDS: Final[Mapping[str, Kind]] = MappingProxyType({kind.name: kind for kind in _KINDS})
"""All kinds of targets by name."""

BASELINE_SETTINGS: Final = (
    "groups",
    "batch",
    "command_buffers",
    "in_flight",
    "queues",
    "record",
    "barrier",
    "indirect",
    "descriptors",
    "calls",
    "wait",
    "timestamps",
    "cache",
)
"""The settings that a baseline shares with its points; all others have defaults."""

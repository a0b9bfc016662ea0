"""Amber scripts: test cases for drivers as Khronos writes them, run on any Vulkan device.

``parse`` reads a script of either form (AmberScript, and the older VkScript with ``[compute shader]`` sections) as
plain data, ``run`` runs one and returns a report, ``format_script`` writes one. Facts of both forms:
https://github.com/google/amber, docs/amber_script.md and docs/vk_script.md.

Read: report, source, types, values, script, buffer_parser, capture, command_parser, expectations, pipeline_parser,
parser, requirements, resources, shaders, runner, vkscript, reading, running, writer.
"""

from typing import TYPE_CHECKING

from ..base.lazy import lazy_exports

if TYPE_CHECKING:
    from .reading import parse, parse_text
    from .report import Outcome, ScriptReport
    from .running import run
    from .script import Script
    from .source import ScriptError, UnsupportedScriptError
    from .writer import format_script

__all__ = [
    "Outcome",
    "Script",
    "ScriptError",
    "ScriptReport",
    "UnsupportedScriptError",
    "format_script",
    "parse",
    "parse_text",
    "run",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            ".reading": ("parse", "parse_text"),
            ".report": ("Outcome", "ScriptReport"),
            ".running": ("run",),
            ".script": ("Script",),
            ".source": ("ScriptError", "UnsupportedScriptError"),
            ".writer": ("format_script",),
        },
    )

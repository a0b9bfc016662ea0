"""Amber scripts: test cases for drivers as Khronos writes them, run on any Vulkan device.

``parse`` reads a script of either form (AmberScript, and the older VkScript with ``[compute shader]`` sections) as
plain data, ``run`` runs one and says what came of it, ``format_script`` writes one. Facts of both forms:
https://github.com/google/amber, docs/amber_script.md and docs/vk_script.md.

Imports: runtime, hal_vulkan, spirv, formats and the ground.

Read: `source`; `types`, `values`, `script`; `parser` with `buffer_parser`, `pipeline_parser` and `command_parser`,
`vkscript`, `reading`; `report`, `requirements`, `shaders`, `resources`, `expectations`, `runner`,
`running`; `writer`, `capture`.
"""

from ..lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        ".reading": ("parse", "parse_text"),
        ".running": ("run",),
        ".report": ("Outcome", "ScriptReport"),
        ".script": ("Script",),
        ".source": ("ScriptError", "UnsupportedScriptError"),
        ".writer": ("format_script",),
    },
)

"""The tables of ``pumice dump``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ...status import shown
from ...vm.bytecode.declaration import DECLARATION_KEY
from ..streams import put
from ..tables import heading, print_facts, print_table
from .module_summary import ABI, ABI_KEYS, Summary

_MAX_TEXT: Final = 60


def show_summary(summary: Summary) -> None:
    """Prints all of a module's summary; of its internal functions only the number and size."""
    heading(f"module {summary['name']}")
    internal = [function for function in summary["functions"] if function["name"] is None]
    print_facts(
        [
            ("version", str(summary["version"])),
            ("bytecode", f"version {summary['bytecode_version']}, {_bytes(summary['totals']['bytecode'])}"),
            ("features", ", ".join(summary["features"]) or "none"),
            ("depends on", _dependencies(summary["dependencies"])),
            ("functions", _functions(summary["functions"], internal)),
            ("globals", f"{_bytes(summary['global_bytes'])}, {_count(summary['global_refs'], 'reference')}"),
            ("debug information", "yes" if summary["has_debug_information"] else "no"),
            ("file", _bytes(summary["totals"]["file"])),
        ]
        + ([("problem", summary["problem"])] if summary["problem"] is not None else [])
        + [("attribute", f"{key} = {value}") for key, value in summary["attributes"].items()]
    )
    put()
    _section("exports", ("name", "convention", "declaration"), _exports(summary["exports"]))
    _section("calling conventions", ("name", "convention", "type", "with the ABI"), _abis(summary["exports"]))
    _section(
        "imports",
        ("name", "convention", ""),
        [
            (imported["name"], imported["calling_convention"], "" if imported["required"] else "optional")
            for imported in summary["imports"]
        ],
    )
    executables = [constant for constant in summary["rodata"] if "executable" in constant]
    _section(
        "pipelines",
        (
            "rodata",
            "entry point",
            "ABI",
            "local size",
            "bindings",
            "push constants",
            "SPIR-V",
            "capabilities",
            "source",
        ),
        [row for executable in executables for row in _pipelines(executable)],
    )
    _section("constants", ("rodata", "kind", "bytes", "contents"), map(_constant, summary["rodata"]))
    totals = summary["totals"]
    _section(
        "sizes",
        ("what", "count", "bytes"),
        [
            ("bytecode", str(len(summary["functions"])), str(totals["bytecode"])),
            *((kind, str(total["count"]), str(total["bytes"])) for kind, total in totals["rodata_by_kind"].items()),
            ("file", "1", str(totals["file"])),
        ],
    )


def _section(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Prints a table and a blank line, if there are rows."""
    several = list(rows)
    if several:
        heading(title)
        print_table(columns, several)


def _bytes(count: int) -> str:
    return f"{count} bytes" if count < 10_000 else f"{count} bytes ({count / 1024:.1f} KiB)"


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


def _dependencies(dependencies: Sequence[Summary]) -> str:
    return (
        ", ".join(
            f"{dependency['name']} of version {dependency['minimum_version']} or later"
            f"{'' if dependency['required'] else ' (optional)'}"
            for dependency in dependencies
        )
        or "nothing"
    )


def _functions(functions: Sequence[Summary], internal: Sequence[Summary]) -> str:
    text = f"{len(functions)}, {len(functions) - len(internal)} of them exported"
    return f"{text}; the largest of {_bytes(max(function['bytes'] for function in functions))}" if functions else text


def _exports(exports: Iterable[Summary]) -> list[tuple[str, str, str]]:
    rows = []
    for export in exports:
        others = [
            f"{key} = {value}" for key, value in export["attributes"].items() if key not in (DECLARATION_KEY, *ABI)
        ]
        text = export["declaration"] or export["attributes"].get(DECLARATION_KEY, "-")
        rows.append((export["name"], export["calling_convention"], "; ".join([text, *others])))
    return rows


def _abis(exports: Iterable[Summary]) -> list[tuple[str, ...]]:
    return [
        (export["name"], *(export["abi"][key] for key in ABI_KEYS)) for export in exports if export["abi"] is not None
    ]


def _pipelines(entry: Summary) -> list[tuple[str, ...]]:
    executable = entry["executable"]
    rows: list[tuple[str, ...]] = []
    for pipeline in executable["pipelines"]:
        module = executable["shader_modules"][pipeline["shader_module"]]
        rows.append(
            (
                str(entry["ordinal"]),
                pipeline["entry_point"],
                pipeline["dispatch_abi"].lower(),
                " x ".join(map(str, pipeline["local_size"])),
                str(pipeline["bindings"]),
                f"{pipeline['push_constant_bytes']} bytes",
                f"{'.'.join(map(str, module['version']))}, {module['bytes']} bytes",
                ", ".join(module["capabilities"]),
                pipeline["source"],
            )
        )
    return rows


def _constant(entry: Summary) -> tuple[str, str, str, str]:
    if "problem" in entry:
        contents = entry["problem"]
    elif entry["kind"] == "text":
        contents = shown(entry["text"], _MAX_TEXT)
    elif entry["kind"] == "vulkan executable":
        contents = _count(len(entry["executable"]["pipelines"]), "pipeline")
    elif entry["kind"] == "reference executable":
        contents = ", ".join(
            f"{function['name']}: {_count(function['operations'], 'operation')}" for function in entry["functions"]
        )
    elif entry.get("module") is not None:
        module = entry["module"]
        names = ", ".join(export["name"] for export in module["exports"])
        contents = f"{module['name']}, bytecode version {module['bytecode_version']}, exports {names or 'nothing'}"
    else:
        contents = ""
    return str(entry["ordinal"]), entry["kind"], str(entry["bytes"]), contents

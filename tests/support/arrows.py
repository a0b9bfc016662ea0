"""Who may import whom: between the units of the package, and between the rooms of a folder.

A unit is a module or a folder directly under the root; "" is the root's own ``__init__.py``. A module of its own entry
goes by that one. ``tests/test_layering.py`` holds the tables, and that none has an arrow that nothing uses.
"""

from __future__ import annotations

from collections.abc import Mapping

GROUND = {"status", "base"}
FORMATS = {*GROUND, "formats", "spirv"}
DEVICES = {"hal", "hal_reference", "hal_vulkan"}
ALLOWED: Mapping[str, set[str]] = {
    "": {"status", "base", "vm", "hal", "hal_vulkan", "runtime", "compiler", "jit"},
    "status": set(),
    "base": {*GROUND},
    "waits": {*GROUND, "waits"},
    "formats": {*GROUND, "formats"},
    "spirv": FORMATS,
    "vm": {*GROUND, "formats", "vm", "waits"},
    "hal": {*FORMATS, "hal", "waits"},
    "hal_vulkan": {*FORMATS, "hal", "hal_vulkan", "shaders", "waits"},
    "hal_reference": {*FORMATS, "hal", "hal_reference", "waits"},
    "shaders": {*GROUND, "shaders"},
    # The folder is data and its lookup; only its build program compiles.
    "shaders.build": {*FORMATS, "shaders"},
    # The reference device's definitions of operations, which need no device, fold constants too.
    "compiler": {*FORMATS, "compiler", "hal_reference", "vm.bytecode", "vm.assembly"},
    "codegen": {*FORMATS, "codegen", "hal.memory", "vm.bytecode", "vm.translation", "vm.types"},
    "runtime": {*FORMATS, *DEVICES, "runtime", "vm", "waits"},
    "tuning": {*FORMATS, "tuning", "compiler", "runtime", "study"},
    "jit": {*FORMATS, "jit", "compiler", "runtime", "tuning", "vm", "hal"},
    "study": {*FORMATS, "study", "runtime", "hal", "hal_vulkan", "shaders", "waits"},
    "amber": {*FORMATS, "amber", "hal_vulkan", "runtime"},
    "testing": {*FORMATS, "testing", "hal_vulkan", "runtime", "vm"},
    "viewer": {*FORMATS, "viewer", "hal_vulkan", "runtime", "vm"},
    "tools": {
        *(*FORMATS, *DEVICES, "tools", "amber", "study", "testing", "tuning", "runtime"),
        *("viewer", "vm", "compiler", "codegen", "shaders", "waits"),
    },
}
# Each folder with rooms: its rooms, and the rooms of the folder that each may import; "." are the folder's own files.
_ROOMS = """\
spirv
    binary:
    reflection: binary
    instrument: binary reflection
    repair: binary instrument reflection
    checks: binary reflection repair
    sources: binary checks reflection
vm
    bytecode:
    assembly: bytecode
    types:
    native: bytecode types
    translation: bytecode types
    machine_code: bytecode translation types
    execution: bytecode machine_code native translation types
    invocation: bytecode execution types
compiler
    ir:
    analysis: ir
    dialects.rules: ir
    dialects: dialects.rules ir
    dialects.syntax: ir
    frontends.graphdef.file: ir
    kernels.scalars: ir
    kernels: analysis ir kernels.scalars
    passes.dynamic: dialects dialects.rules ir
    passes.formulas: dialects ir
    strategies.contraction: analysis ir kernels kernels.scalars
    strategies.movement: analysis ir kernels kernels.scalars strategies.contraction
    strategies.rows: analysis ir kernels kernels.scalars
    strategies.scans: analysis ir kernels kernels.scalars
    strategies.sorts: analysis ir kernels kernels.scalars
    strategies: analysis ir kernels kernels.scalars strategies.contraction strategies.movement strategies.rows
        strategies.scans strategies.sorts
    targets: analysis dialects.rules dialects.syntax ir kernels kernels.scalars strategies strategies.rows
    frontends.graphdef.operators: analysis dialects frontends.graphdef.file ir passes.dynamic passes.formulas
    passes.canonical: analysis dialects dialects.rules ir passes.formulas
    conversion: dialects dialects.rules dialects.syntax ir passes.canonical passes.formulas
    abi: conversion dialects.rules ir
    frontends.graphdef: dialects dialects.rules frontends.graphdef.file frontends.graphdef.operators ir
        passes.canonical
    passes.decomposition: analysis dialects dialects.rules ir kernels.scalars passes.canonical passes.formulas
    passes.dispatch: analysis dialects dialects.syntax ir passes.canonical
    passes.sequencing: dialects ir passes.dispatch
    module: abi ir kernels passes.dynamic passes.sequencing
    passes.verification: dialects.rules ir passes.dispatch passes.dynamic passes.sequencing strategies targets
    .: abi conversion dialects.syntax frontends.graphdef frontends.graphdef.file ir kernels kernels.scalars module
        passes.canonical passes.decomposition passes.dispatch passes.dynamic passes.formulas passes.sequencing
        passes.verification targets
codegen
    program:
    c: program
    hal: program
runtime
    arrays:
    images: arrays
    kernels.parameters: arrays images
    kernels: arrays images kernels.parameters
    recordings: arrays images kernels kernels.parameters
    .: arrays images kernels kernels.parameters recordings
    elementwise: . arrays kernels
    parameters:
    modules.parameters: parameters
    values:
    modules.hal: values
    modules.check: modules.hal values
    profiling: modules.hal
    sessions: . arrays modules.hal modules.parameters parameters profiling
hal
    .:
    programs: .
hal_vulkan
    vulkan:
    instance: vulkan
    memory: instance vulkan
    images: instance memory vulkan
    sync: instance vulkan
    pipelines: images instance memory sync vulkan
    commands: images instance memory pipelines sync vulkan
    submit: commands instance memory sync vulkan
    programs: commands instance memory pipelines submit sync
    .: commands images instance memory pipelines programs submit sync vulkan
    presentation: . images instance vulkan
study
    definition:
    results.storage: definition
    statistics:
    results.comparison: definition results.storage statistics
    results: definition results.comparison results.storage statistics
    report.charts: definition results results.comparison results.storage statistics
    report: definition report.charts results results.comparison results.storage statistics
    workloads: definition
    machine: definition results.comparison results.storage workloads
    sampling: definition machine results.storage statistics workloads
    runs: definition machine results results.storage sampling workloads
    cluster: definition machine results.storage runs sampling workloads
tools
    .:
    codegen: .
    compile: .
    inspect: .
    run: .
    setup: .
    check: .
    ci: . setup
    study: .
    bench: . run study
    view: . run
"""


def _rooms(text: str) -> dict[str, set[str]]:
    rooms: dict[str, set[str]] = {}
    folder = room = ""
    for line in text.splitlines():
        if not line.startswith(" "):
            folder = line
            continue
        name, colon, words = line.strip().rpartition(":")
        if colon:
            room = folder if name == "." else f"{folder}.{name}"
            rooms[room] = set()
        rooms[room] |= {folder if word == "." else f"{folder}.{word}" for word in words.split()}
    return rooms


ROOMS: Mapping[str, set[str]] = _rooms(_ROOMS)

"""Runs damaged and hostile modules: truncated, with bits flipped, spliced and forged, by the ten thousand.

``python tests/conformance/hostile/mutants.py`` makes mutants of ten modules (assembled from tests/vm/assembly and,
with the ``peer`` extra, compiled from programs/) and runs each in a worker process, so that whatever ends or stops that
process is counted and laid to a mutant. What is right: an error of pumice's own hierarchy, or a run. Wrong: another
exception (``bug``), the process's end by a signal (``crash``), no answer (``hang``), more memory than any of the
programs has use for (``memory``). The exit status is 1 if anything went wrong.

A program may loop for ever by its own right; in bytecode the call's timeout ends it. In a shader nothing can: Vulkan
has no way to stop what it runs. Such mutants are counted (``device busy``), and their worker is replaced.

``--peer N`` gives N of the same mutants to ``iree-run-module``. ``--only INDEX`` runs one here, to look at; ``--write
FILE`` keeps it.
"""

from __future__ import annotations

import argparse
import collections
import faulthandler
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from conformance.hostile.mutant_runner import run_mutants
from conformance.hostile.mutations import Base, Mutant, load_base, mutate
from support.case_pool import HANG_S, WRONG, Tally, limit_memory
from support.iree_releases import CompileError, available_compilers, installed_tool

from pumice.vm.assembly.assembler import assemble
from pumice.vm.bytecode.declaration import declaration_of
from pumice.vm.bytecode.writer import write_module

__all__ = ["ASSEMBLED", "COMPILED", "assembled_bases", "compiled_bases"]

HERE: Final = Path(__file__).parents[1]
# One of each bytecode version at least.
ASSEMBLED: Final = {
    "buffers": 0x00110000,
    "control_flow": 0x00110000,
    "lists": 0x000F0000,
    "references": 0x00110000,
    "globals": 0x00100000,
}
COMPILED: Final = ("async_mul", "dynamic_matmul", "globals_counter", "multi_function", "jacobi")

_PEER_LIMIT_S: Final = 10.0


def assembled_bases(names: Sequence[str] = tuple(ASSEMBLED)) -> list[tuple[str, bytes]]:
    """Modules of tests/vm/assembly, as files."""
    found = []
    for name in names:
        text = (HERE.parent / "vm" / "assembly" / f"{name}.vmasm").read_text()
        version = ASSEMBLED[name]
        found.append((f"{name}.vmasm {version >> 16}.0", write_module(assemble(text, bytecode_version=version))))
    return found


def compiled_bases(names: Sequence[str] = COMPILED) -> list[tuple[str, bytes]]:
    """Modules of programs/, by each compiler there is in turn; none without a compiler."""
    compilers = available_compilers()
    found = []
    for index, name in enumerate(names):
        if not compilers:
            break
        # The newest and the oldest, where there are several.
        compiler = compilers[0] if index % 2 == 0 else compilers[-1]
        try:
            path = compiler.compile((HERE / "programs" / f"{name}.mlir").read_text())
        except CompileError as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        found.append((f"{name} {compiler.release}", path.read_bytes()))
    return found


# -- the peer ----------------------------------------------------------------------------------------


def run_peer(
    bases: Sequence[Base], indices: Sequence[int], seed: int, part: str, processes: int
) -> collections.Counter[str] | None:
    """Counts how ``iree-run-module`` ends on these mutants; ``None`` where it is not installed."""
    tool = installed_tool("iree-run-module")
    if tool is None:
        return None
    by_name = {base.name: base for base in bases}

    def one(index: int) -> str:
        mutant = mutate(bases, seed, index, part)
        return _peer_run(tool, by_name[mutant.base], mutant, random.Random(index))

    with ThreadPoolExecutor(processes) as pool:
        return collections.Counter(pool.map(one, indices))


def _peer_run(tool: Path, base: Base, mutant: Mutant, rng: random.Random) -> str:
    exports = [one for one in base.definition.exports if not one.name.startswith("__")]
    export = rng.choice(exports)
    with tempfile.NamedTemporaryFile(suffix=".vmfb") as file:
        file.write(mutant.data)
        file.flush()
        command = [str(tool), "--device=vulkan", f"--module={file.name}", f"--function={export.name}"]
        declaration = declaration_of(base.definition.signatures[export.ordinal])
        for value in declaration.arguments if declaration is not None else ():
            shape = "".join(f"{4 if length is None else length}x" for length in value.shape or ())
            command.append(f"--input={shape}{value.element_type}=1" if value.shape is not None else "--input=3")
        try:
            done = subprocess.run(
                ["nice", *command],
                check=False,
                capture_output=True,
                timeout=_PEER_LIMIT_S,
                preexec_fn=limit_memory,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired:
            return "hang"
    if done.returncode == 0:
        return "ran"
    text = (done.stderr + done.stdout).decode("utf-8", "replace")
    if done.returncode < 0 or done.returncode > 128:
        number = -done.returncode if done.returncode < 0 else done.returncode - 128
        return f"assert ({signal.Signals(number).name})" if "ssert" in text else signal.Signals(number).name
    return "assert" if "Assertion" in text else "refused or failed"


def _peer_terms(result: str) -> str:
    return result if result == "ran" or result in WRONG else "refused or failed"


# -- the program -------------------------------------------------------------------------------------


def _report(tally: Tally, verbose: bool) -> Iterator[str]:
    yield f"{tally.count} mutants in {tally.seconds:.0f} s: {tally.count / max(tally.seconds, 1e-9):.0f} a second"
    for stage in ("load", "link", "run", "device", "?"):
        found = {result: number for (one, result), number in sorted(tally.outcomes.items()) if one == stage}
        if found:
            yield f"  {stage}: " + ", ".join(f"{result} {number}" for result, number in found.items())
    yield f"  device busy for ever (a shader that does not end): {len(tally.busy)}; workers replaced: {tally.replaced}"
    yield f"  most memory of a worker: {tally.peak / (1 << 20):.0f} MiB"
    kinds: dict[str, list[tuple[int, str]]] = {}
    for index, message in tally.internal:
        kinds.setdefault(re.sub(r"\d+", "0", message.split(" failed with ")[-1])[:50], []).append((index, message))
    for found_here in kinds.values():
        for index, message in found_here[: None if verbose else 1]:
            yield f"  INTERNAL ({len(found_here)} alike) {index}: {message}"
    for index, result, detail in tally.wrong:
        lines = detail.strip().splitlines()
        short = next((line for line in reversed(lines) if not line.startswith("  ")), "")
        yield f"  {result.upper()} {index}: {detail if verbose else short[:300]}"
    yield f"  wrong: {len(tally.wrong)}"


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Runs damaged and hostile modules.")
    parser.add_argument("--count", type=int, default=20_000, help="mutants (20000)")
    parser.add_argument("--peer", type=int, default=300, help="how many of them iree-run-module gets, too (300)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=min(os.cpu_count() or 1, 2))
    parser.add_argument(
        "--module", type=Path, action="append", default=[], help="a further module file; may be repeated"
    )
    parser.add_argument(
        "--part", default="", help="damage this only: file, tables, bytecode, executables, spirv, constants"
    )
    parser.add_argument("--validation", action="store_true", help="with validation layers, whose errors are bugs then")
    parser.add_argument("--only", type=int, help="run this one mutant in this process")
    parser.add_argument("--write", type=Path, help="with --only: write the mutant to this file, and do not run it")
    parser.add_argument("--verbose", action="store_true", help="whole tracebacks")
    options = parser.parse_args()
    files = [*assembled_bases(), *compiled_bases(), *((path.name, path.read_bytes()) for path in options.module)]
    if options.only is not None:
        return _one(files, options.seed, options.only, options.part, options.write)
    print(f"modules: {', '.join(name for name, _ in files)}")
    show = sys.stderr.isatty()

    def progress(tally: Tally) -> None:
        if show:
            print(
                f"\r{tally.count} of {options.count}, wrong: {len(tally.wrong)} ", end="", file=sys.stderr, flush=True
            )

    tally = run_mutants(
        files, options.count, seed=options.seed, processes=options.processes, part=options.part, progress=progress
    )
    if show:
        print("\r", end="", file=sys.stderr)
    print("pumice: " + "\n".join(_report(tally, options.verbose)))
    if options.peer:
        bases = [load_base(name, data) for name, data in files]
        # The tool runs modules of its own release's version only.
        newest = max(base.definition.bytecode_version for base in bases)
        if not options.part:
            taken = [
                index
                for index in range(options.count)
                if bases[index % len(bases)].definition.bytecode_version == newest
            ]
        else:
            taken = list(range(options.count))
        sample = random.Random(options.seed).sample(taken, min(options.peer, len(taken)))
        found = run_peer(bases, sample, options.seed, options.part, options.processes)
        if found is None:
            print("iree-run-module is not installed (the peer extra): nothing to compare with")
        else:
            same = collections.Counter(_peer_terms(tally.results.get(index, "?")) for index in sample)
            print(f"{len(sample)} of them (one export each in iree-run-module, up to four in pumice):")
            for who, counts in (("iree-run-module", found), ("pumice", same)):
                print(f"  {who}: " + ", ".join(f"{how} {number}" for how, number in counts.most_common()))
    return 1 if tally.wrong else 0


def _one(files: Sequence[tuple[str, bytes]], seed: int, index: int, part: str, target: Path | None) -> int:
    mutant = mutate([load_base(name, data) for name, data in files], seed, index, part)
    print(f"mutant {index} of {mutant.base}: {mutant.what}, {len(mutant.data)} bytes")
    if target is not None:
        target.write_bytes(mutant.data)
        return 0
    from conformance.hostile.mutant_runner import Runner

    faulthandler.enable()
    faulthandler.dump_traceback_later(HANG_S, exit=True)
    runner = Runner()
    outcome = runner.run(mutant)
    print(outcome.stage, outcome.result, outcome.detail)
    if outcome.busy:
        print("the device is busy for ever")
        sys.stdout.flush()
        os._exit(1)
    runner.close()
    return int(outcome.result in WRONG)


if __name__ == "__main__":
    sys.exit(main())

"""Command lines and environments, in a process that goes on: every command with flags and values that do not fit."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Final

from judging import ODD_NUMBERS, ODD_TEXTS, SeededCases, T, damaged_text, judged_command
from support.case_pool import Outcome

from pumice import shaders

ROOT: Final = Path(__file__).resolve().parents[2]
DIGITS: Final = str(ROOT / "examples" / "digits" / "digits.vmfb")
MUL: Final = str(shaders.path("mul").with_suffix(".spv"))
SAXPY: Final = str(shaders.path("examples/saxpy").with_suffix(".spv"))

BINDINGS: Final = (
    "0=4xf32=1,2,3,4", "1=4xf32=2", "2=4xf32", "A=4xf32=1", "9=4xf32", "0=4xf64=1", "2=@x.npy", "=", "2=0xf32",
    "0=1000000000000xf32=1",
)  # fmt: skip
FLAGS: Final = {
    "run": {
        "--binding": BINDINGS,
        "--output": ("2=@out.npy", "2=-", "@out.npy", "+out.npy", "", "9=@x", "2=@", "2=@out.bin"),
        "--atol": ("1e-3", "nan", "-1"),
        "--rtol": ("0", "inf"),
        "--time": None,
        "--function": ("classify", "module.classify", "x", ""),
        "--input": ("1x28x28xf32=1", "@" + str(ROOT / "examples" / "digits" / "three.npy"), "(null)", "5", "4xf32=1"),
        "--expected_output": ("(ignored)", "1xi32=3", "i32=1"),
        "--parameters": ("a=x.irpa", "x.safetensors", "=", "scope=" + MUL),
        "--timeout": ("5", "0", "-1", "nan"),
        "--output_max_element_count": ("0", "5"),
        "--equality_mode": ("exact", "approximate"),
        "--push": ("a=2", "f32=2", "i32=1", "a=@x", "16xf32=1"),
        "--spec": ("0=1", "x=2", "0=f32=nan", "4294967296=1"),
        "--groups": ("1", "1,1,1", "0", "65536,65536,65536", "1,1,1,1"),
        "--entry": ("main", "x"),
        "--define": ("X=1", "1=1", "X Y"),
        "--subgroup-size": ("8", "3"),
        "--expect": ("2=4xf32=2,4,6,8", "2=4xi32=1"),
        "--device": ("lavapipe", "vulkan", "vulkan://99", "cuda", ""),
        "--profile": None,
        "--profile-json": ("p.json", "/nonexistent/p.json", "."),
    },
    "bench": {
        "--size": ("16", "0", "1000000000000"),
        "--binding": BINDINGS,
        "--push": ("a=$size", "a=$", "a=1"),
        "--groups": ("$size // 64", "1"),
        "--batch": ("1", "2", "0", "3000", "100000000"),
        "--in-flight": ("1", "300", "100000"),
        "--barrier": ("none", "x"),
        "--descriptors": ("push", "sets", "address"),
        "--wait": ("host", "thread", "poll"),
        "--measure": ("total", "x"),
        "--axis": ("size=1,2", "size=pow2:1:4", "batch=1:3", "x=1", "size=0"),
        "--figure": ("a=total*2", "a=", "a=x"),
        "--against": ("", "--batch 2", MUL + " --size 8", DIGITS, "results", "main", "'", "--against x", "-- -- x"),
        "--against-rev": ("HEAD", "x", "--all", "HEAD:x", "HEAD^{tree}"),
        "--save": ("main", "../x", ".", "x" * 300),
        "--baselines": ("kept", "/dev/null", ""),
        "--fail-on": ("slower", "never", "x"),
        "--tolerate": ("5%", "2", "nan"),
        "--json": None,
        "--no-baseline": None,
    },
    "study run": {"--axis": ("batch=1", "batch=1e9", "x=1"), "--set": ("max_samples=5", "x=1", "confidence=2"),
                  "--against": ("batch-depth", "results", "main", "x.toml", ""), "--save": ("main", ""),
                  "--device": ("lavapipe", "x")},
    "study ab": {"--set": ("max_samples=5", "x=1"), "--measure": ("p99", "wake:p99", "x:p99", ":"), "--json": None},
    "study compare": {"--confidence": ("0.9", "2"), "--threshold": ("-1", "0.1"), "--measure": ("total", "x"),
                      "--json": None},
    "study report": {"--compare-with": (".", "x"), "--out": ("r.html", "/nonexistent/r.html", ".")},
    "study export": {"--csv": ("-", "x.csv", "."), "--json": ("-",), "--markdown": ("-",),
                     "--parquet": ("x.parquet", "-"), "--raw": None},
    "study show": {"--json": None},
    "study list": {"--json": None},
    "info": {"--json": None, "--define": ("X=1", "=")},
    "dump": {"--json": None, "--disassemble": None, "--python": None, "--spirv": None,
             "--function": ("classify", "@0", "@-1", "@99999999999")},
    "devices": {"--json": None},
    "run-checks": {"--filter": ("*", "[", "["), "--timeout": ("1", "-1"),
                   "--junit-xml": ("r.xml", "/nonexistent/r.xml"), "--verbose": None},
}  # fmt: skip
FILES: Final = (
    MUL,
    SAXPY,
    DIGITS,
    "missing.spv",
    "missing.vmfb",
    ".",
    "/dev/null",
    "",
    "x" * 300,
    str(ROOT / "Makefile"),
    "batch-depth",
    "results",
    "-",
)
GOOD: Final = {
    "run": (MUL, DIGITS),
    "bench": (MUL, DIGITS),
    "study run": ("batch-depth",),
    "dump": (DIGITS,),
    "info": (MUL,),
    "run-checks": (DIGITS,),
}
# Long enough that a measurement ends by itself.
BOUNDED: Final = {
    "bench": ("--set", "time_limit=0.01", "--set", "noise_limit=9", "--quiet", "--device", "vulkan"),
    "study run": ("--set", "time_limit=0.01", "--quiet", "--axis", "batch=1", "--out", "results"),
    "study ab": ("--set", "time_limit=0.01", "--quiet"),
}


def command_line(rng: random.Random) -> list[str]:
    """A command with flags of its own and of others, with good values and bad ones."""
    command = rng.choice(list(FLAGS))
    words = [*command.split()]
    flags = FLAGS[command]
    for _ in range(rng.choice((0, 1, 1, 2, 3, 4))):
        if rng.random() < 0.06:
            words.append(
                rng.choice(("--bogus", "--", "-", "--help", "-h", "--device", "-o", "-b", "", "--json=1", "-" * 3000))
            )
            continue
        flag = rng.choice(list(flags))
        values = flags[flag]
        words.append(flag)
        if values is not None:
            value = rng.choice(values)
            if rng.random() < 0.3:
                value = damaged_text(rng, values, ODD_TEXTS[:40])
            words.append(value)
    if command == "run" and rng.random() < 0.5:
        words += ["--binding", "0=4xf32=1,2,3,4", "--binding", "1=4xf32=2", "--binding", "2=4xf32"]
    words += (
        [rng.choice(GOOD[command])]
        if command in GOOD and rng.random() < 0.8
        else [rng.choice(FILES) for _ in range(rng.choice((0, 1, 2)))]
    )
    if rng.random() < 0.05:
        rng.shuffle(words)
    words = [*words, *BOUNDED.get(command, ())]
    return [_as_argument(word) for word in words]


def _as_argument(text: str) -> str:
    """A text as it arrives from another process: bytes, which no NUL is among."""
    return os.fsdecode(text.replace("\0", "\\0").encode("utf-8", "surrogatepass"))


class _FolderCases(SeededCases[T]):
    """Commands, run in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        work = folder / "work"
        work.mkdir()
        os.chdir(work)
        os.environ["PUMICE_DEVICE"] = "vulkan"


class CommandCases(_FolderCases[list[str]]):
    """Command lines."""

    def input(self, seed: int, index: int) -> list[str]:
        return command_line(random.Random(f"{seed}/{index}"))

    def run(self, seed: int, index: int) -> Outcome:
        return judged_command(self.input(seed, index), statuses=(0, 1, 2, 3, 4))


# -- the environment ---------------------------------------------------------------------------------

VARIABLES: Final = {
    "PUMICE_DEVICE": ("lavapipe", "vulkan", "vulkan://0", "vulkan://7", "x"),
    "PUMICE_VALIDATION": ("0", "1", "yes", "banana"),
    "PUMICE_STAGING": ("0", "1", "x"),
    "PUMICE_CACHE": ("0", "1", "x"),
    "PUMICE_CACHE_DIR": ("/dev/null", "/proc/nothing", "/dev/full", "relative", "\ud800", "x" * 5000, "/"),
    "PUMICE_DEBUG": ("0", "", "x"),
    "PUMICE_GLSLC": ("/bin/true", "/bin/false", "/nonexistent", "/dev/null", "."),
    "HOME": ("/nonexistent", "", "relative"),
    "XDG_CACHE_HOME": ("/dev/null", "", "relative"),
    "COLUMNS": ("0", "1", "-5", "x", "99999999"),
    "LINES": ("0", "x", "\u00b2"),
    "NO_COLOR": ("1",),
    "TERM": ("dumb", "", "xterm\x1b"),
    "TZ": ("x" * 300, ""),
    "LANG": ("C", "xx_YY"),
    "TMPDIR": ("/nonexistent", "/dev/null"),
}
COMMANDS: Final = (
    ("devices",), ("devices", "--json"), ("info", MUL), ("dump", DIGITS), ("study", "list"),
    ("info", str(shaders.path("mul").with_suffix(".comp"))),
    ("run", MUL, "-b", "0=4xf32=1", "-b", "1=4xf32=2", "-b", "2=4xf32"),
    ("run", str(shaders.path("mul").with_suffix(".comp")), "-b", "0=4xf32=1", "-b", "1=4xf32=2", "-b", "2=4xf32"),
)  # fmt: skip


class EnvironmentCases(_FolderCases[tuple[tuple[str, ...], dict[str, str]]]):
    """Commands under environment variables that say what they should not."""

    def input(self, seed: int, index: int) -> tuple[tuple[str, ...], dict[str, str]]:
        rng = random.Random(f"{seed}/{index}")
        variables = {}
        for _ in range(rng.choice((1, 1, 2, 3))):
            name = rng.choice(list(VARIABLES))
            value = rng.choice((*VARIABLES[name], *VARIABLES[name], rng.choice(ODD_TEXTS), rng.choice(ODD_NUMBERS)))
            if name == "PUMICE_DEBUG":
                value = "0"  # otherwise errors have tracebacks
            variables[name] = _as_argument(value)
        return rng.choice(COMMANDS), variables

    def run(self, seed: int, index: int) -> Outcome:
        command, variables = self.input(seed, index)
        return judged_command(command, environment=variables)

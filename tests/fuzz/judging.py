"""What every kind of case shares: how a case is judged, and how inputs are made from a seed and a number.

What is right: the input is accepted, or refused with an error of pumice's own hierarchy whose message a person can
read. Anything else is a bug: another exception, a warning, an INTERNAL error, a message that repeats thousands of
characters of its input. What ends or stops the process is seen from outside, by case_pool.py.
"""

from __future__ import annotations

import random
import traceback
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Final, Generic, TypeVar

from click.testing import CliRunner
from mutations import Base, mutate, plain_base
from support.case_pool import Outcome

from pumice.status import InternalError, PumiceError
from pumice.tools.cli import main

__all__ = [
    "FileCases",
    "GeneratedCases",
    "SeededCases",
    "judged",
    "judged_command",
    "judged_status",
    "one_of",
    "small_study",
    "text_cases",
]

MAX_MESSAGE: Final = 2500
T = TypeVar("T")


def judged(call: Callable[[], object]) -> Outcome:
    """Calls it and says how it went."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            call()
    except PumiceError as error:
        said = str(error)
        if isinstance(error, InternalError):
            return Outcome("run", "bug", f"an INTERNAL error: {traceback.format_exc(limit=-8)}")
        if len(said) > MAX_MESSAGE:
            return Outcome("run", "bug", f"a message of {len(said)} characters: {said[:300]}")
        return Outcome("run", error.code.name, said[:200])
    except Exception:
        return Outcome("run", "bug", traceback.format_exc(limit=-12))
    return Outcome("run", "ran")


def judged_command(
    arguments: Sequence[str],
    *,
    statuses: Collection[int] = (0, 1, 2),
    environment: Mapping[str, str | None] | None = None,
) -> Outcome:
    """Runs a command of pumice in this process and says how it went; ``statuses``: those that are right."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = CliRunner().invoke(main, list(arguments), env=environment, prog_name="pumice")
    except Exception:
        return Outcome("run", "bug", traceback.format_exc(limit=-12))
    error = result.exception
    if error is not None and not isinstance(error, SystemExit):
        return Outcome("run", "bug", "".join(traceback.format_exception(error, limit=-12)))
    return judged_status(result.exit_code, result.stderr, statuses)


def small_study(folder: Path, batches: str = "1,4", time_limit: float = 0.02) -> list[str]:
    """The command that measures a small study, with its results in a folder."""
    settings = f"--axis batch={batches} --set time_limit={time_limit} --set noise_limit=9"
    return [*f"study run batch-depth --quick {settings} --quiet --out".split(), str(folder)]


def judged_status(status: int, errors: str, statuses: Collection[int] = (0, 1, 2)) -> Outcome:
    """Judges a command by its exit status and what it said on standard error."""
    for wrong in ("internal error", "Traceback (most recent call last)", "Exception ignored in", "Warning: "):
        if wrong in errors:
            return Outcome("run", "bug", f"exit status {status}: {errors[-3000:]}")
    if status not in statuses:
        return Outcome("run", "bug", f"exit status {status}: {errors[-3000:]}")
    if status in (1, 2) and not errors.strip():
        return Outcome("run", "bug", f"exit status {status} without a word")
    if max(map(len, errors.splitlines()), default=0) > 2 * MAX_MESSAGE:
        return Outcome("run", "bug", f"a message of {len(errors)} characters: {errors[:300]}")
    return Outcome("run", *(("ran",) if status not in (1, 2) else ("refused", errors[:200])))


class SeededCases(Generic[T]):
    """Cases whose input is made from a seed and a number."""

    def input(self, seed: int, index: int) -> T:
        """What the case gives to pumice."""
        raise NotImplementedError

    def use(self, made: T) -> object:
        """Gives it to pumice."""
        raise NotImplementedError

    def run(self, seed: int, index: int) -> Outcome:
        """Runs one case."""
        made = self.input(seed, index)
        return judged(lambda: self.use(made))

    def describe(self, seed: int, index: int) -> str:
        """The input, for a report; ``--write`` keeps that of a file."""
        made = self.input(seed, index)
        return f"{len(made)} bytes" if isinstance(made, bytes) else repr(made)

    def close(self) -> None:
        """Gives back what is held."""


class GeneratedCases(SeededCases[T]):
    """Cases whose input is made from random numbers and given to one function."""

    def __init__(self, make: Callable[[random.Random], T], use: Callable[[T], object]) -> None:
        self._make = make
        self._use = use

    def input(self, seed: int, index: int) -> T:
        return self._make(random.Random(f"{seed}/{index}"))

    def use(self, made: T) -> object:
        return self._use(made)


def text_cases(
    texts: Sequence[str],
    words: Sequence[str],
    use: Callable[[str], object],
    *,
    forge: Callable[[random.Random], str] | None = None,
    forged: float = 0.5,
) -> GeneratedCases[str]:
    """Texts that are good ones with damage, or ``forged`` of them made anew, for a function that takes a text."""

    def make(rng: random.Random) -> str:
        return forge(rng) if forge is not None and rng.random() < forged else damaged_text(rng, texts, words)

    return GeneratedCases(make, use)


class FileCases(SeededCases[bytes]):
    """Damaged copies of good files, for a function that reads a file by its path."""

    def __init__(
        self,
        folder: Path,
        files: Sequence[bytes],
        name: str,
        use: Callable[[Path], object],
        *,
        part: str = "file",
        mend: Callable[[random.Random, bytes], bytes] | None = None,
        forge: Callable[[random.Random], bytes] | None = None,
        forged: float = 0.3,
    ) -> None:
        """
        Args:
            folder: where the copies are written.
            files: good ones.
            name: of the copies; its ending often decides who reads them.
            use: reads one.
            part: which damage, see mutations.py.
            mend: makes checksums right again, so that damage gets past them.
            forge: makes a file that says something else than good ones, in the right form.
            forged: how many of the cases are forged.
        """
        self._path = folder / name
        self._use = use
        self._bases: list[Base] = [plain_base(f"{number}", data, part) for number, data in enumerate(files)]
        self._part = part
        self._mend = mend
        self._forge = forge
        self._forged = forged

    def input(self, seed: int, index: int) -> bytes:
        rng = random.Random(f"{seed}/{index}/file")
        if self._forge is not None and rng.random() < self._forged:
            return self._forge(rng)
        data = mutate(self._bases, seed, index, self._part).data
        return data if self._mend is None else self._mend(rng, data)

    def use(self, made: bytes) -> object:
        self._path.write_bytes(made)
        return self._use(self._path)

    def close(self) -> None:
        self._path.unlink(missing_ok=True)


def one_of(rng: random.Random, *makers: Callable[[random.Random], T]) -> T:
    """What one of the makers makes."""
    return rng.choice(makers)(rng)


# -- texts -------------------------------------------------------------------------------------------

ODD_NUMBERS: Final = (
    "0", "-0", "1", "-1", "7", "255", "256", "65536", "4294967295", "4294967296", "9223372036854775807",
    "9223372036854775808", "-9223372036854775809", "18446744073709551616", "1" * 400, "9" * 5000, "1e308", "1e309",
    "-1e309", "1e-400", "nan", "-nan", "inf", "-inf", "0x7fffffff", "0xFFFFFFFFFFFFFFFFF", "1_000", "+1", " 1 ", "1.",
    ".5", "1e", "0b1", "\u0661", "\u00b2", "1e99999999999", "00001", "--1", "0x", "1.7976931348623157e308",
)  # fmt: skip
ODD_TEXTS: Final = (
    "", " ", "\t", "\n", "\0", "\x1b[31m", "\u202e", "\ud800", "\U0001f600", "%s", "%n%n", "{0}", "{", "}",
    "[", "]", "(", ")", '"', "'", "\\", "/", "//", "..", "../..", "~", "*", "?", "@", "&", "=", "==", ",", ",,",
    ";", ":", "::", "|", "<", ">", "!", "#", "$", "a" * 300, "x" * 5000, "é", "ﬀ", "\ufeff", "\r\n", "-", "--", "+",
    "/dev/null", "con", "NaN", "null",
    "true", "None", "__class__",
)  # fmt: skip


def damaged_text(rng: random.Random, texts: Sequence[str], words: Sequence[str]) -> str:
    """A text with pieces cut out, moved, repeated, exchanged for those of another, or for numbers and marks."""
    text = rng.choice(texts)
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3, 6))):
        start = rng.randrange(len(text) + 1)
        end = min(len(text), start + rng.choice((0, 0, 1, 1, 2, 4, 16)))
        choice = rng.randrange(9)
        if choice == 0:
            piece = ""
        elif choice == 1:
            piece = rng.choice(ODD_NUMBERS)
        elif choice == 2:
            piece = rng.choice(ODD_TEXTS)
        elif choice in (3, 4):
            piece = rng.choice(words) if words else ""
        elif choice == 5:
            other = rng.choice(texts)
            at = rng.randrange(len(other) + 1)
            piece = other[at : at + rng.choice((1, 4, 16, 64))]
        elif choice == 6:
            piece = text[start:end] * rng.choice((2, 3, 50, 500))
        elif choice == 7:
            piece = chr(rng.choice((rng.randrange(128), rng.randrange(0x300), rng.randrange(0xD800))))
        else:
            numbers = [at for at, character in enumerate(text) if character.isdigit()]
            if numbers:
                start = rng.choice(numbers)
                end = start + 1
            piece = rng.choice(ODD_NUMBERS)
        text = text[:start] + piece + text[end:]
        if len(text) > 200_000:
            break
    return text

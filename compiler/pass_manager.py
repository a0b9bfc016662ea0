"""Passes over a program, and what runs them one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from ..base.lazy_dataclass import dataclass
from .ir.source import CompileError
from .passes.verification.stages import verify_stage
from .stages import Program

Reached: TypeAlias = Callable[[str, Program], None]


@dataclass(frozen=True, slots=True)
class Pass:
    """One step of a program on its way to a module.

    Attributes:
        name: such as ``split-loops``.
        run: changes a program in place; takes it and the options.
        options: what the step depends on besides the program.
        stage: of ``STAGES``, at which the program is afterwards; None between two stages.
    """

    name: str
    run: Callable[..., None]
    options: tuple[object, ...] = ()
    stage: str | None = None


def on_bodies(run: Callable[..., object]) -> Callable[..., None]:
    """A pass's function that runs another on the body of each of a program's functions."""

    def run_on_bodies(program: Program, *options: object) -> None:
        for function in program.functions.values():
            run(function.regions[0].block, *options)

    return run_on_bodies


def run_passes(program: Program, passes: Sequence[Pass], reached: Reached | None) -> None:
    """Runs passes on a program, in place.

    Args:
        program: at the stage before the first pass.
        passes: in order.
        reached: called at each stage with its name and the program, which it only reads. For it, the program is
            verified first; else it is not, which takes an eighth of the time.

    Raises:
        CompileError: something in the program is wrong or not supported; the message has its place.
    """
    for step in passes:
        with locating_errors(program):
            step.run(program, *step.options)
            if step.stage is not None and reached is not None:
                if step.stage != "hlo":
                    verify_stage(step.stage, program.functions, program.executables, program.source)
                reached(step.stage, program)


@contextmanager
def locating_errors(program: Program) -> Iterator[None]:
    """Gives errors inside their place in the program's text, where they know only an offset."""
    try:
        yield
    except CompileError as error:
        raise program.source.located(error) from None

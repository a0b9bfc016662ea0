"""Passes over a program, and the function that runs them."""

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
        options: what the result depends on besides the program.
        stage: the stage of ``STAGES`` that the program has reached afterwards; None between two stages.
    """

    name: str
    run: Callable[..., None]
    options: tuple[object, ...] = ()
    stage: str | None = None


def on_bodies(run: Callable[..., object]) -> Callable[..., None]:
    """Makes a pass's function of one that takes the body of a function."""

    def run_on_bodies(program: Program, *options: object) -> None:
        for function in program.functions.values():
            run(function.regions[0].block, *options)

    return run_on_bodies


def run_passes(program: Program, passes: Sequence[Pass], reached: Reached | None) -> None:
    """Runs passes on a program, in place.

    Args:
        program: at the stage before the first pass.
        passes: in order.
        reached: called at each stage with its name and the program, which it must not change. The program is verified
            first; without ``reached`` it is not, which saves an eighth of the time.

    Raises:
        CompileError: something in the program is wrong or not supported; the message has the place.
    """
    for step in passes:
        with locating_errors(program):
            step.run(program, *step.options)
            if step.stage is not None and reached is not None:
                if step.stage != "hlo":
                    verify_stage(step.stage, program.written, program.source)
                reached(step.stage, program)


@contextmanager
def locating_errors(program: Program) -> Iterator[None]:
    """Adds the place to errors inside that know only an offset."""
    try:
        yield
    except CompileError as error:
        raise program.source.located(error) from None

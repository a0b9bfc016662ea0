"""One entry for all passes."""

from __future__ import annotations

from collections.abc import Sequence

from ...status import InvalidArgumentError, PumiceError
from ..binary.grammar import Op
from ..binary.words import read_binary
from .checks import SanitizeOptions
from .editor import Editor
from .loop_guard import guard_loops
from .reporter import Reporter, free_binding
from .reports import Instrumented
from .sanitize import sanitize as sanitize_accesses


def instrument(
    code: bytes,
    *,
    guard: bool = True,
    sanitize: SanitizeOptions | None = None,
    reserved: Sequence[tuple[int, int]] = (),
) -> Instrumented | None:
    """Returns a module with passes applied to its compute shaders; ``None`` where none has anything to report.

    Args:
        code: valid SPIR-V.
        guard: report loops that end before their time; see ``loop_guard``.
        sanitize: report wrong accesses, for a device of these options; see ``sanitize``.
        reserved: (set, binding) that the pipeline's layout has beside those of the module. The report is the last
            binding of the last set.

    Raises:
        InvalidArgumentError: the code is damaged.
    """
    if guard and sanitize is None and not any(opcode == Op.LoopMerge for opcode, _, _ in read_binary(code)):
        return None
    unwatched: tuple[str, ...] = ()
    try:
        editor = Editor(code)
        reporter = Reporter(editor, *free_binding(editor, reserved))
        if sanitize is not None:
            unwatched = sanitize_accesses(editor, code, reporter, sanitize)
        if guard:
            guard_loops(editor, reporter)
        if not reporter.places:
            return None
        reporter.finish()
    except PumiceError:
        raise
    except (LookupError, StopIteration, ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"the SPIR-V module is damaged and cannot be instrumented ({error!r})") from None
    return Instrumented(editor.code(), reporter.set, reporter.binding, tuple(reporter.places), unwatched)

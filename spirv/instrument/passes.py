"""One entry for all passes, and the pass that makes a module report and skip wrong accesses.

Every access to memory is followed back to its root (`paths.py`). Indices into arrays, vectors, matrices and arrays of
descriptors are compared with the lengths; ``OpArrayLength`` gives the length of a run-time array. Blocks of fixed size
are compared with the bound range, which comes from a second variable of the same binding, an array of words.
Coordinates of texels are compared with the image's size, device addresses with null and with the table of live buffers.
A failed access is skipped: reads give zero, writes and atomics do nothing.

Cooperative matrices and vectors, untyped pointers and raw access chains are left unchecked, and listed.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...status import InvalidArgumentError, PumiceError
from ..binary.grammar import Op
from ..binary.words import read_binary
from .accesses import FunctionPass
from .addresses import AddressChecks
from .checks import Checks, SanitizeOptions
from .editor import Editor
from .images import ImageChecks
from .loop_guard import guard_loops
from .printed import PRINT_SET
from .prints import Printer
from .reporter import Reporter, free_binding
from .reports import Instrumented
from .workgroup import WorkgroupChecks


def instrument(
    code: bytes,
    *,
    guard: bool = True,
    sanitize: SanitizeOptions | None = None,
    prints: bool = False,
    reserved: Sequence[tuple[int, int]] = (),
) -> Instrumented | None:
    """Returns a module with passes applied to its compute shaders; ``None`` if no shader has anything to report.

    Args:
        code: a valid SPIR-V module.
        guard: whether to report loops that end before their time; see ``loop_guard``.
        sanitize: the device's facts, to report wrong accesses; ``None`` not to check accesses.
        prints: whether prints write their lines to a ring; else drivers ignore them.
        reserved: further (set, binding) pairs of the pipeline's layout. The report is the last binding of the last set,
            and the ring the one after it.

    Raises:
        InvalidArgumentError: the code is damaged.
    """
    prints = prints and PRINT_SET.encode() in code
    guard = guard and any(opcode == Op.LoopMerge for opcode, _, _ in read_binary(code))
    if not guard and sanitize is None and not prints:
        return None
    unwatched: tuple[str, ...] = ()
    try:
        editor = Editor(code)
        editor.share_inputs()
        reporter = Reporter(editor, *free_binding(editor, reserved))
        if sanitize is not None:
            unwatched = _sanitize(editor, code, reporter, sanitize)
        printer = Printer(editor, reporter)
        if prints:
            printer.rewrite()
        if guard:
            guard_loops(editor, reporter)
        if not reporter.sites and not printer.sites:
            return None
        if reporter.sites:
            reporter.finish()
    except PumiceError:
        raise
    except (LookupError, StopIteration, ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"the SPIR-V module is damaged and cannot be instrumented ({error!r})") from None
    sites, printed = reporter.ordered_sites(), tuple(printer.sites)
    return Instrumented(editor.code(), reporter.set, reporter.binding, sites, unwatched, printed)


def _sanitize(editor: Editor, code: bytes, reporter: Reporter, options: SanitizeOptions) -> tuple[str, ...]:
    """Rewrites all functions of a module; it must run before passes that add functions.

    Args:
        editor: the module's editor.
        code: the module, with the values of its specialization constants as their defaults.
        reporter: the reporter that registers the checked accesses.
        options: the device's abilities.

    Returns:
        The descriptions of unchecked accesses.
    """
    checks = Checks(editor, code, reporter, options)
    addresses, images, workgroup = AddressChecks(checks), ImageChecks(checks), WorkgroupChecks(checks)
    functions = list(editor.functions)
    workgroup.choose(functions)
    for body in functions:
        body[:] = FunctionPass(checks, body, addresses, images, workgroup).write()
    return tuple(checks.unwatched)

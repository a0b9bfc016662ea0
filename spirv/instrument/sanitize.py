"""Makes a module report accesses that go wrong, and skip them.

Every access to memory is followed back to its root (`paths.py`). Indices into arrays, vectors, matrices and arrays of
descriptors are compared with the lengths, those of run-time arrays as ``OpArrayLength`` gives them. Blocks of fixed
size are compared with the range that is bound: a second variable of the same binding, an array of words, tells it.
Coordinates of texels are compared with the image's size, device addresses with null and with the table of live buffers.
What fails does not take place: reads give zero, writes and atomics do nothing.

Cooperative matrices and vectors, untyped pointers and raw access chains are left alone, and named.
"""

from __future__ import annotations

from .accesses import FunctionPass
from .addresses import AddressChecks
from .checks import Checks, SanitizeOptions
from .editor import Editor
from .images import ImageChecks
from .reporter import Reporter
from .workgroup import WorkgroupChecks


def sanitize(editor: Editor, code: bytes, reporter: Reporter, options: SanitizeOptions) -> tuple[str, ...]:
    """Rewrites all functions of a module; for passes that add functions, it comes first.

    Args:
        editor: of the module.
        code: the module, with the values of its specialization constants as their defaults.
        reporter: takes the places.
        options: what the device can do.

    Returns:
        what is not checked, for people.
    """
    checks = Checks(editor, code, reporter, options)
    addresses, images, workgroup = AddressChecks(checks), ImageChecks(checks), WorkgroupChecks(checks)
    functions = list(editor.functions)
    workgroup.choose(functions)
    for body in functions:
        body[:] = FunctionPass(checks, body, addresses, images, workgroup).write()
    return tuple(checks.unwatched)

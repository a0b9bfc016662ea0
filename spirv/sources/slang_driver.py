"""A command line for the library of Slang's compiler, in a process of its own, so that its crashes are contained.

    python slang_driver.py LIBRARY OUTPUT ARGUMENT…

The arguments are those of ``slangc``; the module goes to OUTPUT, messages to stderr. The functions are those that
Slang's ``slang-deprecated.h`` declares, and the blob is a COM object whose fourth and fifth methods give address and
size.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from pathlib import Path


def main(library: str, output: str, arguments: Sequence[str]) -> int:
    slang = ctypes.CDLL(library)
    pointer, status = ctypes.c_void_p, ctypes.c_int
    slang.spCreateSession.restype = slang.spCreateCompileRequest.restype = pointer
    slang.spGetDiagnosticOutput.restype = ctypes.c_char_p
    request = pointer(slang.spCreateCompileRequest(pointer(slang.spCreateSession(None))))
    texts = (ctypes.c_char_p * len(arguments))(*(argument.encode() for argument in arguments))
    result = status(slang.spProcessCommandLineArguments(request, texts, len(arguments))).value
    if result >= 0:
        result = status(slang.spCompile(request)).value
    sys.stderr.buffer.write(slang.spGetDiagnosticOutput(request) or b"")
    blob = pointer()
    if result < 0 or status(slang.spGetTargetCodeBlob(request, 0, ctypes.byref(blob))).value < 0 or not blob.value:
        return 1
    methods = ctypes.cast(ctypes.cast(blob, ctypes.POINTER(pointer))[0], ctypes.POINTER(pointer))
    address = ctypes.CFUNCTYPE(pointer, pointer)(methods[3])(blob)
    size = ctypes.CFUNCTYPE(ctypes.c_size_t, pointer)(methods[4])(blob)
    Path(output).write_bytes(ctypes.string_at(address, size))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))

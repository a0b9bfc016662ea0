"""Tensor programs to module files: what users call."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from .codegen.target import Target
from .module_cache import compile_file
from .pipeline import Origin, compile_data


def compile(
    source: str | bytes | PathLike[str],
    *,
    targets: Sequence[str] = ("vulkan",),
    file_name: str = "<text>",
    from_: str | None = None,
    feeds: Sequence[str] = (),
    fetches: Sequence[str] = (),
) -> bytes:
    """Compiles a tensor program.

    Args:
        source: a StableHLO program as text, as ``jax.jit(f).lower(…).as_text()`` gives it, or a program at a later
            stage; a TensorFlow GraphDef, as text or binary; or the path of a file.
        targets: kinds of devices that the module is for: ``"vulkan"``, ``"reference"``, or
            ``"vulkan:shaderInt64"``, devices with that feature. A module for several has executables for each and
            chooses by the device when it is loaded.
        file_name: as errors name the text; a path names itself.
        from_: the stage that the program is at, of ``STAGES``; by default its content tells.
        feeds: of a GraphDef: arguments as ``NAME[:N][=SHAPE]``; by default its placeholders.
        fetches: of a GraphDef: results as ``NAME[:N]``; by default what no node takes.

    Returns:
        A module file that ``Session.load`` takes. Its public functions are exported; they take and give tensors.

    Raises:
        CompileError: the program is wrong, or something in it is not supported; the message has its place and line.
        InvalidArgumentError: there is no such stage or target, only a GraphDef has feeds and fetches, or a
            file is no program, such as a module or a kernel.
        NotFoundError: there is no such file.
        UnavailableError: a GraphDef needs the extra ``graphdef``, which is not installed.
    """
    origin = Origin(from_, tuple(feeds), tuple(fetches))
    target = Target(kinds=(targets,) if isinstance(targets, str) else tuple(targets))
    if isinstance(source, str | bytes):
        data = source.encode("utf-8", "surrogateescape") if isinstance(source, str) else source
        return compile_data(data, file_name, target, origin).module
    return compile_file(Path(source), origin, target)

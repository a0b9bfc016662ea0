"""Compilation of tensor programs to module files: the function that users call."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from ..status import InvalidArgumentError, shown
from .abi.calling_convention import CallingConvention, named_convention
from .kernels.scalars.device_target import DeviceFacts, HasProfile, target_of
from .kernels.scalars.target import Target
from .module_cache import compile_file
from .origin import Origin
from .pipeline import compile_data
from .stages import GRAPH_SUFFIXES, STAGES


def compile(
    source: str | bytes | PathLike[str],
    *,
    targets: Sequence[str] = ("vulkan",),
    device: DeviceFacts | HasProfile | None = None,
    file_name: str = "<text>",
    from_: str | None = None,
    feeds: Sequence[str] = (),
    fetches: Sequence[str] = (),
    calling_convention: str | CallingConvention | None = None,
) -> bytes:
    """Compiles a tensor program.

    Args:
        source: a StableHLO program as text, as ``jax.jit(f).lower(…).as_text()`` returns it, or a program at a later
            stage; a TensorFlow GraphDef, as text or binary; or the path of a file, as a ``pathlib.Path``.
        targets: the kinds of devices that the module is for: ``"vulkan"``, ``"reference"``, or
            ``"vulkan:shaderInt64"``, devices with that feature. A module for several has executables for each and
            chooses by the device when it is loaded.
        device: the device that Vulkan kernels are made for, or its profile (``pumice.list_devices``). Other devices
            load the module if they have the features that it uses; by default, it uses those of Vulkan 1.1.
        file_name: the text's name in errors; a path is its own name.
        from_: the program's stage, of ``STAGES``, or ``"stablehlo"``; by default it follows from the content.
        feeds: the arguments of a GraphDef as ``NAME[:N][=SHAPE]``; by default its placeholders.
        fetches: the results of a GraphDef as ``NAME[:N]``; by default the outputs that no node uses.
        calling_convention: the way that exported functions pass arguments and results: ``"default"``, as buffer views;
            ``"outs"``, with results written to storages that the caller passes; ``"values"``, with tensors without
            dimensions as numbers; ``"buffers"``, with tensors of static shapes as bare buffers; several, separated by
            commas; or a convention of your own, with which files are not cached. By default ``"default"``, or the
            convention of a program past the stage ``hlo``.

    Returns:
        A module file that ``Session.load`` takes. It exports the program's public functions.

    Raises:
        CompileError: the program is wrong or not supported, or a type has no ABI in the convention; the message has the
            location and the line.
        InvalidArgumentError: there is no such stage, target or convention; a program that is no GraphDef has feeds or
            fetches; or a file is not a program, such as a module or a kernel.
        NotFoundError: there is no such file.
        UnavailableError: a GraphDef needs the extra ``graphdef``, which is not installed.
    """
    if from_ not in (None, "stablehlo", *STAGES):
        raise InvalidArgumentError(f"from_: expected one of stablehlo, {', '.join(STAGES)}, got {shown(from_)}")
    origin = Origin("hlo" if from_ == "stablehlo" else from_, _several(feeds), _several(fetches))
    kinds = _several(targets)
    target = Target(kinds=kinds) if device is None else target_of(device, kinds)
    convention = named_convention(calling_convention) if isinstance(calling_convention, str) else calling_convention
    if not isinstance(convention, CallingConvention | None):
        raise InvalidArgumentError(f"expected the name of a calling convention or one, got {shown(convention)}")
    if isinstance(source, str | bytes):
        if isinstance(source, str) and "\n" not in source and source.endswith((*GRAPH_SUFFIXES, ".mlir", ".vmasm")):
            raise InvalidArgumentError(f"expected a program's text, got {shown(source)}; write Path(…) for a file")
        data = source.encode("utf-8", "surrogateescape") if isinstance(source, str) else source
        return compile_data(data, file_name, target, origin, convention=convention).module
    return compile_file(Path(source), origin, target, convention)


def _several(names: Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)

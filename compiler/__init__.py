"""The compiler: tensor programs become modules.

Read: ir, analysis, dialects, kernels, origin, strategies, targets, passes, conversion, abi, frontends, module, stages,
lowering, pipeline, module_cache, compile.
"""

from typing import TYPE_CHECKING

from ..base.lazy import lazy_exports

if TYPE_CHECKING:
    from .abi.calling_convention import (
        CallingConvention,
        ConventionError,
        default_convention,
        named_convention,
        results_to_outs_convention,
    )
    from .abi.function_abi import Abi
    from .abi.type_converter import TypeConverter, parse_type

__all__ = [
    "Abi",
    "CallingConvention",
    "ConventionError",
    "TypeConverter",
    "default_convention",
    "named_convention",
    "parse_type",
    "results_to_outs_convention",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            ".abi.calling_convention": (
                "CallingConvention",
                "ConventionError",
                "default_convention",
                "named_convention",
                "results_to_outs_convention",
            ),
            ".abi.function_abi": ("Abi",),
            ".abi.type_converter": (
                "TypeConverter",
                "parse_type",
            ),
        },
    )

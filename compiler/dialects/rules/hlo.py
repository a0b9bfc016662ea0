"""The rule of each StableHLO operation: types of results from operands and attributes.

Constraints are those of StableHLO's specification (``docs/spec.md``). A rule takes an operation and returns its result
types, or raises ``OperationError``; unknown lengths agree with every length.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from ....status import close_to
from ...ir.attributes import StructAttr
from ...ir.operation import Operation
from ...ir.sizes import SizeError
from ...ir.types import TensorType, Type
from .chlo import CHLO_RULES
from .control import CONTROL
from .distribution import DISTRIBUTION
from .dynamic import DYNAMIC
from .elementwise import ELEMENTWISE
from .indexing import INDEXING
from .linear_algebra import LINEAR_ALGEBRA
from .reductions import REDUCTIONS
from .requirements import OperationError, Rule, tensors
from .shapes import SHAPES
from .statistics import STATISTICS

_CUSTOM: Final = re.compile(
    r"check\..*|ApproxTopK|Sharding|SPMD(FullToShard|ShardToFull)Shape|annotate_device_placement"
    r"|lapack_[sdcz](geqrf|gesdd|getrf|gtsv|heevd|orgqr|ormqr|potrf|syevd|trsm|ungqr|unmqr)_ffi"
)


_SHAPES: Final = ("shape_assertion", "stablehlo.dynamic_reduce_window")
"""Custom calls of programs with call-dependent shapes."""


def _custom_call(operation: Operation) -> Sequence[Type]:
    target = operation.attributes.get("call_target_name")
    if not isinstance(target, str) or not (_CUSTOM.fullmatch(target) or target in _SHAPES):
        raise OperationError(
            f"a call that is a check, a sharding, or LAPACK's for factorisations, systems, singular values and "
            f"eigenvalues of symmetric matrices, got @{target}; JAX may lower without it for another platform: "
            "jax.jit(f).trace(…).lower(lowering_platforms=('tpu',))"
        )
    return _declared(operation)


def _declared(operation: Operation) -> Sequence[Type]:
    """Accepts the declared types of an operation whose meaning is defined elsewhere."""
    return [value.type for value in operation.results]


def _optimization_barrier(operation: Operation) -> Sequence[Type]:
    types = [value.type for value in operation.operands]
    tensors(Operation("", [value for value in operation.operands if isinstance(value.type, TensorType)]))
    return types


RULES: Final[Mapping[str, Rule]] = {
    **ELEMENTWISE,
    **SHAPES,
    **CONTROL,
    **LINEAR_ALGEBRA,
    "custom_call": _custom_call,
    "optimization_barrier": _optimization_barrier,
    **DISTRIBUTION,
    **DYNAMIC,
    **INDEXING,
    **REDUCTIONS,
    **STATISTICS,
    **dict.fromkeys(("composite", "return"), _declared),
}
"""Rules by the operation's name without the dialect."""

_DIALECTS: Final[Mapping[str, Mapping[str, Rule]]] = {"chlo": CHLO_RULES, "stablehlo": RULES}


def is_known(operation: Operation) -> bool:
    """Returns whether an operation has a rule."""
    dialect, _, name = operation.name.partition(".")
    return name in _DIALECTS.get(dialect, {})


def infer(operation: Operation) -> Sequence[Type]:
    """Returns the types of an operation's results.

    Raises:
        OperationError: the operation violates the specification, or is unknown.
    """
    dialect, _, name = operation.name.partition(".")
    if dialect not in _DIALECTS:
        raise OperationError(f"a dialect that compiles, one of {', '.join(_DIALECTS)} and func, got {dialect}")
    rule = _DIALECTS[dialect].get(name)
    if rule is None:
        near = close_to(name, list(_DIALECTS[dialect]), 1)
        like = f", such as {dialect}.{near[0]}" if near else ""
        raise OperationError(f"an operation that pumice compiles{like}, got {operation.name}")
    accuracy = operation.attributes.get("result_accuracy")
    fields = accuracy.fields if isinstance(accuracy, StructAttr) else {}
    if "HIGHEST" in str(fields.get("mode")) and any(fields.get(name) for name in ("atol", "rtol", "ulps")):
        raise OperationError("no tolerance where the accuracy is HIGHEST")
    try:
        return rule(operation)
    except SizeError as error:
        raise OperationError(str(error)) from None
    except ValueError as error:
        raise OperationError(f"elements of scalar types: {error}") from None

"""Kernels from expressions: elementwise, reductions and scans, generated as GLSL and kept.

Read: types, parameters, arguments, geometry, program, loads, kernels, elementwise, axes, accumulator, reduction, scan.
"""

from .elementwise import ElementwiseKernel
from .reduction import ReductionKernel
from .scan import ScanKernel

__all__ = ["ElementwiseKernel", "ReductionKernel", "ScanKernel"]

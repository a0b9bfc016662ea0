"""Kernels from expressions: elementwise, reductions and scans, generated as GLSL and kept.

Read: types, parameters, arguments, geometry, kernels, program, accumulator, loads, elementwise, reduction, scan.
"""

from .elementwise import ElementwiseKernel
from .reduction import ReductionKernel
from .scan import ScanKernel

__all__ = ["ElementwiseKernel", "ReductionKernel", "ScanKernel"]

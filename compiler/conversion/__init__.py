"""Conversion of MHLO, arith, math, tensor, shape, scf and cf to StableHLO.

Read: preparation, quantized, conversion, arithmetic, control, tensors, convert.
"""

"""Conversion of MHLO, arith, math, tensor, shape, scf and cf to StableHLO.

Read: preparation, quantized, conversion, arith, cf, check, math, scf, shape, tensor, convert.
"""

"""Conversion of MHLO, arith, math, tensor, shape, scf and cf to StableHLO.

Read: quantized, conversion, arith, math, tensor, shape, mhlo, check, scf, cf, convert, user_types, places.
"""

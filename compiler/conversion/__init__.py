"""Operations of other dialects as StableHLO's: MHLO, arith, math, tensor, shape, scf, cf.

Imports: ir, dialects, passes.
Read: quantized, conversion, arith, math, tensor, shape, mhlo, check, scf, cf, convert, user_types, places.
"""

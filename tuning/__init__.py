"""Tuning: which strategy is fastest for the regions of a program, measured on the device at hand.

It stands above the compiler and the studies, which know nothing of each other: the compiler says what may compute a
region and takes what was found as a part of its target, and the sampler of studies measures it.

Imports: compiler, runtime, study.

Read: `database` → `regions` → `duel` → `tuner`.
"""

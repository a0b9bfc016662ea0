"""Contexts: modules linked together, and the stack, frames, deadlines and loops that run their functions.

Read: code_cache, interruption, namespace, bytecode_module, left_frames, machine_tier, policy, watchdog, admission,
module_state, frame, linker, stack, deadlines, loop, run, context.
"""

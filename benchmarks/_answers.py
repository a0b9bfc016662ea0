"""Answers of workers that time calls on the host. No benchmark."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, TextIO


def answer(calls: Mapping[str, Callable[[int], Any]], wait: Callable[[], object], to: TextIO, warm_up: int) -> None:
    """Says ``ready``, then answers each line ``CASE NUMBER`` with the nanoseconds that each of the calls took.

    Calls get numbers that they never had before. The device is idle before and after; nothing waits in between.
    """
    print("ready", file=to, flush=True)
    for number, line in enumerate(sys.stdin):
        name, count = line.split()
        call, first = calls[name], 10_000 * number
        for i in range(warm_up):
            call(first - 1 - i)
        wait()
        begin = time.perf_counter_ns()
        for i in range(int(count)):
            call(first + i)
        each = (time.perf_counter_ns() - begin) / int(count)
        wait()
        print(each, file=to, flush=True)

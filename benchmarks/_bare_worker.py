"""The floor of submit_wait.py: a process that makes the two native calls by cffi, without pumice. Not a benchmark.

``python _bare_worker.py LIBRARY DEVICE_UUID QUEUE_FAMILY SHADER.spv BUFFERS PUSH_BYTES``; LIBRARY is submit_wait.c as a
library, which opens the device and records. It says ``ready``, and answers ``prerecorded 100`` with the nanoseconds of
each of 100 submissions and waits.
"""

from __future__ import annotations

import gc
import sys
import time

from cffi import FFI

DECLARATIONS = """
struct calls { void *submit, *queue, *submit_info, *wait, *device, *wait_info; uint64_t *payload; };
void open_calls(int argc, char **argv, struct calls *calls);
"""


def main(library: str, arguments: list[str]) -> None:
    """The command line."""
    ffi = FFI()
    ffi.cdef(DECLARATIONS)
    program = ffi.dlopen(library)
    words = [ffi.new("char[]", word.encode()) for word in ("submit_wait", *arguments)]
    calls = ffi.new("struct calls *")
    program.open_calls(len(words), ffi.new("char *[]", words), calls)
    submit = ffi.cast("int (*)(void *, uint32_t, void *, void *)", calls.submit)
    wait = ffi.cast("int (*)(void *, void *, uint64_t)", calls.wait)
    queue, submit_info, device, wait_info = calls.queue, calls.submit_info, calls.device, calls.wait_info
    payload, null, forever, clock = calls.payload, ffi.NULL, (1 << 64) - 1, time.perf_counter_ns
    print("ready", flush=True)
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        count = int(line.split()[1])
        samples = [0] * count
        value = payload[0]
        for i in range(count):
            start = clock()
            value += 1
            payload[0] = value
            submit(queue, 1, submit_info, null)
            wait(device, wait_info, forever)
            samples[i] = clock() - start
        print(*samples, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])

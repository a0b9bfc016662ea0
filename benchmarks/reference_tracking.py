"""Do references notice what slows a point down, while other processes compute, copy, or do nothing?

In windows of a quarter of a second a point, the reference like its load and that of one workgroup run in turns. A
reference that moves as the point does ranks the windows alike, and explains their spread: what is left over is the
spread of the difference of logarithms (1.48 median deviations, about a standard deviation).
"""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import click
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import stats

from pumice.study.definition.expansion import expand
from pumice.study.definition.settings import Sampling
from pumice.study.definition.study import Study, Target
from pumice.study.workloads.clock import resolve
from pumice.study.workloads.openers import open_workload
from pumice.study.workloads.reference_kernel import ReferenceKernel
from pumice.study.workloads.workload import DevicePool, Load, Workload, WorkloadContext

_MODULE: Final = Path(__file__).parents[1] / "tools/studies/module-call.vmfb"
_WINDOW_S: Final = 0.25
_ONE_WORKGROUP_NS: Final = 1e5
_BURSTS: Final = """
import random, time
while True:
    end = time.monotonic() + random.uniform(0.02, 0.3)
    while time.monotonic() < end: pass
    time.sleep(random.uniform(0.02, 0.3))
"""
_COMPUTE: Final = "while True: pass"
_COPY: Final = "import numpy as np\na, b = np.zeros(1 << 23), np.zeros(1 << 23)\nwhile True: b[:] = a"
_OTHERS: Final[Mapping[str, tuple[str, ...]]] = {
    "none": (),
    "one computes": (_COMPUTE,),
    "two compute": (_COMPUTE, _COMPUTE),
    "two in bursts": (_BURSTS, _BURSTS),
    "one copies": (_COPY,),
}


def targets() -> tuple[Target, ...]:
    def kernel(name: str, source: str, groups: object, shapes: tuple[int, ...], **more: object) -> Target:
        bindings = [{"shape": shape, "init": "zeros"} for shape in shapes]
        settings = {"source": f"builtin:{source}", "groups": groups, "bindings": bindings, **more}
        return Target(name, "kernel", settings, measure="total")

    cells = 512 * 512
    return (
        kernel("empty kernel", "builtin/empty", 1, ()),
        kernel("arithmetic, 1 workgroup", "timing/fma", 1, (256,), push=[500, 1.0]),
        kernel("arithmetic, 256 workgroups", "timing/fma", 256, (256 * 256,), push=[8, 1.0]),
        kernel("stencil", "examples/game_of_life", [64, 64], (cells, cells), push=[512, 512], dtype="i32"),
        kernel("copy of 8 MiB", "timing/copy", 1024, (1 << 21, 1 << 21)),
        Target("module", "module", {"source": str(_MODULE), "inputs": ["4xf32=1", "4xf32=2"]}, measure="total"),
    )


@contextmanager
def others(programs: tuple[str, ...]) -> Iterator[None]:
    """Other processes that run these programs."""
    started = [subprocess.Popen([sys.executable, "-c", program]) for program in programs]
    try:
        time.sleep(0.3)
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def median(workload: Workload) -> float:
    return statistics.median(resolve([workload.sample()], None)[0].total for _ in range(3))


def window(workload: Workload, references: tuple[ReferenceKernel, ...]) -> tuple[float, ...]:
    """The median logarithms of the point and of each reference."""
    point: list[float] = []
    readings: list[dict[str, list[float]]] = [{} for _ in references]
    end = time.monotonic() + _WINDOW_S
    while time.monotonic() < end or len(point) < 6:
        point.append(median(workload))
        for reference, each in zip(references, readings, strict=True):
            reading = reference.read()
            each.setdefault(reading.load, []).append(reading.duration_ns)
    medians = [[float(np.log(statistics.median(times))) for times in each.values()] for each in readings]
    return float(np.log(statistics.median(point))), *(statistics.mean(each) for each in medians)


def spread(values: np.ndarray) -> float:
    return float(stats.median_abs_deviation(values, scale="normal"))


@click.command()
@click.option("--device", "uri", default="vulkan", metavar="URI", help="The device, e.g. lavapipe or vulkan://0.")
@click.option("--rounds", default=6, show_default=True, type=click.IntRange(2, 100), help="Windows of each kind.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the measurements here.")
def main(uri: str, rounds: int, json_path: Path | None) -> None:
    """Print how well each kind of reference tracks points of several kinds."""
    points = expand(Study("tracking", targets()), (uri,))
    found: dict[str, list[tuple[float, ...]]] = {point.target: [] for point in points}
    with ExitStack() as stack:
        pool = stack.enter_context(DevicePool())
        one = stack.enter_context(ReferenceKernel(pool.open(uri), Load(timed=True), _ONE_WORKGROUP_NS))
        opened = {}
        for point, target in zip(points, targets(), strict=True):
            workload = open_workload(target.kind, point, WorkloadContext(pool, uri), Sampling())
            stack.callback(workload.close)
            workload.first()
            taken = statistics.median(median(workload) for _ in range(10))
            own = stack.enter_context(ReferenceKernel(workload.device, workload.load, taken, execute=False))
            opened[point.target] = workload, (one, own)
        order = list(_OTHERS) * rounds
        random.shuffle(order)
        for name in order:
            with others(_OTHERS[name]):
                for target_name in random.sample(list(opened), len(opened)):
                    found[target_name].append(window(*opened[target_name]))
    table = Table(title=f"{len(order)} windows a point; spreads are of logarithms")
    for head in ("point", "rank correlation: one workgroup", "own", "spread", "left over: one workgroup", "own"):
        table.add_column(head, justify="left" if head == "point" else "right")
    for name, windows in found.items():
        point_times, of_one, of_own = np.array(windows).T
        ranks = [float(stats.spearmanr(point_times, of).statistic) for of in (of_one, of_own)]
        left = [spread(point_times - of) for of in (of_one, of_own)]
        table.add_row(
            name, *(f"{rank:.2f}" for rank in ranks), f"{spread(point_times):.3f}", *(f"{each:.3f}" for each in left)
        )
    Console(width=120).print(table)
    if json_path is not None:
        json_path.write_text(json.dumps({"others": order, "logarithms": found}) + "\n")


if __name__ == "__main__":
    main()

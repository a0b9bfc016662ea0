"""How often verdicts are right, by model of a machine and way of comparing: a table of rates with 95 % intervals.

python tests/study/machines/rates.py
python tests/study/machines/rates.py --pairs 100 --models states bursts --trials interleaved
python tests/study/machines/rates.py --trials separate --slower 1.2
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial

from machine_models import MODELS, model
from scipy import stats
from trials import TRIALS
from virtual_study import EQUAL, SLOWER

_CHUNK = 20


@dataclass
class Rates:
    """The verdicts of one way of comparing on one model: counts by target and verdict."""

    model: str
    way: str
    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def pairs(self) -> int:
        """The number of pairs of each target."""
        return self.count(EQUAL, "SAME", "FASTER", "SLOWER", "UNCLEAR")

    def count(self, target: str, *verdicts: str) -> int:
        return sum(self.verdicts[target, verdict] for verdict in verdicts)

    @property
    def different(self) -> int:
        """The number of equal versions with the verdict FASTER or SLOWER."""
        return self.count(EQUAL, "FASTER", "SLOWER")

    @property
    def found(self) -> int:
        return self.count(SLOWER, "SLOWER")

    @property
    def wrong(self) -> int:
        """The number of slow-downs with the verdict FASTER."""
        return self.count(SLOWER, "FASTER")

    @property
    def missed(self) -> int:
        """The number of slow-downs with the verdict SAME."""
        return self.count(SLOWER, "SAME")

    def interval(self, count: int) -> tuple[float, float]:
        """Returns the exact binomial interval of a count's rate, at 95 %."""
        interval = stats.binomtest(count, self.pairs).proportion_ci(0.95, method="exact")
        return float(interval.low), float(interval.high)

    def row(self) -> str:
        """Returns the rates as a row of a Markdown table."""
        counts = (self.different, self.count(EQUAL, "SAME"), self.found, self.count(SLOWER, "UNCLEAR"))
        rates = " | ".join(self._rate(count) for count in (*counts, self.missed, self.wrong))
        return f"| {self.model} | {self.way} | {self.pairs} | {rates} |"

    def _rate(self, count: int) -> str:
        low, high = self.interval(count)
        return f"{count / self.pairs:.1%} [{low:.1%}, {high:.1%}]"


SLOWER_BY = 1.05
"""The planted slow-down."""


def header(slower: float) -> str:
    """Returns the head of the table, for a slow-down."""
    by = f"{100 * (slower - 1):.4g} %"
    names = ("found", "UNCLEAR", "SAME", "wrong sign")
    columns = ("model", "way", "pairs", "equal: different", "equal: SAME", *(f"{by}: {name}" for name in names))
    return f"| {' | '.join(columns)} |\n| -- | -- |{' --: |' * 7}"


def _chunk(name: str, trial: str, slower: float, seeds: range) -> Counter[tuple[str, str, str]]:
    counts: Counter[tuple[str, str, str]] = Counter()
    for seed in seeds:
        for (way, target), verdict in TRIALS[trial](model(name), seed, slower).items():
            counts[way, target, verdict] += 1
    return counts


def rates(
    name: str, trial: str, seeds: range, slower: float = SLOWER_BY, pool: ProcessPoolExecutor | None = None
) -> list[Rates]:
    """Returns the rates of a model over trials with these seeds, one for each way of comparing that the trial has."""
    parts = [seeds[at : at + _CHUNK] for at in range(0, len(seeds), _CHUNK)]
    run = map if pool is None else pool.map
    by_way: dict[str, Rates] = {}
    for counts in run(partial(_chunk, name, trial, slower), parts):
        for (way, target, verdict), count in counts.items():
            by_way.setdefault(way, Rates(name, way)).verdicts[target, verdict] += count
    return list(by_way.values())


def table(models: Sequence[str], trials: Sequence[str], pairs: int, slower: float, processes: int) -> Iterator[Rates]:
    """Yields the rates of models, each as soon as it is known."""
    with ProcessPoolExecutor(processes) as pool:
        for name in models:
            for trial in trials:
                yield from rates(name, trial, range(pairs), slower, pool)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = [model.name for model in MODELS]
    parser.add_argument("--models", nargs="+", choices=known, default=known, metavar="MODEL")
    parser.add_argument("--trials", nargs="+", choices=list(TRIALS), default=list(TRIALS))
    parser.add_argument("--pairs", type=int, default=1000, help="of equal versions, and as many with a slow-down")
    parser.add_argument("--slower", type=float, default=SLOWER_BY, metavar="RATIO", help="the planted slow-down (1.05)")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    began = time.monotonic()
    print(header(arguments.slower))
    for rates in table(**vars(arguments)):
        print(rates.row(), flush=True)
    print(f"\n{time.monotonic() - began:.0f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""A writer to be killed: adds blocks of samples endlessly, and prints after each what was committed.

    python store_writer.py FOLDER

Each line of output is ``point first_number count tag``: the added samples have ``started`` of ``tag``, ``tag + 1``, …
so that each sample differs from all others that were ever tried.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from support.study.stored_results import next_block, sample_count

from pumice.study.definition.point import Point
from pumice.study.definition.sample import Sample
from pumice.study.results.storage.store import Store

POINTS = [Point(index, "saxpy", "lavapipe", {"n": 1 << index}) for index in range(3)]
STUDY = {"version": 1, "name": "killed"}


def main(folder: str) -> None:
    store = Store.open(folder, STUDY, POINTS) if Store.exists(folder) else Store.create(folder, STUDY, POINTS)
    run = store.begin_run({"pumice": "test"})
    tag, chance = run * 1_000_000, random.Random(run)
    while True:
        point, count = chance.randrange(len(POINTS)), chance.randrange(1, 40)
        samples = [Sample(started=tag + index, total=float(tag + index)) for index in range(count)]
        before = sample_count(store.path.parent, point, "%")
        store.add_samples(point, next_block(store.path.parent, point), chance.choice(("warmup", "sample")), samples)
        print(point, before, count, tag, flush=True)
        store.set_status(point, chance.choice(("sampling", "done")))
        tag += count


if __name__ == "__main__":
    main(sys.argv[1])

"""Registries: listed while others add, and of nothing that has ended."""

from __future__ import annotations

import sys
import threading

from pumice.base.weak_registry import WeakRegistry


class Item:
    pass


def test_objects_are_listed_in_order_and_not_kept_alive() -> None:
    registry: WeakRegistry[Item] = WeakRegistry()
    first, second, third = Item(), Item(), Item()
    for item in (first, second, third, first):
        registry.add(item)
    assert list(registry) == [first, second, third]
    del second, item
    registry.discard(third)
    registry.discard(third)
    assert list(registry) == [first]
    registry.clear()
    assert list(registry) == []


def test_objects_may_be_added_while_others_are_listed() -> None:
    registry: WeakRegistry[Item] = WeakRegistry()
    kept = [Item()]
    registry.add(kept[0])
    seen = 0
    for _ in registry:
        kept.append(Item())
        registry.add(kept[-1])
        seen += 1
    assert seen == 1 and len(list(registry)) == 2


def test_threads_add_and_end_while_others_list() -> None:
    registry: WeakRegistry[Item] = WeakRegistry()
    errors: list[Exception] = []
    done = threading.Event()

    def come_and_go() -> None:
        kept: list[Item] = []
        while not done.is_set():
            kept = [*kept[-20:], Item()]
            registry.add(kept[-1])

    def look() -> None:
        try:
            for _ in range(3000):
                assert all(type(item) is Item for item in registry)
        except Exception as error:
            errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        adding = [threading.Thread(target=come_and_go) for _ in range(2)]
        looking = [threading.Thread(target=look) for _ in range(2)]
        for thread in (*adding, *looking):
            thread.start()
        for thread in looking:
            thread.join(60)
        done.set()
        for thread in adding:
            thread.join(60)
    finally:
        sys.setswitchinterval(interval)
    assert errors == [] and not any(thread.is_alive() for thread in (*adding, *looking))

"""A device and a session, fresh for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import pumice


@pytest.fixture
def device() -> Iterator[pumice.Device]:
    """The device that `pumice.open_device` chooses."""
    with pumice.open_device() as opened:
        yield opened


@pytest.fixture
def session(device: pumice.Device) -> Iterator[pumice.Session]:
    """A session on that device."""
    with pumice.Session(device) as made:
        yield made

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


@pytest.fixture
def on_both(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes devices that are opened without a name of each kind in turn."""
    if request.param == "reference":
        monkeypatch.setenv("PUMICE_DEVICE", "reference")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests marked ``only_vulkan`` are about what only such devices have, or run what was compiled for them."""
    if "on_both" in metafunc.fixturenames:
        only = metafunc.definition.get_closest_marker("only_vulkan") is not None
        metafunc.parametrize("on_both", ["vulkan"] if only else ["vulkan", "reference"], indirect=True)

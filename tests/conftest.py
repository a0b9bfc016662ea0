"""Fixtures for every test: a device, and the two things that hold after each test.

After each test, live native objects are back at their baseline, and the validation layers (on under
``PUMICE_VALIDATION=1``) have said nothing that was not expected.
"""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from support.devices.features import require_features
from support.soak import SEED, SOAK, outside_of_the_sample

from pumice.hal_vulkan.device import Device
from pumice.hal_vulkan.instance.driver import Driver, shared_driver
from pumice.hal_vulkan.instance.process import finish_teardowns, open_devices
from pumice.hal_vulkan.vulkan.live_objects import live_objects
from pumice.hal_vulkan.vulkan.results import take_validation_errors
from pumice.status import UnavailableError
from pumice.testing.live import settled_counts

# JAX gives expected values here, each from a program that runs once: its compiler need not optimise, and is three times
# as quick with its older emitters.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false")

# A test's duration depends on what else the machine does: pytest's own limit finds what hangs.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")


# Projects of their own: test_projects.py runs them.
collect_ignore = ["testing/projects"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """``make test`` runs the suite in two parts: what measures time runs alone, after all else."""
    parser.addoption(
        "--timing",
        choices=("with", "without", "only"),
        default="with",
        help="tests marked timing: with all others (default), left out, or nothing else",
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files without a test that measures time need not be imported to find those that have one."""
    if config.getoption("timing") != "only" or collection_path.suffix != ".py":
        return None
    return True if "pytest.mark.timing" not in collection_path.read_text(encoding="utf-8") else None


def pytest_report_header() -> str:
    return "tests marked sample: all" if SOAK else f"tests marked sample: PUMICE_SAMPLE_SEED={SEED}, or PUMICE_SOAK=1"


@pytest.hookimpl(trylast=True)  # after -m and -k
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the part that ``--timing`` does not ask for, and what is outside of the sample."""
    left_out: set[pytest.Item] = set()
    part = config.getoption("timing")
    if part != "with":
        left_out.update(item for item in items if (item.get_closest_marker("timing") is None) == (part == "only"))
    if not SOAK and not any("::" in argument for argument in config.args):
        left_out |= outside_of_the_sample([item for item in items if item not in left_out])
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session", autouse=True)
def _private_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests neither read nor write the user's caches."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PUMICE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _interruptible() -> None:
    """Shells have what they start in the background ignore Ctrl-C, and its children too; these tests send it."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _counts() -> dict[str, int]:
    """Live objects but the instance: the process keeps one driver, made by the first test that needs it."""
    return {kind: count for kind, count in live_objects().items() if kind != "instance"}


def _settled_counts(known: dict[str, int]) -> dict[str, int]:
    """The counts without garbage, which counts as alive.

    It is collected only where the counts are not the ``known`` ones: a collection takes longer than most tests.
    """
    if _counts() != known:
        gc.collect()
        finish_teardowns()
    return _counts()


@pytest.fixture(scope="module", autouse=True)
def _nothing_left_by_the_module() -> Iterator[None]:
    """Checks that a module leaves no native object behind, those included that its devices keep for themselves."""
    before = _counts()
    yield
    after = _settled_counts(before)
    assert after == before, f"native objects left alive: before {before}, after {after}"


_before: dict[str, int] = {}


@pytest.fixture(autouse=True)
def _nothing_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """Checks that a test leaves no native object and no validation message behind, and shared devices usable."""
    global _before
    if request.node.get_closest_marker("vulkan") is None:
        yield
        return
    shared = [device for device in open_devices if not (device.is_closed or device.lost)]
    counts = settled_counts if shared else _settled_counts  # a shared device keeps pools for later tests
    _before = before = counts(_before)
    yield
    after = counts(before)
    errors = take_validation_errors()
    assert not errors, f"validation messages: {[e.message for e in errors]}"
    assert after == before, f"native objects left alive: before {before}, after {after}"
    assert not any(device.is_closed or device.lost for device in shared), "close or lose a device of the test's own"


@pytest.fixture(scope="session")
def driver() -> Driver:
    """The process's driver, of any Vulkan implementation; without one the test fails, as CI must have one."""
    return _driver()


def _driver() -> Driver:
    try:
        return shared_driver()
    except UnavailableError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no Vulkan here: {error.message}")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips a test marked ``features`` where the device lacks one of them."""
    names = [name for mark in item.iter_markers("features") for name in mark.args]
    if names:
        require_features(_driver(), *names)


@pytest.fixture
def device(driver: Driver) -> Iterator[Device]:
    """A device of the test's own, whose close frees what the test has made. Opening it takes four milliseconds."""
    with Device(driver) as fresh:
        yield fresh


@pytest.fixture(params=["mapped", "staging"])
def any_device(driver: Driver, request: pytest.FixtureRequest) -> Iterator[Device]:
    """A device twice: as it is, and on the path that discrete GPUs take."""
    from pumice.hal_vulkan.instance.plan import PlanOptions

    with Device(driver, options=PlanOptions(staging=request.param == "staging")) as fresh:
        yield fresh


@pytest.fixture
def shader_path() -> Path:
    """The folder of the shaders that ship."""
    from pumice import shaders

    return Path(shaders.__file__).parent


def pytest_collection_finish(session: pytest.Session) -> None:
    """Takes what was collected, thousands of tests with their modules, out of the garbage collector's rounds.

    Each test with a device collects twice, which took most of the suite's time.
    """
    gc.collect()
    gc.freeze()

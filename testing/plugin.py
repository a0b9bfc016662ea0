"""The pytest plug-in: fixtures, options and markers for tests of kernels and programs.

pytest loads this file wherever pumice is installed. Until a test requests a fixture or has a marker of the plug-in,
only this file is imported, and tests run unchanged.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import weakref
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from ..status import PumiceError
from .markers import MARKERS, is_right, warmups

if TYPE_CHECKING:
    from ..runtime import Device, Kernel, Session
    from .testbed import Testbed
    from .timing import TimedTest

_FIXTURES: Final = frozenset(("pumice_device", "pumice_session", "pumice_kernel"))
_testbed: Final = pytest.StashKey["Testbed"]()
_uses: Final = pytest.StashKey[bool]()
_warming: Final = pytest.StashKey[bool]()
_run: Final = pytest.StashKey["_Run"]()


class _Run:
    """The end of a run in the terminal and in the timing report, from the reports of all processes."""

    def __init__(self) -> None:
        self.header = ""
        self.is_shown = False
        self.lost: dict[str, str] = {}
        self.times: dict[str, TimedTest] = {}


# -- options and markers ------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("pumice", "tests on Vulkan devices (pumice)")
    group.addoption(
        "--pumice-device",
        metavar="URI",
        help="the device: vulkan, vulkan://INDEX, vulkan://GPU-UUID, vulkan://NAME or lavapipe. It has to be there. "
        "Default: PUMICE_DEVICE, else lavapipe in CI and the best device elsewhere.",
    )
    group.addoption(
        "--pumice-validation",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="the Khronos validation layers, whose messages fail tests. Default: PUMICE_VALIDATION, else on in CI.",
    )
    group.addoption(
        "--no-pumice", action="store_true", help="skip tests that need a device; nothing of Vulkan is loaded"
    )
    group.addoption(
        "--pumice-artifacts",
        metavar="DIR",
        type=Path,
        help="where failures are saved with what reproduces them, and a timing report. Default: pytest's own folder "
        "for temporary files, without the timing report.",
    )


def pytest_configure(config: pytest.Config) -> None:
    for line in MARKERS.values():
        config.addinivalue_line("markers", line)
    config.stash[_run] = _Run()
    config.pluginmanager.register(_Listener(config), "pumice-reports")


def _uses_pumice(item: pytest.Item) -> bool:
    """Whether a test requests a fixture of the plug-in, or has one of its markers."""
    if _uses not in item.stash:
        item.stash[_uses] = not _FIXTURES.isdisjoint(getattr(item, "fixturenames", ())) or any(
            mark.name in MARKERS for mark in item.iter_markers()
        )
    return item.stash[_uses]


def _bed(config: pytest.Config) -> Testbed:
    """Returns the run's testbed, made for the first test that needs it."""
    if _testbed not in config.stash:
        from .testbed import Testbed, choose, in_ci

        option = config.getoption
        artifacts = option("--pumice-artifacts")
        if artifacts is None:
            # The run's folder, kept as long as its other temporary files.
            artifacts = config._tmp_path_factory.getbasetemp() / "pumice"  # type: ignore[attr-defined]
        elif not artifacts.is_absolute():
            artifacts = config.invocation_params.dir / artifacts
        choice = choose(option("--pumice-device"), option("--pumice-validation"), os.environ, in_ci=in_ci())
        config.stash[_testbed] = Testbed(choice, artifacts)
    return config.stash[_testbed]


def _watched(item: pytest.Item) -> bool:
    return not item.config.getoption("--no-pumice") and _uses_pumice(item)


# -- fixtures -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pumice_device(request: pytest.FixtureRequest) -> Iterator[Device]:
    """The device of --pumice-device, open for the tests of a module; a fresh one after a test that lost it."""
    with _bed(request.config).open() as device:
        yield device


@pytest.fixture
def pumice_session(pumice_device: Device) -> Iterator[Session]:
    """A session on the device, for compiled programs: ``pumice_session.load("model.vmfb")``."""
    from ..runtime import Session

    with Session(pumice_device) as session:
        yield session


@pytest.fixture
def pumice_kernel(pumice_device: Device, request: pytest.FixtureRequest) -> Iterator[Callable[..., Kernel]]:
    """Loads kernels, and closes them after the test: ``pumice_kernel("blur.comp")(picture, …)``.

    Arguments are those of ``Device.load_kernel``. A path is first searched for beside the test's file.
    """
    kernels: list[Kernel] = []

    def load(source: str | Path | bytes, **options: Any) -> Kernel:
        if isinstance(source, Path) or (isinstance(source, str) and "\n" not in source):
            beside = request.path.parent / source
            source = beside if beside.is_file() else source
        kernels.append(pumice_device.load_kernel(source, **options))
        return kernels[-1]

    yield load
    for kernel in kernels:
        kernel.close()


# -- a test -------------------------------------------------------------------------------------------


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Runs a test with ``limit_live(…, warmups=n)`` n times before the counted run."""
    mark = item.get_closest_marker("limit_live")
    if mark is None or not _watched(item):
        return
    runner: Any = item.config.pluginmanager.getplugin("runner")
    item.stash[_warming] = True
    for _ in range(warmups(mark)):
        # Fixtures of a wider scope stay set up for the next run.
        reports = runner.runtestprotocol(item, log=False, nextitem=item.parent)
        if not all(report.passed for report in reports):
            break  # the counted run will do the same
    item.stash[_warming] = False


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    """Skips a test that cannot run here, and starts watching it."""
    if not _uses_pumice(item):
        return (yield)
    if item.config.getoption("--no-pumice"):
        raise pytest.skip.Exception("--no-pumice", _use_item_location=True)
    for mark in item.iter_markers():
        if mark.name in MARKERS and not is_right(mark):
            arguments = ", ".join(
                [*map(repr, mark.args), *(f"{name}={value!r}" for name, value in mark.kwargs.items())]
            )
            pytest.fail(f"the marker {mark.name}({arguments}): expected {MARKERS[mark.name]}", pytrace=False)
    bed = _bed(item.config)
    try:
        reason = bed.absence() or next((why for why in _reasons(item, bed) if why), None)
    except PumiceError as error:  # every test fails with this error, without frames of pumice's search
        pytest.fail(str(error), pytrace=False)
    if reason is not None:
        raise pytest.skip.Exception(reason, _use_item_location=True)
    _renew_device(item, bed)
    for message in bed.watch.begin(_limit(item), counting=not item.stash.get(_warming, False)):
        item.warn(pytest.PytestWarning(f"before this test, by none that uses the fixtures of pumice: {message}"))
    bed.recorder.calls.clear()
    with _environment(bed), bed.recorder.active():
        yield
    bed.watch.is_set_up = True
    return None


@contextlib.contextmanager
def _environment(bed: Testbed) -> Iterator[None]:
    """Gives devices that a test opens the same settings as the plug-in's device."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in bed.environment().items():
            patch.setenv(name, value)
        yield


def _reasons(item: pytest.Item, bed: Testbed) -> Iterator[str | None]:
    """Yields the reasons for which the markers skip a test."""
    if item.get_closest_marker("gpu") is not None:
        yield bed.not_a_gpu()
    for mark in item.iter_markers("needs"):
        yield bed.lacks(mark.args)
    for mark in item.iter_markers("skip_driver"):
        yield bed.avoided(mark.args)


def _limit(item: pytest.Item) -> Any:
    mark = item.get_closest_marker("limit_live")
    if mark is None:
        return None
    from .live import LiveLimit

    return LiveLimit.parse(*mark.args)


_device_fixture: Final = pytest.StashKey[tuple["pytest.FixtureDef[Any]", Any]]()


def _renew_device(item: pytest.Item, bed: Testbed) -> None:
    """Ends the fixture of a lost device, and its dependent fixtures, so that they are set up again."""
    fixture = item.config.stash.get(_device_fixture, None)
    if fixture is None:
        return
    definition, request = fixture
    cached = definition.cached_result
    if cached is not None and cached[2] is None and cached[0] in bed.watch.killers:
        definition.finish(request)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: Any) -> Generator[None, Any, Any]:
    """Counts the objects of fixtures that outlive a test, so that no test is blamed for them."""
    if fixturedef.scope == "function" or _testbed not in request.config.stash:
        return (yield)
    if fixturedef.argname == "pumice_device":
        request.config.stash[_device_fixture] = fixturedef, request
    with request.config.stash[_testbed].watch.fixture():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Fails the test for faults on its device."""
    if not _watched(item):
        return (yield)
    bed = _bed(item.config)
    mark = item.get_closest_marker("timeout_device")
    timeout = None if mark is None else float(mark.args[0])
    with _environment(bed), bed.recorder.active():
        try:
            with bed.watch.body(timeout):
                yield
        except pytest.skip.Exception:
            _fail(bed.watch.end_body(item.nodeid))
            raise
        except (Exception, pytest.fail.Exception):
            bed.watch.is_broken = True
            _add(item, "call", bed.watch.end_body(item.nodeid))
            raise
        _fail(bed.watch.end_body(item.nodeid))
    return None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, None, None]:
    """Fails the test for objects that it leaves behind."""
    if not _watched(item) or _testbed not in item.config.stash:
        return (yield)
    bed = _bed(item.config)
    parent, instance = item.parent, _weak(getattr(item, "instance", None))
    # After the last test of a class or a module, fixtures of that scope end in its teardown and free the objects that
    # the test left. The finalizer that is added last runs first, after the test's own.
    is_last = bed.watch.is_set_up and (nextitem is None or parent not in nextitem.listchain())
    if is_last and parent is not None:
        parent.addfinalizer(functools.partial(_count, item, instance, bed))
    try:
        with _environment(bed):
            yield
    except BaseException:
        bed.watch.is_broken = True
        bed.recorder.calls.clear()
        _add(item, "teardown", bed.watch.end(item.nodeid))
        raise
    if not is_last:
        _count(item, instance, bed)
    _fail(bed.watch.end(item.nodeid))
    return None


def _weak(instance: object) -> Callable[[], object]:
    """Returns a weak reference, as pytest drops some instances itself."""
    return weakref.ref(instance) if hasattr(instance, "__weakref__") else lambda: None


def _count(item: pytest.Item, instance: Callable[[], object], bed: Testbed) -> None:
    """Counts the objects that a test leaves after its own fixtures, without arrays that only pytest keeps."""
    bed.recorder.calls.clear()
    (getattr(item, "funcargs", None) or {}).clear()
    if bed.watch.count():
        getattr(instance(), "__dict__", {}).clear()  # the test's attributes of self
        bed.watch.count()


def _fail(complaints: Sequence[str]) -> None:
    if complaints:
        pytest.fail("\n".join(complaints), pytrace=False)


def _add(item: pytest.Item, when: str, complaints: Sequence[str]) -> None:
    if complaints:
        item.add_report_section(when, "pumice", "\n".join(complaints))


# -- reports ------------------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds the commands that reproduce a failure to it."""
    report = yield
    if not _watched(item) or _testbed not in item.config.stash:
        return report
    bed = _bed(item.config)
    said: dict[str, Any] = {"header": bed.header}
    if report.failed and call.when == "call" and call.excinfo is not None:
        text = _reproduction(item, bed, call.excinfo.value)
        if text:
            report.sections.append(("pumice", text))
    lost = {device.name: killer for device, killer in bed.watch.killers.items()}
    if lost:
        said["lost"] = lost
    report.pumice = said  # type: ignore[attr-defined]  # what xdist brings to the main process
    return report


def _reproduction(item: pytest.Item, bed: Testbed, error: BaseException) -> str:
    from ..status import DeviceLostError
    from . import reproduction
    from .closeness import NotCloseError

    text = ""
    killers = set(bed.watch.killers.values())
    if isinstance(error, DeviceLostError) and item.nodeid not in killers:
        text = "".join(f"a device was lost by {killer}\n" for killer in sorted(killers))
    if not bed.recorder.calls and not isinstance(error, NotCloseError):
        return text
    folder = bed.artifacts / reproduction.folder_name(item.nodeid)
    try:
        saved = reproduction.save(folder, bed.recorder.calls, error, bed.run_options())
    except Exception as why:  # for example a full disk: the failure itself must still be reported
        return f"{text}what reproduces this failure could not be saved: {why!r}"
    return text + saved.text()


def pytest_report_collectionfinish(config: pytest.Config, items: Sequence[pytest.Item]) -> str | None:
    """Returns the header; only now it is known whether a test needs a device."""
    if config.getoption("--no-pumice") or config.option.collectonly or not any(map(_uses_pumice, items)):
        return None
    config.stash[_run].is_shown = True
    return f"pumice: {_bed(config).header}"


class _Listener:
    """Receives the reports of all processes in the process that writes to the terminal."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        said = getattr(report, "pumice", None)
        if said is None:
            return
        from .timing import TimedTest

        run = self._config.stash[_run]
        run.header = said["header"]
        for device, killer in said.get("lost", {}).items():
            run.lost[killer] = device
        timed = run.times.setdefault(report.nodeid, TimedTest())
        timed.seconds[report.when] = report.duration
        if report.outcome != "passed":
            timed.outcome = report.outcome

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        run = self._config.stash[_run]
        if run.header and not run.is_shown:  # in xdist's main process nothing is collected
            terminalreporter.line(f"pumice: {run.header}")
        for killer, device in run.lost.items():
            terminalreporter.line(f"pumice: {device} was lost by {killer}; later tests had a fresh device")
        folder = self._config.getoption("--pumice-artifacts")
        if folder is not None and run.times:
            from .timing import write_times

            path = self._config.invocation_params.dir / folder / "timing.md"
            write_times(path, run.header, run.times)
            terminalreporter.line(f"pumice: times of the tests in {path}")

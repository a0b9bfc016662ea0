"""The pipeline cache on disk: kept, read again, and ignored where it is damaged or not ours."""

from __future__ import annotations

import hashlib
import logging
import os
from pathlib import Path

import pytest
from support.waiting import in_threads

from pumice import shaders
from pumice.base.cache import CachedFile, cache_directory
from pumice.hal_vulkan.device import Device
from pumice.hal_vulkan.instance.driver import Driver, shared_driver
from pumice.hal_vulkan.pipelines.pipeline import ComputePipeline
from pumice.hal_vulkan.pipelines.pipeline_context import PipelineCache, PipelineContext
from pumice.hal_vulkan.vulkan.functions import DeviceFunctions

pytestmark = pytest.mark.vulkan


@pytest.fixture(autouse=True)
def own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PUMICE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("PUMICE_CACHE", raising=False)
    return tmp_path / "cache"


@pytest.fixture(autouse=True)
def driver_that_caches(driver: Driver, own_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the cache grow with each new pipeline where the driver's own does not.

    Mesa's lavapipe gives out a header and nothing else, so there would never be anything to keep.
    """
    with Device(driver, persistent_cache=False) as device:
        before = device.pipeline_context.cache._data()
        device.create_pipeline(shaders.spirv("mul")).close()
        if device.pipeline_context.cache._data() != before:
            return
    header = len(before)
    grown: dict[int, bytes] = {}
    real_create, real_data, real_init = PipelineCache._create, PipelineCache._data, ComputePipeline.__init__

    def create(self: PipelineCache, data: bytes) -> object:
        grown[id(self)] = data[header:]
        return real_create(self, data)

    def data(self: PipelineCache) -> bytes:
        return real_data(self) + grown.get(id(self), b"")

    def init(
        self: ComputePipeline, context: PipelineContext, code: object, *arguments: object, **options: object
    ) -> None:
        real_init(self, context, code, *arguments, **options)  # type: ignore[arg-type]
        entry = hashlib.sha256(repr((self.interface, self.local_size)).encode()).digest()
        if entry not in grown[id(context.cache)]:
            grown[id(context.cache)] += entry

    monkeypatch.setattr(PipelineCache, "_create", create)
    monkeypatch.setattr(PipelineCache, "_data", data)
    monkeypatch.setattr(ComputePipeline, "__init__", init)


def make(driver: Driver, *names: str) -> Path:
    """Makes pipelines on a fresh device and returns the file of its cache."""
    with Device(driver) as device:
        for name in names or ("mul", "examples/saxpy"):
            device.create_pipeline(shaders.spirv(name)).close()
    (path,) = Path(os.environ["PUMICE_CACHE_DIR"]).glob("*/pipelines/*/[!.]*")
    return path


def kept(driver: Driver) -> bytes:
    """The kept part of the driver's data."""
    profile = driver.profiles[0]
    return CachedFile("pipelines", (profile.device_uuid, profile.driver_uuid, profile.driver_version)).load() or b""


def given_to_the_driver(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of the initial data that the driver is handed, one a cache made."""
    sizes: list[int] = []
    real = PipelineCache._create

    def spy(self: PipelineCache, data: bytes) -> object:
        sizes.append(len(data))
        return real(self, data)

    monkeypatch.setattr(PipelineCache, "_create", spy)
    return sizes


def test_it_is_kept_and_read_again(driver: Driver, own_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make(driver)
    assert own_directory in path.parents
    raw, data = path.read_bytes(), kept(driver)
    sizes = given_to_the_driver(driver, monkeypatch)
    stamp = path.stat().st_mtime_ns
    make(driver)
    assert sizes == [len(data)] and data
    # Nothing new was made, so nothing is written.
    assert path.stat().st_mtime_ns == stamp and path.read_bytes() == raw
    make(driver, "examples/reduction")
    assert sizes[1:] == [sizes[0]] and len(kept(driver)) > len(data)


@pytest.mark.parametrize("damage", [b"", b"short", os.urandom(5000)])
def test_damage_is_ignored_and_rebuilt(driver: Driver, damage: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make(driver)
    data = kept(driver)
    path.write_bytes(damage)
    sizes = given_to_the_driver(driver, monkeypatch)
    make(driver)
    assert sizes == [0]
    assert kept(driver) == data


def test_data_that_checks_but_that_the_driver_does_not_know(driver: Driver) -> None:
    make(driver)
    with Device(driver) as device:
        file = device.pipeline_context.cache.file
        assert file is not None and file.store(bytes(64))
    if driver.validation:
        pytest.skip("the layers report cache data that the driver is free to refuse")
    make(driver)
    assert len(kept(driver)) > 64


def test_a_driver_that_refuses_the_data(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    make(driver)
    real = DeviceFunctions.__init__

    def refuse(self: DeviceFunctions, *arguments: object) -> None:
        real(self, *arguments)  # type: ignore[arg-type]
        create = self.vkCreatePipelineCache
        self.vkCreatePipelineCache = lambda d, info, a, h: -1 if info.initialDataSize else create(d, info, a, h)

    monkeypatch.setattr(DeviceFunctions, "__init__", refuse)
    with caplog.at_level(logging.WARNING, "pumice.pipeline_cache"):
        make(driver)
    assert any("refused" in record.message for record in caplog.records)


def test_switched_off(driver: Driver, own_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUMICE_CACHE", "0")
    assert cache_directory() is None
    with Device(driver) as device:
        device.create_pipeline(shaders.spirv("mul")).close()
        assert not device.pipeline_context.cache.save()
    assert not list(own_directory.glob("*/pipelines"))
    monkeypatch.delenv("PUMICE_CACHE")
    with Device(driver, persistent_cache=False) as device:
        device.create_pipeline(shaders.spirv("mul")).close()
        assert device.pipeline_context.cache.file is None
    assert not list(own_directory.glob("*/pipelines"))


def test_places_that_cannot_be_written(driver: Driver, own_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = own_directory.with_name("file")
    file.write_text("where the folder should be")
    monkeypatch.setenv("PUMICE_CACHE_DIR", str(file))
    with Device(driver) as device:
        device.create_pipeline(shaders.spirv("mul"), None).close()
        assert not device.pipeline_context.cache.save()


def test_a_disk_that_is_full(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make(driver, "mul")
    before = path.read_bytes()
    with Device(driver) as device:
        device.create_pipeline(shaders.spirv("examples/matmul")).close()

        def full(self: Path, target: Path) -> Path:
            raise OSError(28, "No space left on device")

        real = Path.replace
        monkeypatch.setattr(Path, "replace", full)
        assert not device.pipeline_context.cache.save()
        assert path.read_bytes() == before
        assert [p.name for p in path.parent.iterdir()] == [path.name], "temporary files are left"
        monkeypatch.setattr(Path, "replace", real)
        assert device.pipeline_context.cache.save() and path.read_bytes() != before


def test_save_in_between(driver: Driver) -> None:
    with Device(driver) as device:
        assert not device.pipeline_context.cache.save()
        device.create_pipeline(shaders.spirv("mul")).close()
        cache = device.pipeline_context.cache
        assert cache.save() and kept(driver)
        assert not cache.save()


def test_processes_side_by_side_leave_a_whole_file() -> None:
    driver = shared_driver(validation=False)  # the layers have a data race where devices are opened in threads

    def work(name: str) -> None:
        for _ in range(4):
            make(driver, name)

    names = ("mul", "examples/saxpy", "examples/gemv")
    in_threads(work, names)
    make(driver)
    assert kept(driver)

"""The devices of a run, each opened once for each combination of options."""

from __future__ import annotations

from types import TracebackType

from ...hal_vulkan import Device as HalDevice
from ...hal_vulkan import PlanOptions, shared_driver
from ...runtime.device import Device


class DevicePool:
    """Opens devices and closes them together.

    Pipelines are not cached on disk, so that the first call of a kernel shows its whole cost.

    Thread rule: one thread at a time.

    Args:
        validation: enable the validation layers; ``None`` asks ``PUMICE_VALIDATION``.
    """

    def __init__(self, *, validation: bool | None = None) -> None:
        self._validation = validation
        self._devices: dict[tuple[str, PlanOptions], Device] = {}

    def open(self, uri: str, options: PlanOptions | None = None) -> Device:
        """The device of a URI and options; the one opened before if it is usable.

        Raises:
            NotFoundError: no such device; the message lists those that exist.
            UnavailableError: no Vulkan, or the device cannot be opened with these options.
        """
        wanted = options or PlanOptions()
        key = (uri, wanted)
        found = self._devices.get(key)
        if found is None or found.is_closed or found.hal.lost is not None:
            if found is not None:
                found.close()
            found = self._devices[key] = self.open_new(uri, wanted)
        return found

    def open_new(self, uri: str, options: PlanOptions | None = None, *, persistent_cache: bool = False) -> Device:
        """A separate device, which the caller closes."""
        driver = shared_driver(validation=self._validation)
        index = driver.select(uri or None)
        return Device(HalDevice(driver, index, options=options or PlanOptions(), persistent_cache=persistent_cache))

    def close(self) -> None:
        """Closes all; idempotent."""
        for device in self._devices.values():
            device.close()
        self._devices.clear()

    def __enter__(self) -> DevicePool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

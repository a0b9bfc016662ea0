"""Functions of the HAL and check modules that compiled functions call, with their calling conventions.

Source: IREE 3.12 and 3.13.
"""

from typing import Final

HAL_VERSION: Final = 7
"""The lowest version of the HAL module that has these functions."""

IMPORTS: Final = {
    "check.expect_all_true": "0rr_v",
    "check.expect_almost_eq": "0rrrff_v",
    "check.expect_eq": "0rrr_v",
    "hal.allocator.allocate": "0rIiiI_r",
    "hal.buffer.assert": "0rrrIii_v",
    "hal.buffer.load": "0rIi_i",
    "hal.buffer.store": "0irIi_v",
    "hal.buffer_view.assert": "0rriiCID_v",
    "hal.buffer_view.buffer": "0r_r",
    "hal.buffer_view.dim": "0ri_I",
    "hal.buffer_view.create": "0rIIiiCID_r",
    "hal.command_buffer.copy_buffer": "0riirIrIII_v",
    "hal.command_buffer.create": "0riiIi_r",
    "hal.command_buffer.dispatch": "0rrIiiiICiDCiirIID_v",
    "hal.command_buffer.dispatch.indirect": "0rrIirIICiDCiirIID_v",
    "hal.command_buffer.execution_barrier": "0riiI_v",
    "hal.command_buffer.finalize": "0r_v",
    "hal.device.allocator": "0r_r",
    "hal.device.query.i64": "0rrr_iI",
    "hal.device.queue.alloca": "0rIrrIiiII_r",
    "hal.device.queue.barrier": "0rIrrI_v",
    "hal.device.queue.copy": "0rIrrrIrIII_v",
    "hal.device.queue.dealloca": "0rIrrrI_v",
    "hal.device.queue.execute.indirect": "0rIrrrICrIID_v",
    "hal.device.queue.read": "0rIrrrIrIII_v",
    "hal.devices.count": "0v_i",
    "hal.devices.get": "0i_r",
    "hal.ex.file.from_memory": "0rIirIIi_r",
    "hal.executable.create": "0rIrrr_r",
    "hal.executable.lookup.function": "0rr_I",
    "hal.fence.await": "0iICrD_i",
    "hal.fence.create": "0rI_r",
}

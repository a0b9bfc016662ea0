"""The virtual machine: modules, contexts, invocations. Knows no Vulkan; waits on anything that is a ``WaitSource``."""

from .archive import ModuleArchive
from .buffer import VmBuffer
from .bytecode_module import BytecodeModule
from .calling_convention import CallingConvention
from .context import Context
from .frame import Frame, NativeFrame
from .function import Function
from .list import VmList
from .module_def import ModuleDef
from .module_reader import read_module
from .module_writer import write_module
from .native_module import NativeModule, export
from .wait_frame import Wait, WaitFrame
from .wait_source import WaitSource

__all__ = [
    "BytecodeModule",
    "CallingConvention",
    "Context",
    "Frame",
    "Function",
    "ModuleArchive",
    "ModuleDef",
    "NativeFrame",
    "NativeModule",
    "VmBuffer",
    "VmList",
    "Wait",
    "WaitFrame",
    "WaitSource",
    "export",
    "read_module",
    "write_module",
]

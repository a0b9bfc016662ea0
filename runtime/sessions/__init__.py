"""Sessions: modules loaded together on one or several devices, and calls of their functions.

Read: instance, session_devices, session_options, signature, scalar_binding, binding; donation, outputs, output_call,
function_binding, function_call; call_stream, session_function, session_calls,
session_modules, session.
"""

from .instance import Instance
from .session import Session
from .session_function import SessionFunction
from .session_options import SessionOptions

__all__ = ["Instance", "Session", "SessionFunction", "SessionOptions"]

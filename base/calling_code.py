"""Names for objects that code makes without naming them: that of the variable which the code assigns them to."""

from __future__ import annotations

from pathlib import PurePath
from types import FrameType

_WITH = ("BEFORE_WITH", "COPY")  # of a with statement, before 3.14 and since


def name_in_code(frame: FrameType | None) -> str:
    """Returns the name of the variable that receives the value of a frame's current call, ``scale`` for ``scale = f()``
    and ``with f() as scale``.

    A call whose value goes elsewhere is named by its file and line, ``demo:12``; ``""`` where it is in no file.
    """
    if frame is None:
        return ""
    import dis  # here: few programs need it

    instructions = iter(dis.get_instructions(frame.f_code))
    following = [item for item in instructions if item.offset > frame.f_lasti][:8]
    if following and following[0].opname in _WITH:
        following = [item for item in following if item.opname.startswith("STORE_")]
    if len(following) > 1 and following[0].opname.startswith("LOAD_") and following[1].opname == "STORE_ATTR":
        following = following[1:]  # self.kernel = …
    if following and following[0].opname.startswith("STORE_"):
        target = following[0].argval
        name = target[0] if isinstance(target, tuple) else target
        if isinstance(name, str):
            return name
    file = PurePath(frame.f_code.co_filename)
    return f"{file.stem}:{frame.f_lineno}" if file.suffix == ".py" else ""

"""The main function of a child process that measures for its parent; see ``child_process``.

The child introduces itself, takes one request, and answers until it is done or its parent has ended. The parent stores
the measurements while the child waits, so that storing disturbs no sample.
"""

from __future__ import annotations

import traceback

from ...base.message_pipe import PROTOCOL, Message, MessagePipe, error_as_message
from ...status import PumiceError
from ..machine.environment import environment_facts


def main() -> None:
    """Serves the parent at the other end of stdin and stdout."""
    with MessagePipe.to_parent() as pipe:
        try:
            facts = environment_facts()
            pipe.send({"hello": PROTOCOL, "pumice": facts["pumice"], "environment": facts})
            request = pipe.receive()
            try:
                _serve(pipe, request)
            except (EOFError, BrokenPipeError):
                raise
            except Exception as error:
                if not isinstance(error, PumiceError):
                    traceback.print_exc()
                pipe.send({"error": error_as_message(error)})
        except (EOFError, BrokenPipeError):
            pass  # the parent has ended


def _serve(pipe: MessagePipe, request: Message) -> None:
    # A side needs no statistics, which take seconds to load.
    if request["task"] == "side":
        from .side_host import serve_side

        serve_side(pipe, request)
    else:
        from .child_run import measure_pass

        measure_pass(pipe, request)

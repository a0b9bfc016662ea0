"""Dask's client as studies use it: tasks pinned to a worker, and the list of workers.

Needs the ``cluster`` extra: ``pip install 'pumice[cluster]'``.
"""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from ...status import InvalidArgumentError, UnavailableError

if TYPE_CHECKING:
    from distributed import Client

Result = TypeVar("Result")

_CONNECT_S: Final = 10.0
_FETCH_S: Final = 30.0


class ClusterTask(Generic[Result]):
    """A function called on a worker; ``key`` is its name in the cluster."""

    # Dask's versions differ in the methods that have types.
    def __init__(self, future: Any) -> None:
        self._future = future
        self.key: Final[str] = future.key

    @property
    def is_done(self) -> bool:
        return bool(self._future.done())

    def on_end(self, callback: Callable[[], None]) -> None:
        """Calls ``callback`` when the task ends, in one of Dask's threads."""
        self._future.add_done_callback(lambda _: callback())

    def result(self) -> Result:
        """Returns the function's result or raises its exception; UnavailableError if the worker was lost. Call it once
        done.
        """
        from distributed import KilledWorker

        try:
            result: Result = self._future.result(timeout=_FETCH_S)
        except (KilledWorker, TimeoutError, OSError) as error:
            raise UnavailableError(f"the worker was lost ({type(error).__name__})") from error
        except CancelledError as error:
            raise UnavailableError("the task was cancelled, or the scheduler was lost") from error
        return result

    def cancel(self) -> None:
        """Cancels it; errors of Dask are ignored."""
        with contextlib.suppress(Exception):
            self._future.cancel()


class ClusterClient:
    """A connection to a scheduler, over a Dask client that the caller keeps. One thread at a time."""

    def __init__(self, client: Client) -> None:
        self._client: Any = client

    @property
    def address(self) -> str:
        return str(self._client.scheduler.address)

    def workers(self) -> dict[str, str]:
        """Returns the addresses of all connected workers, with a text that distinguishes successive workers of an
        address.
        """
        try:
            workers = self._client.scheduler_info(n_workers=-1)["workers"]
        except Exception as error:  # of several types, depending on where the connection broke
            raise UnavailableError(
                "the Dask scheduler was lost; stored results stay: run the study again to resume"
            ) from error
        return {str(address): str(facts["local_directory"]) for address, facts in workers.items()}

    def submit(
        self, function: Callable[..., Result], *arguments: object, key: str, worker: str, sent: object = None
    ) -> ClusterTask[Result]:
        """Calls a function of a module that the worker can import, on this worker only.

        A task whose worker is lost does not end: it waits for a worker of the same address until it is cancelled.
        ``key`` is unique; ``sent``, an additional argument, is the value that ``send`` returned for this worker.
        """

        # Schedulers unpickle tasks. This function is sent by value, and its arguments as bytes: so a scheduler does not
        # need pumice, and a worker without pumice fails the task instead of crashing.
        def call(payload: bytes, *more: Any) -> Any:
            import pickle

            wanted, passed = pickle.loads(payload)
            return wanted(*passed, *more)

        more = () if sent is None else (sent,)
        options = {"workers": [worker], "allow_other_workers": False, "pure": False, "retries": 0}
        payload = pickle.dumps((function, arguments))
        return ClusterTask(self._client.submit(call, payload, *more, key=key, **options))

    def send(self, data: object, worker: str) -> object:
        """Sends data to a worker, as an argument of several tasks there; UnavailableError if that fails."""
        try:
            # In a list, as Dask would send the values of a mapping one by one.
            (sent,) = self._client.scatter([data], workers=[worker], hash=False)
        except Exception as error:  # such as KeyError, if the scheduler no longer knows the worker
            raise UnavailableError(f"files cannot be sent there: {type(error).__name__}: {error}") from error
        return sent


@contextlib.contextmanager
def connected(scheduler: str | Client) -> Iterator[ClusterClient]:
    """Connects to a scheduler's address for the duration of the block, or uses the caller's client.
    InvalidArgumentError: not an address, or an asynchronous client. UnavailableError: Dask is not installed, or no
    scheduler answers.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise UnavailableError(
            f"studies on a cluster need Dask ({error}); install it: pip install 'pumice[cluster]'"
        ) from None
    if isinstance(scheduler, Client):
        if scheduler.asynchronous:
            raise InvalidArgumentError("expected a client that is not asynchronous, or the scheduler's address")
        yield ClusterClient(scheduler)
        return
    connect: Any = Client
    try:
        client = connect(scheduler, timeout=_CONNECT_S, set_as_default=False)
    except ValueError as error:
        raise InvalidArgumentError(
            f"expected a scheduler's address such as tcp://head:8786, got {scheduler!r}: {error}"
        ) from None
    except OSError as error:
        raise UnavailableError(
            f"no Dask scheduler answers at {scheduler} ({error}); start one there with: dask scheduler"
        ) from None
    with client:
        yield ClusterClient(client)

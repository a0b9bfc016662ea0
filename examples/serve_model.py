"""A web service around a compiled program: requests are answered concurrently, and the event loop never blocks.

``POST /classify`` takes a picture of a digit as an ``.npy`` file and answers with JSON. It needs Starlette and httpx
(``pip install starlette httpx``). Serve it with any ASGI server: ``uvicorn serve_model:app``. Run as a script, it sends
requests to itself.
"""

import asyncio
import contextlib
import io
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np

import pumice

try:
    import httpx
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse
    from starlette.routing import Route
except ImportError as error:
    raise SystemExit(f"this example needs Starlette and httpx: pip install starlette httpx ({error})") from None

FOLDER = Path(__file__).parent / "digits"
TIMEOUT = 30.0  # seconds for a call


@contextlib.asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    """One session for all requests, opened before the first and closed behind the last."""
    with pumice.Session(options=pumice.SessionOptions(concurrent=True)) as session:
        await asyncio.to_thread(session.load, FOLDER / "digits.vmfb")  # opens the device: seconds, on some machines
        app.state.classify = session.lookup("module.classify")
        yield


async def classify(request: Request) -> JSONResponse:
    """What digit it is, and with what probability. A client that goes away cancels its call."""
    try:
        image = np.load(io.BytesIO(await request.body()), allow_pickle=False)
        odds, digit = await request.app.state.classify.call_async(image, timeout=TIMEOUT)
    except ValueError as error:  # no .npy file, or an array that the program does not take: InvalidArgumentError is one
        return JSONResponse({"error": str(error)}, status_code=400)
    except pumice.DeadlineExceededError:
        return JSONResponse({"error": "busy, try again"}, status_code=503)
    return JSONResponse({"digit": int(digit.numpy()[0]), "probability": float(odds.numpy().max())})


app = Starlette(routes=[Route("/classify", classify, methods=["POST"])], lifespan=lifespan)


async def main() -> None:
    """Fifty requests at once, and one that is wrong."""
    pictures = {3: (FOLDER / "three.npy").read_bytes(), 7: (FOLDER / "seven.npy").read_bytes()}
    wanted = [3, 7] * 25
    transport = httpx.ASGITransport(app)
    async with (
        lifespan(app),
        httpx.AsyncClient(transport=transport, base_url="http://digits", timeout=TIMEOUT) as client,
    ):
        answers = await asyncio.gather(*(client.post("/classify", content=pictures[digit]) for digit in wanted))
        assert [answer.json()["digit"] for answer in answers] == wanted
        print(f"{len(answers)} answers, such as {answers[0].json()}")

        buffer = io.BytesIO()
        np.save(buffer, np.zeros((28, 28), np.float32))
        refused = await client.post("/classify", content=buffer.getvalue())
        assert refused.status_code == 400 and "expected shape (1, 28, 28, 1)" in refused.json()["error"]
        print("refused:", refused.json()["error"])


if __name__ == "__main__":
    asyncio.run(main())

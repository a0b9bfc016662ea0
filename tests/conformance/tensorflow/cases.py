"""Graphs of TensorFlow with its results for their inputs, as folders that need no TensorFlow to be read.

``python tests/conformance/tensorflow/cases.py FOLDER`` records every case that the TensorFlow of this Python computes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class RecordedCase:
    """A graph, what it is fed and what TensorFlow fetches.

    Attributes:
        graph: the bytes of the GraphDef.
        feeds: names of outputs, and arrays.
        fetches: names of outputs, and arrays.
    """

    graph: bytes
    feeds: dict[str, Array]
    fetches: dict[str, Array]


def record(function: Callable[..., Any], arguments: Sequence[Array], folder: Path, is_open: bool = False) -> None:
    """Builds a graph of TensorFlow 1 whose placeholders are the arguments, runs it and writes both.

    Args:
        function: of the placeholders, with TensorFlow's operations.
        arguments: NumPy arrays.
        folder: to be written.
        is_open: whether placeholders leave their first length open that is that of the first argument.
    """
    import tensorflow as tf

    with tf.Graph().as_default() as graph:
        placeholders = [
            tf.compat.v1.placeholder(
                tf.as_dtype(np.asarray(value).dtype), _shape(value, arguments[0] if is_open else None), f"x{index}"
            )
            for index, value in enumerate(arguments)
        ]
        given = tf.nest.flatten(function(*placeholders))
        outputs = [tf.identity(value, f"y{index}") for index, value in enumerate(given)]
        with tf.compat.v1.Session(graph=graph) as session:
            results = session.run(outputs, dict(zip(placeholders, arguments, strict=True)))
    write(
        RecordedCase(
            graph.as_graph_def().SerializeToString(),
            {f"x{index}:0": np.asarray(value) for index, value in enumerate(arguments)},
            {f"y{index}:0": np.asarray(value) for index, value in enumerate(results)},
        ),
        folder,
    )


def _shape(value: Array, first: Array | None) -> list[int | None]:
    """The shape of an array, open at the first length if that is the other array's."""
    shape: list[int | None] = list(np.shape(value))
    return [None, *shape[1:]] if first is not None and shape[:1] == list(np.shape(first))[:1] else shape


def record_model(
    model: Callable[..., Any], arguments: Sequence[Array], is_lowered: bool, folder: Path, is_open: bool = False
) -> None:
    """Freezes a model: variables become constants, and with ``is_lowered`` functional control flow becomes switches."""
    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    model(*arguments)
    specs = [tf.TensorSpec(_shape(value, arguments[0] if is_open else None), value.dtype) for value in arguments]
    concrete = tf.function(model).get_concrete_function(*specs)
    frozen = convert_variables_to_constants_v2(concrete, lower_control_flow=is_lowered)
    results = tf.nest.flatten(frozen(*(tf.constant(value) for value in arguments)))
    write(
        RecordedCase(
            frozen.graph.as_graph_def().SerializeToString(),
            {tensor.name: value for tensor, value in zip(frozen.inputs, arguments, strict=True)},
            {tensor.name: np.asarray(value) for tensor, value in zip(frozen.outputs, results, strict=True)},
        ),
        folder,
    )


def write(case: RecordedCase, folder: Path) -> None:
    """Writes a case as a GraphDef and two archives."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "graph.pb").write_bytes(case.graph)
    np.savez(folder / "feeds.npz", **case.feeds)
    np.savez(folder / "fetches.npz", **case.fetches)


def read(folder: Path) -> RecordedCase:
    """Reads what ``write`` wrote."""
    with np.load(folder / "feeds.npz") as feeds, np.load(folder / "fetches.npz") as fetches:
        return RecordedCase((folder / "graph.pb").read_bytes(), dict(feeds), dict(fetches))


def folder_name(name: str) -> str:
    """A case's name as that of a folder."""
    return "".join(char if char.isalnum() or char in "-_." else f"%{ord(char):02X}" for char in name)


def main(folder: Path) -> None:
    """Records every case."""
    from conformance.tensorflow import models as graphdef_models
    from conformance.tensorflow import operations as graphdef_operations
    from conformance.tensorflow import windows as graphdef_windows

    operations = {**graphdef_operations.OPERATIONS, **graphdef_windows.WINDOWS}
    for kind, cases in (("operations", operations), ("models", graphdef_models.FUNCTIONS)):
        for name, (function, arguments) in cases.items():
            record(function, arguments, folder / kind / folder_name(name))
    for name in graphdef_models.OPEN:
        function, arguments = graphdef_models.FUNCTIONS[name]
        record(function, arguments, folder / "open" / folder_name(name), is_open=True)
    for name, (model, arguments) in graphdef_models.keras_models().items():
        for is_lowered in (False, True):
            style = "switches" if is_lowered else "functions"
            for kind in ("models", "open"):
                place = folder / kind / folder_name(f"{name}, {style}")
                record_model(model, arguments, is_lowered, place, kind == "open")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    main(Path(sys.argv[1]))

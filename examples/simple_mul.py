"""A TensorFlow graph becomes a module, stage by stage, which runs on a Vulkan device and on the reference device.

It needs the messages of a GraphDef: ``pip install 'pumice[graphdef]'``.
"""

from pathlib import Path

import numpy as np

import pumice

GRAPH = Path(__file__).parent / "simple_mul" / "simple_mul.pbtxt"

module = pumice.compile(GRAPH, targets=("vulkan", "reference"))
a, b = np.array([1, 2, 3, 4], np.float32), np.array([0.5, -1, 2, 2.5], np.float32)
results = {}
for device in (None, "reference"):
    with pumice.Session(device=device) as session:
        session.load(module)
        results[session.device.name] = session.call("simple_mul.simple_mul", a, b).numpy()
for name, result in results.items():
    print(f"{name}: {result}")
    assert np.array_equal(result, a * b)

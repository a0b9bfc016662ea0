"""A digit classifier trained by gradient descent with ``pumice.jit``: pictures in, weights that stay on the device.

A step is a function of JAX: a convolution, a rectifier, pooling and a dense layer, the loss's gradients, and momentum.
Weights and momentum are donated, so each step writes the new ones into the memory of the old. The pictures are those
that ``digits/train.py`` draws. It needs JAX: ``pip install 'pumice[jax]'``.
"""

import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import pumice

sys.path.insert(0, str(Path(__file__).parent / "digits"))
from train import images

RATE, BATCH, ROUNDS = 0.05, 50, 4
NHWC = ("NHWC", "HWIO", "NHWC")


def classify(weights, pictures):
    """Logarithms of the odds of the ten digits, (count, 10)."""
    maps = jax.lax.conv_general_dilated(pictures, weights["filters"], (2, 2), "VALID", dimension_numbers=NHWC)
    maps = jax.nn.relu(maps + weights["shift"])
    pooled = jax.lax.reduce_window(maps, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return jax.nn.log_softmax(pooled.reshape(len(pictures), -1) @ weights["dense"] + weights["bias"])


def loss_of(weights, pictures, digits):
    """The mean cross-entropy."""
    return -jnp.take_along_axis(classify(weights, pictures), digits[:, None], axis=1).mean()


@pumice.jit(donate_argnames=("weights", "momentum"))
def step(weights, momentum, pictures, digits):
    loss, gradients = jax.value_and_grad(loss_of)(weights, pictures, digits)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradients)
    return jax.tree.map(lambda w, m: w - RATE * m, weights, momentum), momentum, loss


@pumice.jit
def right_of(weights, pictures, digits):
    return (classify(weights, pictures).argmax(1) == digits).mean()


random = np.random.default_rng(0)
shapes = {"filters": (5, 5, 1, 8), "shift": (8,), "dense": (288, 10), "bias": (10,)}
weights = {name: (random.normal(size=shape) * 0.1).astype(np.float32) for name, shape in shapes.items()}
momentum = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}

pictures, digits = images(2000, seed=1)
batches = [
    (step.device.asarray(pictures[at : at + BATCH]), step.device.asarray(digits[at : at + BATCH].astype(np.int32)))
    for at in range(0, len(pictures), BATCH)
]
others, their_digits = images(500, seed=2)

print(f"training on {step.device.name}")
losses = []
for number in range(ROUNDS):
    begin = time.perf_counter()
    total = 0.0
    for batch in batches:
        weights, momentum, loss = step(weights, momentum, *batch)
        total += float(loss)
    losses.append(total / len(batches))
    share = float(right_of(weights, others, their_digits.astype(np.int32)))
    print(f"round {number + 1}: loss {losses[-1]:.3f}, {share:.1%} of other pictures right, ", end="")
    print(f"{1e3 * (time.perf_counter() - begin) / len(batches):.1f} ms a step")

print("the weights are on the device:", ", ".join(f"{name} {weight.shape}" for name, weight in weights.items()))
assert all(isinstance(weight, pumice.DeviceArray) for weight in weights.values())
assert losses[-1] < 0.3 * losses[0] and share > 0.9

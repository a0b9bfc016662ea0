"""A picture from a compiled program: a function of the time in JAX.

``python examples/view/plasma.py`` writes plasma.mlir beside it, which is there already: showing it,
``pumice view --session examples/view/plasma.mlir``, needs no JAX.
"""

from pathlib import Path

import jax
import jax.numpy as jnp

import pumice


def plasma(time: jax.Array) -> jax.Array:
    y, x = jnp.mgrid[0:180, 0:320] / 90.0 - jnp.array([1.0, 1.777]).reshape(2, 1, 1)
    circles = jnp.sin(8 * jnp.hypot(x - 0.7 * jnp.sin(time), y - 0.5 * jnp.cos(1.3 * time)))
    value = circles + jnp.sin(4 * x + time) + jnp.sin(3 * (x * jnp.sin(time / 2) + y * jnp.cos(time / 3)) + time)
    color = 0.5 + 0.5 * jnp.cos(2 * value[..., None] + jnp.array([0.0, 2.0, 4.0]))
    return jnp.concatenate([color, jnp.ones((180, 320, 1))], axis=-1).astype(jnp.float32)


target = Path(__file__).with_suffix(".mlir")
target.write_text(pumice.jit(plasma).lower(jax.ShapeDtypeStruct((), jnp.float32)).as_text())
print("wrote", target.name)

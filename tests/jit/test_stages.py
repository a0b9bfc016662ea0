"""Lowered and compiled functions, their errors, and profiles of what runs."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import pumice
from pumice.compiler.ir.source import CompileError

jax = pytest.importorskip("jax", reason="needs jax: pip install 'pumice[jax]'")
jnp = jax.numpy

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def double(x, *, by=2.0):
    return {"y": x * by}


def from_cell(source: str, process: int) -> Callable[..., object]:
    """A function ``f`` from a notebook's cell, as ipykernel compiles it in a process."""
    names: dict[str, Callable[..., object]] = {"jax": jax, "jnp": jnp}
    exec(compile(source, f"/tmp/ipykernel_{process}/1234.py", "exec"), names)
    return names["f"]


def test_a_cell_compiles_to_the_same_in_every_process() -> None:
    source = "def f(x):\n    return jnp.tanh(x) * 2"
    first, second = (pumice.jit(from_cell(source, process), device="reference").lower(X) for process in (11, 22))
    assert first.as_text(debug_info=True) != second.as_text(debug_info=True)
    assert first.compile().module == second.compile().module


def test_errors_in_a_cell_name_its_file_in_this_process() -> None:
    function = from_cell("def f(x):\n    return jax.lax.linalg.schur(x)[0]", os.getpid())
    with pytest.raises(CompileError) as error:
        pumice.jit(function, device="reference").lower(np.eye(3, dtype=np.float32)).compile()
    assert (error.value.file_name, error.value.line) == (f"/tmp/ipykernel_{os.getpid()}/1234.py", 2)


def test_the_stages_of_jax() -> None:
    function = pumice.jit(double, device="reference")
    lowered = function.lower(jax.ShapeDtypeStruct((2, 3), np.float32))
    assert lowered.as_text() == jax.jit(double, keep_unused=True).lower(X).as_text()
    assert Path(__file__).name in lowered.as_text(debug_info=True)
    compiled = lowered.compile()
    assert compiled.out_tree == jax.tree.structure({"y": 0})
    assert "vm.module @jit_double" in compiled.as_text()
    for given in (X, jnp.asarray(X), function.device.asarray(X)):
        np.testing.assert_array_equal(compiled(given)["y"].numpy(), X * 2)
    np.testing.assert_array_equal(asyncio.run(compiled.call_async(X))["y"].numpy(), X * 2)
    assert function.cache_info().currsize == 0
    compiled.close()
    with pytest.raises(pumice.ClosedError):
        compiled(X)


def test_compiled_without_the_static_arguments() -> None:
    function = pumice.jit(lambda x, n: x**n, static_argnums=1, device="reference")
    with function.lower(X, 3).compile() as compiled:
        np.testing.assert_array_equal(compiled(X).numpy(), X**3)


@pytest.mark.parametrize(
    ("arguments", "named", "message"),
    [
        ((X[:1],), {}, r"argument\[0\]\[0\]: expected float32\[2,3\], which was lowered, got float32\[1,3\]"),
        ((X.astype(np.int32),), {}, r"got int32\[2,3\]"),
        ((), {"x": X}, "expected arguments in the tree"),
        ((X, X), {}, "expected arguments in the tree"),
    ],
)
def test_compiled_takes_what_was_lowered(arguments, named, message: str) -> None:
    with (
        pumice.jit(double, device="reference").lower(X).compile() as compiled,
        pytest.raises(TypeError, match=message),
    ):
        compiled(*arguments, **named)


def test_a_module_is_taken_from_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUMICE_CACHE_DIR", str(tmp_path))

    def lowered():
        return pumice.jit(double, device="reference").lower(X)

    compiled = [pumice.jit(double, device="reference").lower(X).compile()]
    compiled += [lowered().compile() for _ in range(2)]  # from other lines, and by way of others
    kept = list(tmp_path.rglob("*.entry"))
    assert len(kept) == 1 and len({one.module for one in compiled}) == 1


# -- errors ---------------------------------------------------------------------------------------------


def calls_python(x):
    return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x)  # here


def prints_in_a_branch(x):
    def left(x):
        jax.debug.print("{}", x)  # here
        return x

    return jax.lax.cond(x[0, 0] > 0, left, lambda x: -x, x)


def has_no_kernel(x):
    y = x[:, :2] + 1
    return jnp.linalg.eig(y)  # here


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (calls_python, "pure_callback calls Python"),
        (prints_in_a_branch, "debug_(print|callback) calls Python"),
        (has_no_kernel, "lapack_sgeev"),
    ],
)
def test_an_error_names_the_line_of_python(function: Callable[..., object], message: str) -> None:
    lines, first = inspect.getsourcelines(function)
    (line,) = [first + number for number, text in enumerate(lines) if "# here" in text]
    with pytest.raises(CompileError, match=message) as caught:
        pumice.jit(function, device="reference")(X)
    assert (caught.value.file_name, caught.value.line) == (__file__, line)
    assert caught.value.message.startswith(f"{__file__}:{line}: ")
    assert caught.value.message.endswith(lines[line - first].strip())


def needs_more_memory_than_there_is(x):
    return jnp.zeros((1 << 20, 1 << 20)) + x[0, 0]


def has_a_type_that_no_array_has(x):
    return x


def test_what_is_of_the_function_as_a_whole_names_its_definition() -> None:
    line = inspect.getsourcelines(needs_more_memory_than_there_is)[1]
    with pytest.raises(pumice.ResourceExhaustedError, match=f"{__file__}:{line}:1"):
        pumice.jit(needs_more_memory_than_there_is, device="reference")(X)
    line = inspect.getsourcelines(has_a_type_that_no_array_has)[1]
    with pytest.raises(CompileError, match=f"{__file__}:{line}: has_a_type_that_no_array_has: func.func expects"):
        pumice.jit(has_a_type_that_no_array_has, device="reference")(np.zeros(3, jnp.int2))


def test_what_is_no_array_is_jaxs_error() -> None:
    with pytest.raises(TypeError, match="path x"):
        pumice.jit(double, device="reference")("text")


# -- profiles -------------------------------------------------------------------------------------------


def test_a_profile_has_executables_that_come_and_go() -> None:
    function = pumice.jit(lambda x: jnp.tanh(x) + 1, device="reference", cache_size=1)
    function(X)
    with function.profile(most_slowdown=None) as profile:
        function(X)
        function(X[:1])  # the first executable leaves
        function(X[:1])
        with pytest.raises(pumice.FailedPreconditionError, match="being profiled already"):
            function.profile()
    function(X)
    assert [call.error for call in profile.calls] == ["", "", ""] and all(call.vm_ns for call in profile.calls)
    with function.profile() as again:
        function(X)
    assert len(again.calls) == 1


@pytest.mark.vulkan
def test_a_profile_names_the_lines_of_dispatches() -> None:
    with pumice.open_device() as device:
        function = pumice.jit(lambda x: jnp.tanh(x) + 1, device=device)
        with function.profile(most_slowdown=None) as profile:
            function(X)
        (dispatch,) = profile.dispatches
        assert dispatch.location is not None and dispatch.location.startswith(__file__)
        function.clear_cache()

"""Executables on disk: a later process reads them, and never that of another call."""

import functools
import os
import subprocess
import sys
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.compilation_cache import compilation_cache

import rigidjax as rj
from rigidjax import persistent_jit as module
from rigidjax.native import executables
from rigidjax.native.runtime import identity

COUNTS = {"compiled": 0}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Folder of executables; compilations are counted."""
    monkeypatch.setenv("RIGIDJAX_KERNEL_CACHE", str(tmp_path))
    original = module.Executable._lower

    def lower_and_count(executable):
        COUNTS["compiled"] += 1
        return original(executable)

    monkeypatch.setattr(module.Executable, "_lower", lower_and_count)
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", None)
    compilation_cache.reset_cache()
    forget()
    yield tmp_path
    jax.config.update("jax_compilation_cache_dir", before)
    compilation_cache.reset_cache()
    forget()


def forget():
    """Forget the executables in memory, as in a new process."""
    module._executables.clear()
    COUNTS["compiled"] = 0


class Moment(eqx.Module):
    size: jax.Array
    power: int = eqx.field(static=True, default=1)

    def __call__(self, t):
        return -self.size * t**self.power


def end_of(x):
    """Angle of the pendulum with a law that closes over a traced value."""
    two = 2.0 + 0.0 * x
    return end(x, lambda t: -two * t)


def end(x, law=None):
    """Angle of a pendulum with a law of the user."""
    arm = rj.Body("arm", 1.0, (0.1, 0.2, 0.2), position=(0.5, 0, 0))
    hinge = rj.Revolute("ground", "arm", (0, 0, 0), axis=(0, 1, 0), name="hinge", damping=x)
    forces = [rj.Gravity((0, 0, -9.81)), rj.Motor("hinge", law or Moment(jnp.asarray(2.0)))]
    model = rj.NullSpace(rj.System(arm, hinge, forces))
    return rj.simulate(model, model.system.reference_state(), 0.2).coordinates["hinge"][-1, 0]


def derivatives(function, x):
    _, tangent = jax.jvp(function, (x,), (jnp.ones_like(x),))
    return [function(x), *jax.value_and_grad(function)(x), tangent]


def test_second_process_compiles_nothing_and_has_equal_results():
    first = derivatives(end, jnp.asarray(0.3))
    assert COUNTS["compiled"] > 4
    forget()
    again = derivatives(end, jnp.asarray(0.3))
    assert COUNTS["compiled"] == 0
    for a, b in zip(first, again, strict=True):
        assert np.array_equal(a, b)
    inside = [jax.jit(jax.value_and_grad(function))(jnp.asarray(0.3)) for function in (end, end_of)]
    count = COUNTS["compiled"]
    forget()
    again = jax.jit(jax.value_and_grad(lambda x: 1.0 * end(x)))(jnp.asarray(0.3))
    assert count > 0 and COUNTS["compiled"] == 0
    # Derivatives inside `jax.jit` agree to the tolerance of the run.
    for value, gradient in (*inside, again):
        np.testing.assert_allclose(first[1], value, rtol=1e-9)
        np.testing.assert_allclose([first[2], first[3]], [gradient] * 2, rtol=1e-8)
    assert again == inside[0]


@pytest.fixture(scope="module")
def scale():
    return module.persistent_jit(_scale)


def _scale(x, options):
    return {"y": x["a"] * options["factor"], "name": options.get("name"), "count": x["n"] + 1}


def test_results_and_derivatives_of_a_function(scale):
    x = {"a": jnp.arange(3.0), "n": jnp.asarray(2)}
    out = scale(x, {"factor": 3.0, "name": "b"})
    assert out["name"] == "b" and int(out["count"]) == 3
    np.testing.assert_array_equal(out["y"], 3 * np.arange(3.0))

    def total(a):
        out = scale({"a": a, "n": jnp.asarray(2)}, {"factor": jnp.sum(a**2)})
        return jnp.sum(out["y"]), out["count"]

    gradient, count = jax.grad(total, has_aux=True)(jnp.arange(3.0))
    a = np.arange(3.0)
    np.testing.assert_allclose(gradient, a @ a + 2 * a * a.sum(), rtol=1e-14)
    assert int(count) == 3
    # With a batch of tangents the values have no batch axis.
    rows, count = jax.jacfwd(total, has_aux=True)(jnp.arange(3.0))
    np.testing.assert_allclose(rows, gradient, rtol=1e-14)
    assert count.shape == ()
    # Under `vmap`, and second derivatives.
    batch = jax.vmap(lambda a: total(a)[0])(jnp.ones((2, 3)))
    np.testing.assert_allclose(batch, [9.0, 9.0])

    def square(s):
        return scale({"a": s, "n": 1}, {"factor": s})["y"]

    for second in (jax.jvp(jax.grad(square), (1.5,), (1.0,))[1], jax.grad(jax.grad(square))(1.5)):
        np.testing.assert_allclose(second, 2.0, rtol=1e-14)


@pytest.mark.parametrize(
    "change",
    [{"a": jnp.arange(3, dtype="float32")}, {"a": jnp.arange(4.0)}, {"factor": 4.0}, {"name": "c"}],
    ids=["dtype", "shape", "number", "text"],
)
def test_another_call_has_another_executable(scale, change):
    x, options = {"a": jnp.arange(3.0), "n": jnp.asarray(2)}, {"factor": 3.0, "name": "b"}
    scale(x, options)
    count = COUNTS["compiled"]
    forget()
    scale(
        {k: change.get(k, v) for k, v in x.items()},
        {k: change.get(k, v) for k, v in options.items()},
    )
    assert count == 1 and COUNTS["compiled"] == 1


def key_of(value):
    return executables.compute_key(_scale, value, float("inf"))


def test_version_and_code_of_the_package_are_part_of_the_key(monkeypatch):
    before = key_of(1)
    assert before == key_of(1)
    for name in ("package_versions", "package_digest"):
        with monkeypatch.context() as patch:
            patch.setattr(executables, name, lambda *_: ["another"])
            assert key_of(1) != before
    # Files that were changed after the import.
    assert executables.compute_key(_scale, 1, 0.0) is None
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=")
    assert key_of(1) != before


SOURCE = """
import equinox as eqx, functools
FACTOR, OTHERS = {factor}, [1, 2]
def helper(x): return {helper} * x
class Law(eqx.Module):
    size: float
    def __call__(self, x): return helper(x) * FACTOR{sign} self.size
def closure(n): return lambda x: x * n
"""


def law(factor=2.0, helper=3.0, sign="-"):
    names = {"__name__": "user"}
    exec(compile(SOURCE.format(factor=factor, helper=helper, sign=sign), "user.py", "exec"), names)
    return names


@pytest.mark.parametrize("change", [{"factor": 2.5}, {"helper": 4.0}, {"sign": "+"}])
def test_code_of_the_user_is_part_of_the_key(change):
    texts = [identity.identify(law(**options)["Law"](1.0)) for options in ({}, {}, change)]
    assert texts[0] == texts[1] != texts[2]
    closures = [identity.identify(law()["closure"](n)) for n in (1, 1, 2)]
    assert closures[0] == closures[1] != closures[2]
    partials = [identity.identify(functools.partial(law()["helper"], n)) for n in (1, 1, 2)]
    assert partials[0] == partials[1] != partials[2]


class Counter:
    """An object with a state that nothing identifies."""


@pytest.mark.parametrize(
    "value",
    [
        Counter(),
        object(),
        lambda: COUNTER,
        iter([1]),
        # They depend on a file, the time, random numbers or the environment.
        lambda: np.loadtxt("table.csv"),
        lambda: open("table.csv").read(),
        lambda: time.time(),
        lambda: np.random.default_rng(0).normal(),
        lambda: os.environ["SIZE"],
    ],
)
def test_objects_that_cannot_be_identified_have_no_key(value, folder):
    assert key_of(value) is None


COUNTER = Counter()


def test_functions_that_call_the_host_have_no_executable_on_disk(folder):
    check = module.persistent_jit(_check)
    for _ in range(2):
        assert float(check(jnp.asarray(1.0))) == 1.0
        with pytest.raises(Exception, match="must be positive"):
            jax.block_until_ready(check(jnp.asarray(-1.0)))
        assert COUNTS["compiled"] == 1
        assert not list(folder.iterdir())
        forget()


def _check(x):
    return eqx.error_if(x, x < 0, "must be positive")


def test_damaged_and_foreign_entries_are_replaced(scale, folder):
    x, options = {"a": jnp.arange(3.0), "n": jnp.asarray(2)}, {"factor": 3.0}
    first = scale(x, options)["y"]
    (path,) = folder.iterdir()
    content = path.read_bytes()
    for place in (0, len(content) // 2, len(content) - 1):
        forget()
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        assert np.array_equal(scale(x, options)["y"], first)
        assert COUNTS["compiled"] == 1
        assert path.read_bytes() == content or len(path.read_bytes()) > 32
    forget()
    path.chmod(0o666)  # Others may have changed it.
    scale(x, options)
    assert COUNTS["compiled"] == 1


def test_hits_in_the_cache_of_jax_are_not_written(scale, folder, tmp_path_factory):
    """XLA cannot serialise them."""
    source = """
import jax, sys
jax.config.update("jax_compilation_cache_dir", sys.argv[1])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
import jax.numpy as jnp
from rigidjax.persistent_jit import persistent_jit
def function(x):
    return jnp.sort(jnp.sin(x)) + x[:, None]
print(persistent_jit(function)(jnp.arange(5.0)).sum())
"""
    script, cache = folder / "script.py", tmp_path_factory.mktemp("jax")
    script.write_text(source)
    printed = set()
    for number in range(3):  # compiled; read from the cache of JAX; the same once more
        target = tmp_path_factory.mktemp("executables") if number < 2 else target
        done = subprocess.run(
            [sys.executable, str(script), str(cache)], check=True, capture_output=True, text=True,
            env=os.environ | {"RIGIDJAX_KERNEL_CACHE": str(target)},
        )  # fmt: skip
        printed.add(done.stdout)
        assert len(list(target.glob("*.kernel"))) == (number == 0)
    assert len(printed) == 1


def test_nothing_is_written_if_the_cache_is_off_or_the_folder_is_not_writable(
    scale, folder, monkeypatch
):
    x, options = {"a": jnp.arange(3.0), "n": jnp.asarray(2)}, {"factor": 3.0}
    monkeypatch.setenv("RIGIDJAX_KERNEL_CACHE", "off")
    scale(x, options)
    assert COUNTS["compiled"] == 0 and not list(folder.iterdir())
    forget()
    (folder / "file").write_text("")
    monkeypatch.setenv("RIGIDJAX_KERNEL_CACHE", str(folder / "file"))
    with pytest.warns(UserWarning, match="cannot be kept in"):
        scale(x, options)

"""Launches on a GPU, with XLA and CUDA emulated by the processor.

Kernels are those of GPUs except for the registers with a thread's index. On a machine with a GPU
the last tests use it.
"""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from call_frames import ERROR, REFUSED, Device, launch_kernel
from external_programs import NO_GPU

import rigidjax as rj
from rigidjax import native
from rigidjax.native.primitives.registry import NoRule
from rigidjax.native.runtime.cuda import launch, ptx as gpu
from rigidjax.native.runtime.kernel import Signature

HAS_GPU = launch.find_architecture() is not None


def loops(x, y):
    """Branches, loops with data-dependent trip counts, and a table with dynamic indices."""

    def turn(carry):
        k, x, history = carry
        x = jax.lax.cond(x[0] > 2.0, lambda v: v * 1.3, lambda v: v + jnp.sin(v) + y, x)
        return k + 1, x, history.at[k % 20].set(x)

    start = 0, x, jnp.zeros((20, 3))
    k, x, history = jax.lax.while_loop(lambda carry: carry[1][0] < 50.0, turn, start)
    return x, history[k % 7], k


def large(x):
    """Read and write a table of 1,000 elements at dynamic indices."""

    def turn(k, table):
        return table.at[(7 * k) % 1_000].add(table[k] * x)

    return jax.lax.fori_loop(0, 1_500, turn, jnp.linspace(0.0, 1.0, 1_000)).sum()


def launch_batch(closed, batched, count, inputs, values=0, **options):
    """Return the status of the handler, the results, and the device."""
    signature = Signature(batched, count is not None, num_uniform=values)
    return launch_kernel(closed, signature, count, inputs, **options)


@pytest.mark.parametrize(("by_processor", "count"), [(False, 33), (True, 5)])
def test_shared_values_of_a_batch(by_processor, count):
    """The first results are shared by the batch, and written by its first element."""
    x, y = np.linspace(1.0, 1.4, 3 * count).reshape(-1, 3), np.array([0.01, 0.02, 0.03])
    closed = jax.make_jaxpr(lambda y, x: (2.0 * y, *loops(x, y)))(y, x[0])
    error, found, _ = launch_batch(
        closed, (False, True), count, [y, x], by_processor=by_processor, values=1
    )
    assert error is None
    np.testing.assert_array_equal(found[0][0], 2.0 * y)
    for one, other in zip(found[1:], jax.vmap(lambda x: loops(x, y))(x), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13)


@pytest.mark.parametrize(
    ("by_processor", "count"),
    [(False, None), (False, 0), (False, 1), (False, 33), (True, None), (True, 0), (True, 32)],
)
def test_results_against_xla(by_processor, count):
    """Batches, shared arguments, branches and loops."""
    x = np.linspace(1.0, 1.4, 3 * (count or 1)).reshape(-1, 3)
    y = np.array([0.01, 0.02, 0.03])
    closed = jax.make_jaxpr(loops)(x[0], y)
    given = x[0] if count is None else x[: count or 0]
    error, found, device = launch_batch(
        closed, (count is not None, False), count, [given, y], by_processor=by_processor
    )
    assert error is None
    if count == 0:
        assert device.launches == device.copied == []
        return
    expected = jax.vmap(loops, (0, None))(x, y)
    for a, b in zip(found, jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b[0] if count is None else b, rtol=1e-12)
    if by_processor:
        lengths = [*(n * (count or 1) for n in (24, 24, 24)), 24, 8 * (count or 1)]
        assert sorted(device.copied) == sorted(lengths)
        assert device.contexts == ["entered", "left"]
        assert device.launches == []
    else:
        assert device.launches == [(-(-(count or 1) // 32), 32)]


def test_scratch_memory_is_bounded():
    """Threads compute several batch elements if memory does not suffice for all at once."""
    closed = jax.make_jaxpr(large)(1.0)
    x = np.linspace(0.0, 0.5, 200)
    error, (found,), device = launch_batch(closed, (True,), 200, [x], limit=64 * 9_000)
    assert error is None
    assert device.scratch > gpu.LOCAL_BYTES
    assert device.launches == [(2, 32)]
    assert list(device.memory) == device.freed
    np.testing.assert_allclose(found, jax.vmap(large)(x), rtol=1e-13)


def end(backend):
    """Return the final unknowns of a run, as a function of its initial rates."""
    model = rj.NullSpace(rj.FixedPointBody(jnp.array([0.5, 0.5, 0.25])))

    def run(rates):
        state = rj.State(angular_velocity=rates[None])
        solver = diffrax.Dopri5()
        return rj.simulate(model, state, 0.1, solver=solver, backend=backend, throw=False).ys[-1]

    return run


RATES = jnp.array([[0.1, 0.0, 20.0], [0.3, 0.1, 10.0], [0.0, 5.0, 1.0]])


def test_run_as_a_gpu_kernel():
    """A batch of runs, with step-size control and projections, equals XLA."""
    closed = jax.make_jaxpr(end("native"))(RATES[0])
    error, (found,), _ = launch_batch(closed, (True,), 3, [np.asarray(RATES)])
    assert error is None
    np.testing.assert_allclose(found, jax.vmap(end("xla"))(RATES), rtol=1e-11, atol=1e-13)


def test_launch_errors_are_reported():
    """Errors of XLA and CUDA are reported by the call."""
    closed = jax.make_jaxpr(jnp.sin)(1.0)
    for what, by_processor in (("launch", False), ("copy for", True)):
        error, _, device = launch_batch(
            closed, (True,), 3, [np.ones(3)], code=700, by_processor=by_processor
        )
        assert error == ERROR
        assert device.messages == [
            (f"CUDA could not {what} a native kernel of rigidjax: its error 700", 13)
        ]
    error, _, device = launch_batch(
        closed, (True,), 3, [np.ones(3)], has_context=False, by_processor=True
    )
    assert (error, device.contexts) == (ERROR, [])
    closed = jax.make_jaxpr(large)(1.0)
    error, _, device = launch_batch(closed, (True,), 3, [np.ones(3)], has_memory=False)
    assert error == REFUSED
    assert device.launches == []


@pytest.fixture
def emulated_gpu(monkeypatch):
    """Emulate a machine with a GPU."""
    device = Device(jax.make_jaxpr(jnp.sin)(1.0), Signature((True,), True))
    monkeypatch.setattr(launch, "find_driver", lambda: device)
    monkeypatch.setattr(launch, "find_architecture", lambda: "sm_90")
    monkeypatch.setattr(launch, "scratch_limit", lambda: 1 << 30)
    return device


def lower_for_gpu(function, *args):
    return jax.jit(function).trace(*args).lower(lowering_platforms=("cuda",)).as_text()


def test_lowering_to_a_custom_call(emulated_gpu):
    """Lowered for CUDA, a kernel is a call by its name, also for a batch of batches."""
    for _ in range(2):
        # The second jaxpr has equal equations.
        function = native.jit(lambda x: jnp.sin(x) * jnp.cos(x))
        text = lower_for_gpu(jax.vmap(jax.vmap(function)), jnp.ones((30, 5)))
        assert text.count("@rigidjax_") == 1
        assert len(emulated_gpu.texts) == 1
        assert ".target sm_90" in emulated_gpu.texts[0]


def test_small_batches_run_on_the_cpu(emulated_gpu):
    function = native.jit(lambda x: jnp.sin(x) + 2.0 * jnp.cos(x))
    for program, x in (function, 1.0), (jax.vmap(function), jnp.ones(32)):
        assert lower_for_gpu(program, x).count("@rigidjax_") == 1
    assert emulated_gpu.texts == []


def test_lowering_to_xla_without_a_driver(monkeypatch):
    monkeypatch.setattr(launch, "find_driver", lambda: None)
    assert "@rigidjax_" not in lower_for_gpu(native.jit(jnp.sin), 1.0)


def test_too_many_arguments_raise(emulated_gpu):
    closed = jax.make_jaxpr(lambda *x: sum(x))(*[1.0] * gpu.MAX_POINTERS)
    signature = Signature((True,) * gpu.MAX_POINTERS, True)
    with pytest.raises(NoRule, match="takes 500 arrays at most, this has 501"):
        launch.get_gpu_kernel(closed, signature, 1_000)
    assert emulated_gpu.texts == []


def test_default_device(monkeypatch, emulated_gpu):
    """`why_not` lists the supported devices."""
    few = jax.make_jaxpr(jnp.sin)(1.0)
    for kind, driver, known in (
        ("tpu", emulated_gpu, False),
        ("gpu", None, False),
        ("gpu", emulated_gpu, True),
    ):
        monkeypatch.setattr(jax, "default_backend", lambda kind=kind: kind)
        monkeypatch.setattr(launch, "find_driver", lambda driver=driver: driver)
        with jax.default_device(None):
            reasons = launch.why_not_on_default_device(few)
        assert reasons == [] if known else f"default device is {kind!r}" in reasons[0]
    many = jax.make_jaxpr(lambda *x: sum(x))(*[1.0] * 600)
    with jax.default_device(None):
        assert "500 arrays at most, this has 601" in launch.why_not_on_default_device(many)[0]
    with jax.default_device(jax.devices("cpu")[0]):
        assert launch.why_not_on_default_device(many) == []


class Library:
    """A substitute of CUDA's driver, with the status that each of its functions returns."""

    def __init__(self, **codes):
        for name, code in codes.items():
            setattr(self, name, lambda *args, code=code: code)

    def cuGetErrorName(self, code, text):
        text._obj.value = b"CUDA_ERROR_OF_A_TEST"


@pytest.mark.parametrize(
    ("library", "found"),
    [
        (None, False),
        (Library(cuInit=0), False),
        (Library(cuInit=100, cuLibraryLoadData=0), False),
        (Library(cuInit=0, cuLibraryLoadData=0), True),
    ],
    ids=["none", "old", "without a GPU", "new"],
)
def test_driver_versions(library, found, monkeypatch):
    def load(name):
        if library is None:
            raise OSError(f"{name}: no such file")
        return library

    monkeypatch.setattr(launch.ctypes, "CDLL", load)
    assert (launch.find_driver.__wrapped__() is not None) == found


def test_ptx_rejected_by_the_driver(monkeypatch):
    refusing = Library(cuInit=0, cuLibraryLoadData=218)
    monkeypatch.setattr(launch.ctypes, "CDLL", lambda name: refusing)
    with pytest.raises(RuntimeError, match=r"cuLibraryLoadData failed with CUDA_ERROR_OF_A_TEST"):
        launch.Cuda().load(".version 1.0")


def test_compute_capabilities(monkeypatch):
    """The selected architecture is supported by all GPUs."""

    class Gpu:
        def __init__(self, capability):
            self.compute_capability = capability

    for capabilities, expected in (
        (["9.0"], "sm_90"), (["12.0"], "sm_90"), (["9.0", "8.6"], "sm_86"), (["7.5"], None),
    ):  # fmt: skip
        monkeypatch.setattr(jax, "devices", lambda kind, c=capabilities: [Gpu(x) for x in c])
        assert launch.find_architecture.__wrapped__() == expected


@pytest.mark.skipif(not HAS_GPU, reason=NO_GPU)
@pytest.mark.parametrize("count", [1, 1_000, 300_000])
def test_runs_on_a_gpu(count):
    """A batch of runs equals the results of the processor."""
    rates = RATES[0] * (1.0 + jnp.linspace(0.0, 0.1, count)[:, None])
    found = []
    for kind in ("cuda", "cpu"):
        with jax.default_device(jax.devices(kind)[0]):
            found.append(np.asarray(jax.jit(jax.vmap(end("native")))(rates)))
    np.testing.assert_allclose(*found, rtol=1e-12, atol=1e-12)


@pytest.mark.skipif(not HAS_GPU, reason=NO_GPU)
def test_scratch_memory_on_a_gpu():
    x = jnp.linspace(0.0, 0.5, 200_000)
    np.testing.assert_allclose(
        jax.jit(jax.vmap(native.jit(large)))(x), jax.vmap(large)(x), rtol=1e-12
    )

"""Kernels on a GPU: registers and memory of each, and the throughput where there is a GPU.

Every kernel is written as PTX for two generations of GPUs and assembled by `ptxas` of the CUDA
toolkit, which reports its registers, memory and spills. On a machine with a GPU runs are compared
with the processor, and one of them with XLA on the GPU.
"""

import pathlib
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import _common as common
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from native import TIGHT, end, members

import rigidjax as rj
from rigidjax.native.runtime.cuda import launch, ptx as gpu
from rigidjax.native.runtime.kernel import Signature

ARCHITECTURES = "sm_80", "sm_90"
BATCHES = 1_024, 32_768, 1_000_000
# Largest number of members for runs other than kernels; longest measured run in seconds.
FEW, LONGEST = 32_768, 10.0


class Case(NamedTuple):
    """A function for a backend, a function that returns arguments of a number of members, and
    whether XLA runs it too; XLA compiles the other cases for minutes.
    """

    form: Callable[[str], Callable[..., Any]]
    arguments: Callable[[int], tuple[Any, ...]]
    xla: bool = False


def _run_with(**options: Any) -> Callable[[str], Callable[..., Any]]:
    def form(backend: str) -> Callable[..., Any]:
        run = end(backend, **options)
        return lambda moments, rates: run(moments, rates)[0]

    return form


_top = _run_with(**TIGHT)


def _tangent(backend: str) -> Callable[..., Any]:
    last = _top(backend)
    return lambda m, w: jax.jvp(lambda x: last(x, w), (m,), (m,))


def _gradient(backend: str) -> Callable[..., Any]:
    last = _top(backend)
    return jax.grad(lambda m, w: last(m, w)[0], argnums=(0, 1))


def _four_bar(backend: str) -> Callable[..., Any]:
    problem = rj.problems.four_bar()
    model, state = rj.NullSpace(problem.system), problem.state0
    rates = state.velocity, state.angular_velocity

    def run(scale):
        faster = eqx.tree_at(
            lambda s: (s.velocity, s.angular_velocity), state, tuple(scale * x for x in rates)
        )
        return rj.simulate(model, faster, 0.2, backend=backend, throw=False).ys[-1]

    return run


def _speeds(count: int) -> tuple[Any, ...]:
    """Return factors of the initial velocities."""
    return (jnp.linspace(1.0, 1.2, count),)


CASES = {
    "top, Dopri5": Case(_top, members, xla=True),
    "top, Dopri5: one tangent": Case(_tangent, members),
    "top, Dopri5: gradient": Case(_gradient, members),
    "top, EnergyMomentum, 10 ms": Case(
        _run_with(solver=rj.solvers.EnergyMomentum(), dt=0.01), members
    ),
    "top, BDF": Case(_run_with(solver=rj.solvers.BDF(), rtol=1e-6, atol=1e-6), members),
    "four-bar, Dopri8": Case(_four_bar, _speeds),
    "top, Radau5": Case(_run_with(solver=rj.solvers.Radau5(), rtol=1e-6, atol=1e-6), members),
}


def assemble(case: Case, architecture: str) -> dict[str, Any]:
    """Return the report of `ptxas` on a kernel, or only its size where `ptxas` is missing."""
    closed = jax.make_jaxpr(case.form("native"))(*(x[0] for x in case.arguments(1)))
    begin = time.perf_counter()
    text = gpu.ptx(closed, Signature((True,) * len(closed.in_avals), True), architecture)
    found = {
        "emit_seconds": time.perf_counter() - begin,
        "ptx_lines": text.ptx.count("\n"),
        "scratch_bytes": text.scratch,
    }
    program = shutil.which("ptxas")
    if program is None:
        return found
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "kernel.ptx"
        source.write_text(text.ptx)
        command = [program, "-v", f"-arch={architecture}", str(source), "-o", f"{source}.cubin"]
        begin = time.perf_counter()
        said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    found["ptxas_seconds"] = time.perf_counter() - begin
    for key, pattern in (
        ("registers", r"Used (\d+) registers"),
        ("stack_bytes", r"(\d+) bytes stack frame"),
        ("spilled_bytes", r"(\d+) bytes spill stores"),
    ):
        found[key] = max(int(n) for n in re.findall(pattern, said))
    return found


def measure_speed(case: Case, count: int) -> dict[str, Any]:
    """Return times of a batch on the GPU and on all cores of the processor, and the difference of
    their results.
    """
    args = case.arguments(count)
    found: dict[str, Any] = {"batch": count}
    for name in ("native", "xla")[: 1 + (case.xla and count <= FEW)]:
        program = jax.jit(jax.vmap(case.form(name)))
        found[f"{name}_first_seconds"] = common.seconds(lambda p=program: p(*args))
        found[f"{name}_run_seconds"] = min(
            common.seconds(lambda p=program: p(*args)) for _ in "123"
        )
    if count > FEW:
        return found
    here = jax.device_get(jax.jit(jax.vmap(case.form("native")))(*args))
    processor = jax.devices("cpu")[0]
    with jax.default_device(processor):
        args = jax.device_put(args, processor)
        program = jax.jit(jax.vmap(case.form("native")))
        expected = jax.device_get(program(*args))
        found["processor_run_seconds"] = min(common.seconds(lambda: program(*args)) for _ in "12")
    pairs = zip(jax.tree.leaves(here), jax.tree.leaves(expected), strict=True)
    found["difference"] = max(
        float(np.max(np.abs(a - b) / np.maximum(np.abs(b), 1.0))) for a, b in pairs
    )
    return found


def rows_of_runs(smoke: bool) -> list[dict[str, Any]]:
    out = []
    for name, case in CASES.items():
        for count in BATCHES[: 1 if smoke else None]:
            out.append({"case": name, **measure_speed(case, count)})
            print(out[-1], flush=True)
            if out[-1]["native_run_seconds"] * 30 > LONGEST:
                break
    return out


def rows(smoke: bool) -> list[dict[str, Any]]:
    out = []
    for name, case in list(CASES.items())[: 1 if smoke else None]:
        for architecture in ARCHITECTURES:
            out.append({"case": name, "architecture": architecture, **assemble(case, architecture)})
            print(out[-1], flush=True)
    return out


if __name__ == "__main__":
    options = common.arguments(
        __doc__, lambda p: p.add_argument("--runs-only", action="store_true", help="no assembly")
    )
    common.double_precision()
    if not options.runs_only:
        common.write("gpu", rows(options.smoke), options.smoke)
    if launch.find_architecture() is not None and launch.find_driver() is not None:
        common.write("gpu_runs", rows_of_runs(options.smoke), options.smoke)

"""Parts of `gpu.py`: checks and measurements of kernels on a GPU, each a generator of rows."""

import dataclasses
import functools
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import _common as common
import _studies as studies
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from native import TIGHT, end, members

import rigidjax as rj
from rigidjax.identification import Experiment, identify_batch
from rigidjax.identification.data.measurements import stack_runs
from rigidjax.identification.experiment.simulation import Simulation
from rigidjax.identification.search.batch_search import search_set, stack_sets, summarise
from rigidjax.identification.search.noise import guess_noise
from rigidjax.identification.search.options import make_search, prepare_problems
from rigidjax.native.runtime.cuda import ptx as gpu
from rigidjax.native.runtime.kernel import Signature
from rigidjax.problems.linkages import link

Row = dict[str, Any]
ARCHITECTURES = "sm_80", "sm_90"
# Numbers of members: of checks, of comparisons with XLA and the processor, and the largest one.
CHECKED, COMPARED, MANY = 1_024, 32_768, 1_000_000
# Number of fits that the processor repeats.
REPEATED_FITS = 2_000


class Case(NamedTuple):
    """A function for a backend, and a function that returns arguments of a number of members."""

    form: Callable[[str], Callable[..., Any]]
    arguments: Callable[[int], tuple[Any, ...]]


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
    """Return the run of a four-bar, for a factor of its initial velocities."""
    problem = rj.problems.four_bar()
    model, state = rj.NullSpace(problem.system), problem.state0
    rates = state.velocity, state.angular_velocity

    def run(scale):
        faster = eqx.tree_at(
            lambda s: (s.velocity, s.angular_velocity), state, tuple(scale * x for x in rates)
        )
        return rj.simulate(model, faster, 0.2, backend=backend, throw=False).ys[-1]

    return run


def _five_bar(backend: str) -> Callable[..., Any]:
    """Return the run of a five-bar that is released at rest, for a factor of gravity."""
    points = [(0.0, 0.0), (-0.3, 0.8), (0.5, 1.5), (1.3, 0.8), (1.0, 0.0)]
    points = [np.array([*p, 0.0]) for p in points]
    bodies = [link(f"link{k}", points[k], points[k + 1]) for k in range(4)]
    names = ["ground", *(body.name for body in bodies), "ground"]
    joints = [
        rj.Revolute(names[k], names[k + 1], point, (0.0, 0.0, 1.0))
        for k, point in enumerate(points)
    ]
    system = rj.System(bodies, joints, rj.Gravity((0.0, -9.81, 0.0)))
    state = system.reference_state()

    def run(scale):
        model = rj.NullSpace(
            eqx.tree_at(lambda s: s.forces[0].vector, system, replace_fn=lambda g: scale * g)
        )
        return rj.simulate(
            model, state, 0.2, backend=backend, throw=False, solver=rj.solvers.Radau5(),
            rtol=1e-6, atol=1e-6,
        ).ys[-1]  # fmt: skip

    return run


def _factors(count: int) -> tuple[Any, ...]:
    """Return factors of velocities or of gravity."""
    return (jnp.linspace(1.0, 1.2, count),)


TOP, GRADIENT = "top, Dopri5", "top, Dopri5: gradient"
CASES = {
    TOP: Case(_top, members),
    "top, Dopri5: one tangent": Case(_tangent, members),
    GRADIENT: Case(_gradient, members),
    "top, EnergyMomentum, 10 ms": Case(
        _run_with(solver=rj.solvers.EnergyMomentum(), dt=0.01), members
    ),
    "top, BDF": Case(_run_with(solver=rj.solvers.BDF(), rtol=1e-6, atol=1e-6), members),
    "four-bar, Dopri8": Case(_four_bar, _factors),
    "top, Radau5": Case(_run_with(solver=rj.solvers.Radau5(), rtol=1e-6, atol=1e-6), members),
}


def _measure(
    name: str, count: int, backend: str = "native", on_processor: bool = False, repeats: int = 3
) -> tuple[dict[str, float], Any]:
    """Return the seconds of the first call and the least of several others, and the results."""
    case, device = CASES[name], jax.devices("cpu" if on_processor else None)[0]
    with jax.default_device(device):
        args = jax.device_put(case.arguments(count), device)
        function = jax.jit(jax.vmap(case.form(backend)))
        first = common.seconds(lambda: function(*args))
        run = min(common.seconds(lambda: function(*args)) for _ in range(repeats))
        return {"first_seconds": first, "run_seconds": run}, jax.device_get(function(*args))


def _prefix(name: str, times: dict[str, float]) -> dict[str, float]:
    return {f"{name}_{key}": value for key, value in times.items()}


def _difference(found: Any, expected: Any) -> float:
    """Return the largest difference, relative to values above one; NaN counts as infinite."""
    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True)
    differences = [np.abs(a - b) / np.maximum(np.abs(b), 1.0) for a, b in pairs]
    return max(float(np.max(np.where(np.isnan(d), np.inf, d))) for d in differences)


def checks(smoke: bool) -> Iterator[Row]:
    """Yield the difference of each kernel's results from those of the processor."""
    for name in list(CASES)[: 2 if smoke else None]:
        times, found = _measure(name, CHECKED)
        processor, expected = _measure(name, CHECKED, on_processor=True, repeats=1)
        yield {
            "case": name, "batch": CHECKED, **_prefix("native", times),
            "processor_run_seconds": processor["run_seconds"],
            "difference": _difference(found, expected),
        }  # fmt: skip


def throughput(smoke: bool) -> Iterator[Row]:
    """Yield times of tops on the GPU, on the processor and by XLA on the GPU."""
    for count in (CHECKED,) if smoke else (COMPARED, MANY):
        times, found = _measure(TOP, count)
        row = {"case": TOP, "batch": count, **_prefix("native", times)}
        yield row
        if count > COMPARED:
            continue
        processor, expected = _measure(TOP, count, on_processor=True)
        row["processor_run_seconds"] = processor["run_seconds"]
        row["difference"] = _difference(found, expected)
        row |= _prefix("xla", _measure(TOP, count, "xla")[0])
        yield row


def gradients(smoke: bool) -> Iterator[Row]:
    """Yield times of gradients, in runs of as many members."""
    for count in (CHECKED,) if smoke else (COMPARED, MANY):
        run, gradient = _measure(TOP, count)[0], _measure(GRADIENT, count)[0]
        yield {
            "case": GRADIENT, "batch": count, **_prefix("native", gradient),
            "runs": gradient["run_seconds"] / run["run_seconds"],
        }  # fmt: skip


def other_runs(smoke: bool) -> Iterator[Row]:
    """Yield times of the other cases, of large batches where smaller ones do not take long."""
    for name in [name for name in CASES if name not in (TOP, GRADIENT)][: 1 if smoke else None]:
        for count in (CHECKED,) if smoke else (COMPARED, MANY):
            row = {"case": name, "batch": count, **_prefix("native", _measure(name, count)[0])}
            yield row
            if row["native_run_seconds"] * MANY / count > 5.0:
                break


def _fit_row(case: str, count: int) -> Iterator[Row]:
    """Yield times of a batch of fits on the GPU, then those of some of them on the processor."""
    study, rng = studies.STUDIES[case](), np.random.default_rng(0)
    exact, starts = study.readings(), {}
    sets = [study.measure(exact, lambda _, shape: rng.normal(size=shape)) for _ in range(count)]
    experiment = Experiment(study.model, study.state0, tuple(study.noise))
    for p in study.parameters:
        leaf = np.asarray(p.where(experiment))
        starts[p.name] = rng.uniform(0.7, 1.3, (count, *(1 for _ in leaf.shape))) * leaf

    def fit(first: int) -> Any:
        return identify_batch(
            study.model, sets[:first], study.parameters, state0=study.state0,
            starts={name: values[:first] for name, values in starts.items()},
            batch_size=first,
        )  # fmt: skip

    begin = time.perf_counter()
    found = fit(count)
    row: Row = {
        "case": case, "fits": count, "converged": int(found.converged.sum()),
        "iterations": int(found.iterations.max()),
        "first_seconds": time.perf_counter() - begin,
    }  # fmt: skip
    yield row
    begin = time.perf_counter()
    fit(count)
    row["run_seconds"] = time.perf_counter() - begin
    yield row
    repeated = min(count, REPEATED_FITS)
    with jax.default_device(jax.devices("cpu")[0]):
        fit(repeated)
        begin = time.perf_counter()
        expected = fit(repeated)
        seconds = time.perf_counter() - begin
    both = found.converged[:repeated] & expected.converged
    error = np.abs(found.values[:repeated] - expected.values) / expected.std
    row |= {
        "processor_fits": repeated,
        "processor_seconds": seconds,
        "times_faster": seconds / repeated * count / row["run_seconds"],
        "difference_in_std": float(np.max(error[both], initial=0.0)),
        "differently_converged": int(np.sum(found.converged[:repeated] != expected.converged)),
    }
    yield row


def fits(smoke: bool) -> Iterator[Row]:
    """Yield times of fits of a free body and of a double pendulum, few of them first."""
    counts = {"free body": (4,)}
    if not smoke:
        counts = {"free body": (1_000, 100_000), "double pendulum": (1_000, 10_000)}
    for case, numbers in counts.items():
        for count in numbers:
            yield from _fit_row(case, count)


def compilation(smoke: bool) -> Iterator[Row]:
    """Yield seconds to emit PTX and to load it, of a kernel with a large module."""
    name, case = (TOP, CASES[TOP]) if smoke else ("five-bar, Radau5", Case(_five_bar, _factors))
    row = {
        "case": name,
        "batch": CHECKED,
        **_emit(functools.partial(trace_run, case), ARCHITECTURES[-1])[1],
    }
    yield row
    args = case.arguments(CHECKED)
    function = jax.jit(jax.vmap(case.form("native")))
    row["first_seconds"] = common.seconds(lambda: function(*args))
    row["run_seconds"] = common.seconds(lambda: function(*args))
    yield row


class Traced(NamedTuple):
    """A kernel before it is emitted, with arguments (batch axis first)."""

    closed: Any
    signature: Signature
    arguments: list[Any]


def trace_run(case: Case) -> Traced:
    """Return the kernel of a batch of runs."""
    arguments = case.arguments(1)
    closed = jax.make_jaxpr(case.form("native"))(*(x[0] for x in arguments))
    return Traced(closed, Signature((True,) * len(closed.in_avals), True), [*arguments])


def trace_fit(study: studies.Study, errors: Any = (0.0,)) -> Traced:
    """Return the kernel of a batch of fits. **Arguments:** `errors` of the readings (B, T, C)."""
    exact = study.readings()
    sets = [study.measure(exact, lambda _, shape, e=e: np.broadcast_to(e, shape)) for e in errors]
    problems, (runs, *_), *_ = prepare_problems(
        study.model, [stack_runs(data) for data in sets], study.parameters, study.state0,
        Simulation(), guess_noise, {},
    )  # fmt: skip
    problem, data = dataclasses.replace(problems[0], fitted_only=True), stack_sets(problems)
    shared, static = eqx.partition((problem, make_search(runs.ts.dtype)), eqx.is_array)

    def fit(shared: Any, data: Any) -> Any:
        own, search = eqx.combine(shared, static)
        return search_set(summarise, own, search, data)

    closed = jax.make_jaxpr(fit)(shared, jax.tree.map(lambda x: x[0], data))
    arguments, count = jax.tree.leaves((shared, data)), len(jax.tree.leaves(shared))
    batched = tuple(k >= count for k in range(len(arguments)))
    signature = Signature(batched, True, num_tangents=len(problem.directions()))
    return Traced(closed, signature, arguments)


def _emit(make: Callable[[], Traced], architecture: str) -> tuple[str, Row]:
    """Return a kernel as PTX, and its size with the seconds to trace and to emit it."""
    begin = time.perf_counter()
    closed, signature, _ = make()
    traced = time.perf_counter()
    kernel = gpu.ptx(closed, signature, architecture)
    avals = [*closed.in_avals, *closed.out_avals]
    return kernel.ptx, {
        "trace_seconds": traced - begin,
        "emit_seconds": time.perf_counter() - traced,
        "ptx_lines": kernel.ptx.count("\n"),
        "scratch_bytes": kernel.scratch,
        "data_bytes": sum(x.size * np.dtype(x.dtype).itemsize for x in avals),
    }


def assembly(smoke: bool) -> Iterator[Row]:
    """Yield reports of `ptxas` on kernels of runs and of whole fits, for two generations."""
    runs = [
        (name, architecture, functools.partial(trace_run, case))
        for name, case in CASES.items() for architecture in ARCHITECTURES
    ]  # fmt: skip
    of_fits = [
        (f"fit of a {name}", ARCHITECTURES[-1], functools.partial(trace_fit, study()))
        for name, study in studies.STUDIES.items()
    ]
    for name, architecture, make in runs[:2] if smoke else runs + of_fits:
        text, row = _emit(make, architecture)
        row = {"case": name, "architecture": architecture, **row}
        yield row | (assemble(text, architecture) if shutil.which("ptxas") else {})


def assemble(text: str, architecture: str, ptxas: str = "ptxas") -> Row:
    """Return the report of `ptxas` on a kernel: seconds, registers, stack and spills."""
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "kernel.ptx"
        source.write_text(text)
        command = [ptxas, "-v", f"-arch={architecture}", str(source), "-o", f"{source}.cubin"]
        begin = time.perf_counter()
        said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    found: Row = {"ptxas_seconds": time.perf_counter() - begin}
    for key, pattern in (
        ("registers", r"Used (\d+) registers"),
        ("stack_bytes", r"(\d+) bytes stack frame"),
        ("spilled_bytes", r"(\d+) bytes spill stores"),
    ):
        found[key] = max(int(n) for n in re.findall(pattern, said))
    return found

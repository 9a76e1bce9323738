"""Compile times of ten models: tracing, kernels, XLA, and code sizes.

For each model the vector field, a run (adaptive, projected) and the gradient of that run by all
parameters of the model, in null-space coordinates. Equations are those of the jaxpr, with
sub-jaxprs counted at every call; bytes are those of the StableHLO that XLA receives. Nothing is
executed, and no cache is read or written.
"""

import collections
import json
import time
from typing import Any

import _common as common
import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Jaxpr

import rigidjax as rj

MODELS = {
    "free_body": rj.problems.free_body,
    "heavy_top": rj.problems.heavy_top,
    "two_bodies": rj.problems.two_bodies,
    "simple_pendulum": rj.problems.simple_pendulum,
    "chain(8)": lambda: rj.problems.chain(8),
    "slider_crank": rj.problems.slider_crank,
    "four_bar": rj.problems.four_bar,
    "flyball_governor": rj.problems.flyball_governor,
    "bricard": rj.problems.bricard,
    "andrews": rj.problems.andrews,
}
# Operations that move data and compute nothing.
MOVES = frozenset(
    "broadcast_in_dim concatenate convert_element_type copy dynamic_slice dynamic_update_slice "
    "gather pad reshape rev scatter select_and_gather_add slice split squeeze stack transpose "
    "unstack".split()
)


def equations(jaxpr: Jaxpr | ClosedJaxpr) -> collections.Counter:
    """Count the equations of a jaxpr by primitive, with sub-jaxprs counted at every call."""
    total: collections.Counter = collections.Counter()

    def walk(jaxpr: Any) -> None:
        for equation in (jaxpr.jaxpr if isinstance(jaxpr, ClosedJaxpr) else jaxpr).eqns:
            inner = [
                part
                for value in equation.params.values()
                for part in (value if isinstance(value, tuple | list) else (value,))
                if isinstance(part, ClosedJaxpr | Jaxpr)
            ]
            if not inner:
                total[equation.primitive.name] += 1
            for part in inner:
                walk(part)

    walk(jaxpr)
    return total


def programs(problem: rj.problems.Problem) -> dict[str, tuple[Any, ...]]:
    """Return functions and arguments of the vector field, a run, and the gradient of the run."""
    model, state = rj.NullSpace(problem.system), problem.state0
    y, zero = model.encode(state), jnp.zeros(())

    def field(model, t, y):
        return model.vector_field(t, y)

    def run(model, state):
        return rj.simulate(model, state, problem.t1, rtol=1e-6, atol=1e-6, throw=False).ys[-1]

    gradient = jax.grad(lambda model, state: jnp.sum(run(model, state)))
    return {
        "vector field": (field, model, zero, y),
        "run": (run, model, state),
        "gradient of the run": (gradient, model, state),
    }


def measure(function: Any, *args: Any) -> dict[str, Any]:
    """Return wall and processor seconds of tracing, lowering (which compiles native kernels) and
    XLA, and code sizes.
    """
    jax.clear_caches()
    begin, used = time.perf_counter(), time.process_time()
    traced = jax.jit(function).trace(*args)
    row: dict[str, Any] = {
        "trace_seconds": time.perf_counter() - begin,
        "trace_cpu_seconds": time.process_time() - used,
    }
    kinds = equations(traced.jaxpr)
    row["equations"] = kinds.total()
    row["moves"] = sum(count for name, count in kinds.items() if name in MOVES)
    for what in ("lower", "compile"):
        begin, used = time.perf_counter(), time.process_time()
        traced = getattr(traced, what)()
        row[f"{what}_seconds"] = time.perf_counter() - begin
        row[f"{what}_cpu_seconds"] = time.process_time() - used
        if what == "lower":
            row["hlo_bytes"] = len(traced.as_text())
    return row


def rows(smoke: bool, only: list[str], parts: list[str]) -> list[dict[str, Any]]:
    chosen = only or (["heavy_top"] if smoke else list(MODELS))
    parts = parts or (["vector field"] if smoke else [])
    out = []
    for name in chosen:
        for part, (function, *args) in programs(MODELS[name]()).items():
            if not parts or part in parts:
                out.append({"case": name, "program": part, **measure(function, *args)})
    return out


def _arguments(parser):
    parser.add_argument("--only", nargs="*", default=[], choices=MODELS, help="these models alone")
    parser.add_argument("--parts", nargs="*", default=[], help="these programs alone")


def main() -> None:
    args = common.arguments(str(__doc__), _arguments)
    common.double_precision()
    found = rows(args.smoke, args.only, args.parts)
    if not args.smoke and (args.only or args.parts):
        # Other rows are kept with their date and commit.
        new = {(row["case"], row["program"]) for row in found}
        path = common.RESULTS / "compile.json"
        old = common.read("compile") if path.exists() else []
        shared = common.environment()
        found = [row for row in old if (row["case"], row["program"]) not in new] + [
            {"benchmark": "compile", **row, **shared} for row in found
        ]
        order = {name: k for k, name in enumerate(MODELS)}
        found.sort(key=lambda row: order[row["case"]])
        path.write_text("[\n" + ",\n".join(map(json.dumps, found)) + "\n]\n")
        return
    common.write("compile", found, args.smoke)


if __name__ == "__main__":
    main()

"""Terze's comparison: attitude errors of quaternions integrated on the group and off it.

Explicit tableaux at equal fixed steps, on a free body, Lang's heavy top and a fast top: on the
group (`MuntheKaas`); as an ordinary differential equation of a quaternion that is projected after
every step (Terze's Formulation II); with the accelerations of (C.1) as printed, also in stages off
the unit sphere (Formulation I); and with accelerations that assume |p| = 1 in the stages
(`Absolute`). Errors are the largest entries of the difference of rotation matrices at the end; cost
is the time of a step; drift is (|p|^2 - 1)/2 after the first step, before projection.
"""

from typing import Any

import _common as common
import diffrax
import jax
import jax.numpy as jnp

import rigidjax as rj
from rigidjax.problems import free_body, heavy_top, heavy_top_fast

CASES: dict[str, tuple[Any, float]] = {
    "free body": (free_body, 1.0),
    "heavy top": (heavy_top, 1.0),
    "fast top": (heavy_top_fast, 0.1),
}
METHODS: dict[str, Any] = {
    "Heun": diffrax.Heun(),
    "RK4": rj.solvers.RK4(),
    "Dopri5": diffrax.Dopri5(),
}
FORMS = {
    "group": rj.NullSpace,
    "Formulation II": rj.NullSpace,
    "Formulation I": lambda system: rj.EulerParameters(
        system, "simplified-gyroscopic", printed=True
    ),
    "absolute, on the sphere": rj.Absolute,
}
STEPS = (20, 40, 80, 160, 320, 640)


def model_and_solver(form: str, system: Any, method: Any) -> tuple[Any, Any]:
    """Return a formulation and a solver."""
    return FORMS[form](system), rj.solvers.MuntheKaas(method) if form == "group" else method


def rows_of(case: str, counts: tuple[int, ...], methods: dict[str, Any]) -> list[dict[str, Any]]:
    """Return errors and times of one case."""
    build, end = CASES[case]
    problem = build()
    to_matrix = rj.Quaternion().to_matrix
    exact = rj.simulate(
        rj.NullSpace(problem.system), problem.state0, end, rtol=1e-13, atol=1e-13
    ).states.orientation[-1, 0]  # fmt: skip
    out = []
    for name, method in methods.items():
        for form in FORMS:
            model, solver = model_and_solver(form, problem.system, method)

            @jax.jit
            def run(dt, model=model, solver=solver):
                states = rj.simulate(
                    model, problem.state0, end, solver=solver, dt=dt, max_steps=1000, throw=False
                ).states
                difference = to_matrix(states.orientation[-1, 0]) - to_matrix(exact)
                return jnp.max(jnp.abs(difference))

            @jax.jit
            def first_step(dt, model=model, solver=solver):
                return rj.simulate(
                    model, problem.state0, dt, solver=solver, dt=dt, max_steps=2,
                    projection=False, throw=False,
                ).position_drift[-1]  # fmt: skip

            for count in counts:
                dt = jnp.asarray(end / count)
                error = float(run(dt))
                seconds = min(common.seconds(lambda dt=dt: run(dt)) for _ in range(5))
                out.append(
                    {
                        "case": case,
                        "method": name,
                        "form": form,
                        "step": end / count,
                        "error": error,
                        "step_seconds": seconds / count,
                        "drift": float(first_step(dt)),
                    }
                )
                print(out[-1], flush=True)
    return out


def main() -> None:
    args = common.arguments(__doc__ or "")
    common.double_precision()
    if args.smoke:
        rows = rows_of("free body", (20, 40), {"RK4": METHODS["RK4"]})
    else:
        rows = [row for case in CASES for row in rows_of(case, STEPS, METHODS)]
    common.write("lie_group", rows, args.smoke)


if __name__ == "__main__":
    main()

"""Runs of robots and chains against MuJoCo and Exudyn: processor time against error, on one core.

- Steps of 20 ms of the quadruped solo12 for 1,024 states, against `mujoco.rollout` with RK4.
- A chain of 20 hinges that falls for a second, alone and in a batch, against the same.
- `GeneralizedAlpha` on chains of 20 and 100 hinges against the same method in Exudyn, for a step.
- The first simulation of a humanoid (G1, 30 bodies) in a new process, with and without kernels on
  disk.

All runs of a case take turns in one process; the least of several times counts. `make peers`
installs the other programs.
"""

import os

from _one_core import ONE_CORE

os.environ.setdefault("XLA_FLAGS", ONE_CORE)
os.environ.setdefault("OMP_NUM_THREADS", "1")
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import functools
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

import _common as common
import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from _model_files import PACKAGES, SMOKE, find_models

import rigidjax as rj

INERTIA = (0.01, 0.09, 0.08)
# Step of the generalised-alpha method, s.
STEP = 0.002
Run = Callable[[], Any]


def make_chain(count: int) -> rj.System:
    """Return a straight horizontal chain of rods of 1 m and 1 kg with hinges about two axes."""
    bodies = [rj.Body(f"b{i}", 1.0, INERTIA, position=(i + 0.5, 0, 0)) for i in range(count)]
    names = ["ground", *(body.name for body in bodies)]
    joints = [
        rj.Revolute(names[i], names[i + 1], (i, 0, 0), find_axis(i), name=f"j{i}")
        for i in range(count)
    ]
    return rj.System(bodies, joints, rj.Gravity((0, 0, -9.81)))


def find_axis(i: int) -> tuple[float, float, float]:
    """Return the axis of a hinge of the chain."""
    return (0.0, 1.0, 0.0) if i % 2 else (0.0, 0.6, 0.8)


class Comparison:
    """A tree in both programs, and random or given states of it in MuJoCo's coordinates."""

    def __init__(self, system: rj.System | rj.models.Model, duration: float):
        import mujoco

        self.mujoco, self.duration = mujoco, duration
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "tree.xml")
            rj.models.save(system, path)
            self.model = rj.models.load(path)
            self.peer = mujoco.MjModel.from_xml_path(str(path))
        flags = mujoco.mjtDisableBit
        self.peer.opt.disableflags |= flags.mjDSBL_CONSTRAINT | flags.mjDSBL_ACTUATION
        self.peer.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
        self.trees = rj.Relative(self.model.system)

    def start(self, count: int, size: float) -> tuple[np.ndarray, np.ndarray]:
        """Return coordinates and velocities of random states; `size` 0 for states at rest."""
        rng = np.random.default_rng(0)
        q = np.tile(self.peer.qpos0, (count, 1))
        v = size * rng.standard_normal((count, self.peer.nv))
        for row in q:
            move = size * rng.standard_normal(self.peer.nv)
            self.mujoco.mj_integratePos(self.peer, row, move, 1.0)
        return q, v

    def unknowns(self, q: np.ndarray, v: np.ndarray) -> jax.Array:
        """Return the unknowns of states."""
        states = jax.vmap(self.model.from_mujoco)(jnp.asarray(q), jnp.asarray(v))
        return jax.jit(jax.vmap(self.trees.pack))(states)

    def velocities(self, ys: jax.Array) -> np.ndarray:
        """Return MuJoCo's velocities at the end."""
        final = jax.jit(
            jax.vmap(lambda y: self.model.to_mujoco(self.trees.decode(self.duration, y)))
        )
        return np.asarray(final(ys)[1])

    def simulation(self, ys: jax.Array, **settings: Any) -> Run:
        """Return a call of `rj.simulate` for all states."""

        def run(y):
            return rj.simulate(
                self.trees, y0=y, t1=self.duration, max_steps=100_000, **settings
            ).ys[-1]

        if len(ys) == 1:
            single = jax.jit(run)
            return lambda: single(ys[0])[None]
        return functools.partial(jax.jit(jax.vmap(run)), ys)

    def solver_step(self, ys: jax.Array, solver: Any) -> Run:
        """Return one step of a diffrax solver as a kernel, for all states."""
        term = diffrax.ODETerm(lambda t, y, args: self.trees.vector_field(t, y))

        def step(y):
            times = jnp.zeros(()), jnp.asarray(self.duration)
            state = solver.init(term, *times, y, None)
            return solver.step(term, *times, y, None, state, made_jump=False)[0]

        return functools.partial(jax.jit(jax.vmap(rj.native.jit(step))), ys)

    def rollout(self, q: np.ndarray, v: np.ndarray, dt: float) -> Run:
        """Return a call of `mujoco.rollout` on one thread; its result is the final velocities."""
        from mujoco import rollout

        nq, nv = self.peer.nq, self.peer.nv
        kind = self.mujoco.mjtState.mjSTATE_FULLPHYSICS
        full = np.zeros((len(q), self.mujoco.mj_stateSize(self.peer, kind)))
        full[:, 1 : 1 + nq], full[:, 1 + nq : 1 + nq + nv] = q, v
        data, steps = self.mujoco.MjData(self.peer), round(self.duration / dt)

        def run():
            self.peer.opt.timestep = dt
            states = rollout.rollout(self.peer, data, full, nstep=steps)[0]
            return states[:, -1, 1 + nq : 1 + nq + nv]

        return run

    def measure(
        self, case: str, q: np.ndarray, v: np.ndarray, ours: dict[str, Run],
        steps: tuple[float, ...], repeats: int,
    ) -> list[dict[str, Any]]:  # fmt: skip
        """Return rows of processor time for one state and of the median error of velocities."""
        exact = self.simulation(
            self.unknowns(q, v), solver=diffrax.Dopri8(), rtol=1e-12, atol=1e-12
        )
        reference = self.velocities(exact())
        theirs = {f"RK4, {1e3 * dt:g} ms": self.rollout(q, v, dt) for dt in steps}
        ends = {name: self.velocities(run()) for name, run in ours.items()}
        ends |= {name: run() for name, run in theirs.items()}
        times = common.time_in_turn(ours | theirs, repeats)
        return [
            {
                "case": case,
                "program": "rigidjax" if name in ours else f"MuJoCo {self.mujoco.__version__}",
                "method": name,
                "states": len(q),
                "error": float(np.median(np.abs(ends[name] - reference).max(axis=1))),
                "seconds": min(used for _, used in times[name]) / len(q),
                "successful": True,
            }
            for name in ours | theirs
        ]  # fmt: skip


# Solvers and steps of `simulate`, s, for a duration of 20 ms.
SETTINGS = (
    (diffrax.Tsit5(), 0.02),
    (diffrax.Tsit5(), 0.01),
    (diffrax.Bosh3(), 0.01),
    (diffrax.Dopri8(), 0.02),
)


def compare_steps(
    path: pathlib.Path, count: int, repeats: int, settings: tuple[tuple[Any, float], ...] = SETTINGS
) -> list[dict[str, Any]]:
    """Return rows of steps of 20 ms, by `simulate`, and by a step of each solver as a kernel."""
    pair = Comparison(rj.models.load(path, mimic=False, friction_velocity=None), 0.02)
    q, v = pair.start(count, 1.0)
    ys = pair.unknowns(q, v)
    ours, kernels = {}, {}
    for solver, dt in settings:
        name = type(solver).__name__
        ours[f"simulate, {name}, {1e3 * dt:g} ms"] = pair.simulation(ys, solver=solver, dt=dt)
        kernels[f"a step of {name} in a kernel"] = pair.solver_step(ys, solver)
    case = f"{path.stem}, 20 ms"
    return pair.measure(case, q, v, ours | kernels, (0.02, 0.01, 0.005, 0.0025), repeats)


def compare_falls(links: int, count: int, repeats: int) -> list[dict[str, Any]]:
    """Return rows of a chain that falls for a second: alone, or `count` chains in a batch."""
    pair = Comparison(make_chain(links), 1.0)
    q, v = pair.start(count, 0.0)
    if count > 1:
        v = 0.1 * np.random.default_rng(1).standard_normal(v.shape)
    ys = pair.unknowns(q, v)
    ours = {
        f"simulate, {type(solver).__name__}, {tolerance:g}": pair.simulation(
            ys, solver=solver, rtol=tolerance, atol=tolerance
        )
        for solver in (diffrax.Tsit5(), diffrax.Dopri8())
        for tolerance in (1e-3, 1e-4, 1e-6, 1e-8)
    }
    case = f"chain of {links} hinges, 1 s, {'alone' if count == 1 else 'in a batch'}"
    return pair.measure(case, q, v, ours, (0.05, 0.025, 0.01, 0.005, 0.0025), repeats)


def compare_alpha_steps(links: int, steps: int, repeats: int) -> list[dict[str, Any]]:
    """Return rows of times of a step of the generalised-alpha method, with equal steps.

    The time is that of `steps` steps less that of a fifth of them, which removes start and end.
    """
    system = make_chain(links)
    trees, model = rj.Relative(system), rj.Absolute(system, rj.Quaternion(), index=3)
    start, duration = system.reference_state(), steps * STEP
    exact = rj.simulate(trees, start, duration, rtol=1e-10, atol=1e-10)
    exact = np.asarray(exact.states.position[-1, -1])
    y0 = model.encode(start)

    def ours(number: int) -> Run:
        def run(y):
            sol = rj.simulate(
                model, y0=y, t1=number * STEP, dt=STEP, solver=rj.solvers.GeneralizedAlpha(0.9)
            )
            return sol.states.position[-1, -1]

        return functools.partial(jax.jit(run), y0)

    begin = time.process_time()
    runs = {"rigidjax": (ours(steps // 5), ours(steps))}
    ends = {"rigidjax": runs["rigidjax"][1]()}
    first = time.process_time() - begin
    # With dense matrices a step of 100 bodies takes a second.
    for sparse in (False, True) if links <= 20 else (True,):
        for modified in (False, True):
            name = f"Exudyn, {'sparse' if sparse else 'dense'}, "
            name += "modified Newton" if modified else "full Newton"
            runs[name] = tuple(
                functools.partial(run_exudyn, links, number, sparse, modified)
                for number in (steps // 5, steps)
            )
            ends[name] = runs[name][1]()[1]
    least = {name: [float("inf")] * 2 for name in runs}
    for _ in range(repeats):
        for name, pair in runs.items():
            for k, run in enumerate(pair):
                used = time.process_time()
                result = jax.block_until_ready(run())
                # Exudyn's models are assembled outside of the measured time.
                used = result[0] if isinstance(result, tuple) else time.process_time() - used
                least[name][k] = min(least[name][k], used)
    return [
        {
            "case": f"generalised alpha, chain of {links} hinges",
            "program": name.partition(",")[0],
            "method": name,
            "error": float(np.abs(np.asarray(ends[name]) - exact).max()),
            "seconds": (long - short) / (steps - steps // 5),
            **({"first_seconds": first} if name == "rigidjax" else {}),
        }
        for name, (short, long) in least.items()
    ]


def run_exudyn(links: int, steps: int, sparse: bool, modified: bool) -> tuple[float, np.ndarray]:
    """Return the processor time of Exudyn's solver, s, and the final position of the last body."""
    import exudyn
    from exudyn.utilities import RigidBodyInertia

    system = exudyn.SystemContainer().AddSystem()
    last = system.CreateGround()
    inertia = RigidBodyInertia(1.0, np.diag(INERTIA))
    for i in range(links):
        body = system.CreateRigidBody(
            referencePosition=[i + 0.5, 0.0, 0.0], inertia=inertia, gravity=[0.0, 0.0, -9.81]
        )
        system.CreateRevoluteJoint(
            itemNumbers=[last, body], position=[float(i), 0.0, 0.0], axis=[*find_axis(i)]
        )
        last = body
    system.Assemble()
    settings = exudyn.SimulationSettings()
    settings.timeIntegration.numberOfSteps = steps
    settings.timeIntegration.endTime = steps * STEP
    settings.timeIntegration.verboseMode = 0
    settings.timeIntegration.generalizedAlpha.spectralRadius = 0.9
    settings.timeIntegration.newton.useModifiedNewton = modified
    settings.solution.file.write = False
    settings.parallel.numberOfThreads = 1
    kinds = exudyn.LinearSolverType
    settings.linearSolver.solverType = kinds.EigenSparse if sparse else kinds.EXUdense
    begin = time.process_time()
    system.SolveDynamic(settings)
    used = time.process_time() - begin
    return used, np.array(system.GetObjectOutputBody(last, exudyn.OutputVariableType.Position))


FIRST_RUN = """
import json, sys, time, warnings
begin = time.process_time(), time.perf_counter()
import jax
jax.config.update("jax_enable_x64", True)
import rigidjax as rj
warnings.simplefilter("ignore")
laps = [(time.process_time(), time.perf_counter())]
model = rj.models.load(sys.argv[1])
laps.append((time.process_time(), time.perf_counter()))
sol = rj.simulate(rj.Relative(model.system), model.state, 1.0)
sol.states.position.block_until_ready()
laps.append((time.process_time(), time.perf_counter()))
names = "import", "load", "simulate"
spans = zip(names, [begin, *laps], laps)
print(json.dumps({f"{name}_seconds": b[0] - a[0] for name, a, b in spans}
                 | {"wall_seconds": laps[-1][1] - begin[1], "bodies": len(model.names.bodies)}))
"""


def measure_first_run(path: pathlib.Path) -> list[dict[str, Any]]:
    """Return rows of the first simulation of a model in new processes: no kernel on disk, then with
    those of the run before.
    """
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"RIGIDJAX_KERNEL_CACHE": folder, "XLA_FLAGS": ""}
        for kernels in ("none", "on disk"):
            done = subprocess.run(
                [sys.executable, "-c", FIRST_RUN, str(path)],
                env=environment, capture_output=True, text=True, check=True,
            )  # fmt: skip
            case = f"first simulation of {path.stem}"
            rows.append({"case": case, "kernels": kernels, **json.loads(done.stdout)})
    return rows


def find_robot(name: str) -> pathlib.Path:
    """Return the path of a model of `example-robot-data`."""
    return next(path for path, found in find_models(PACKAGES[0]) if found == name)


def main() -> None:
    """Measure all cases or that of `--case`, whose rows replace earlier ones; with `--smoke` the
    arm of the tests.
    """
    cases = {
        "quadruped": lambda: compare_steps(
            find_robot("solo_description/robots/solo12.urdf"), 1024, 9
        ),
        "chain": lambda: compare_falls(20, 1, 15),
        "chains": lambda: compare_falls(20, 1024, 3),
        "humanoid": lambda: measure_first_run(
            find_robot("g1_description/urdf/g1_29dof_rev_1_0.urdf")
        ),
        "alpha-20": lambda: compare_alpha_steps(20, 100, 5),
        "alpha-100": lambda: compare_alpha_steps(100, 100, 2),
    }
    options = common.arguments(
        __doc__ or "", lambda parser: parser.add_argument("--case", choices=cases)
    )
    common.double_precision()
    warnings.simplefilter("ignore")  # of inertias that are not physical
    if options.smoke:
        rows = [*compare_steps(SMOKE, 2, 1, SETTINGS[:1]), *measure_first_run(SMOKE)]
        common.write("robot_runs", rows, True)
        return
    rows = common.read("robot_runs")
    for name in [options.case] if options.case else cases:
        shared = common.environment()
        found = [{"benchmark": "robot_runs", **row, **shared} for row in cases[name]()]
        measured = {row["case"] for row in found}
        rows = [*(row for row in rows if row["case"] not in measured), *found]
        common.write_rows("robot_runs", rows)
        jax.clear_caches()


if __name__ == "__main__":
    main()

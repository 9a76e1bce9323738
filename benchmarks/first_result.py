"""Time to the first result of a new process, and what it is spent on.

Each program runs in new processes, with empty caches (cold) and with those that the first process
has filled (warm). The unit is the processor time of a pendulum written by hand with diffrax, cold,
measured in the same run. In a further process, which is not timed, the programs compiled by XLA,
the calls of methods of a model while it is traced, the lines of LLVM, and the seconds in tracing,
emission of kernels, LLVM and XLA are counted. Other simulators run the same tasks.
"""

import collections
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent
_HEAD = """
import jax
import rigidjax as rj
jax.config.update("jax_enable_x64", True)
"""
_RODS = """
def rods(damping):
    a = rj.Body.rod("a", 1.0, 0.02, mass=1.0, position=(0, 0, -0.5))
    b = rj.Body.rod("b", 1.0, 0.02, mass=1.0, position=(0, 0, -1.5))
    h1 = rj.Revolute("ground", "a", (0, 0, 0), axis=(0, 1, 0), name="h1", damping=damping)
    h2 = rj.Revolute("a", "b", (0, 0, -1), axis=(0, 1, 0), name="h2", damping=damping)
    system = rj.System([a, b], [h1, h2], rj.Gravity((0, 0, -9.81)))
    state = rj.jointed_state(system, {"h1": 1.0, "h2": 0.5})
    return rj.simulate(rj.NullSpace(system), state, 2.0)
"""
_PROBLEM = """
problem = rj.problems.{0}()
model = rj.NullSpace(problem.system)
"""
# Runs the Python blocks of a page up to one that has a mark.
_PAGE = """
import pathlib, re
blocks = re.findall(r"```python(.*?)\\n(.*?)```", pathlib.Path("{page}").read_text(), re.S)
text = [text for _, text in blocks if "rj.view" not in text][:{count}]
exec("\\n".join(text).replace("fit.report", "# "))
"""
PROGRAMS = {
    "diffrax by hand": """
import diffrax, jax
import jax.numpy as jnp
jax.config.update("jax_enable_x64", True)
def final(c):
    def f(t, y, args):
        return jnp.stack([y[1], (-9.81 * 0.5 * jnp.cos(y[0]) - c * y[1]) / (1 / 3 + 0.25)])
    controller = diffrax.PIDController(rtol=1e-8, atol=1e-8)
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(f), diffrax.Dopri5(), 0.0, 2.0, None, jnp.array([0.0, 0.0]),
        stepsize_controller=controller, max_steps=4096,
    )
    return solution.ys[-1, 0]
print(jax.value_and_grad(final)(0.1))
""",
    "import diffrax": "import diffrax",
    "import rigidjax": "import rigidjax",
    "README": _PAGE.format(page="README.md", count=1),
    "top": _HEAD + _PROBLEM.format("heavy_top")
    + "print(rj.simulate(model, problem.state0, 2.0).energy[-1])",
    "double pendulum": _HEAD + _RODS.replace("damping=damping", "") + "print(rods(0.0).energy[-1])",
    "double pendulum, gradient": _HEAD + _RODS
    + 'print(jax.value_and_grad(lambda d: rods(d).coordinates["h1"][-1, 0])(0.1))',
    "four-bar": _HEAD + _PROBLEM.format("four_bar")
    + "print(rj.simulate(model, problem.state0, 2.0).energy[-1])",
    "four-bar, Radau5": _HEAD + _PROBLEM.format("four_bar")
    + "print(rj.simulate(model, problem.state0, 2.0, solver=rj.solvers.Radau5()).energy[-1])",
    "slider-crank, gradient": _HEAD + _PROBLEM.format("slider_crank") + """
def energy(t1):
    return rj.simulate(model, problem.state0, t1).energy[-1]
print(jax.value_and_grad(energy)(0.5))
""",
    "robot from a file": _HEAD + """
system = rj.models.load("examples/humanoid/humanoid.urdf").system
print(rj.simulate(rj.Relative(system), system.reference_state(), 0.1).energy[-1])
""",
    "first fit": _PAGE.format(page="docs/start.md", count=99),
    "MuJoCo": """
import mujoco
text = '<mujoco><worldbody><body><joint axis="0 1 0" damping="0.1"/>'
text += '<geom type="box" size="0.5 0.05 0.025" pos="0.5 0 0" mass="1"/></body></worldbody>'
model = mujoco.MjModel.from_xml_string(text + "</mujoco>")
data = mujoco.MjData(model)
while data.time < 2.0:
    mujoco.mj_step(model, data)
print(data.qpos)
""",
    "Exudyn": """
import exudyn as exu
from exudyn.utilities import *
system = exu.SystemContainer().AddSystem()
ground = system.CreateGround()
box = InertiaCuboid(density=200.0, sideLengths=[1.0, 0.1, 0.05])
arm = system.CreateRigidBody(inertia=box, referencePosition=[0.5, 0, 0], gravity=[0, 0, -9.81])
system.CreateRevoluteJoint(itemNumbers=[ground, arm], position=[0, 0, 0], axis=[0, 1, 0])
system.Assemble()
settings = exu.SimulationSettings()
settings.timeIntegration.endTime, settings.timeIntegration.numberOfSteps = 2.0, 2000
settings.timeIntegration.verboseMode = 0
settings.solutionSettings.writeSolutionToFile = False
system.SolveDynamic(settings)
print(system.GetObjectOutputBody(arm, exu.OutputVariableType.Position))
""",
}  # fmt: skip
UNIT, OTHERS = "diffrax by hand", ("MuJoCo", "Exudyn")


def processor_seconds(name: str, folder: str) -> float:
    """Return the processor time of a program in a new process with its caches in a folder."""
    env = os.environ | {"RIGIDJAX_KERNEL_CACHE": f"{folder}/kernels", "XDG_CACHE_HOME": folder}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-c", PROGRAMS[name]], env=env, cwd=ROOT, check=True, capture_output=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cold_and_warm(name: str, repeats: int) -> tuple[float, float]:
    """Return the least processor times with empty and with filled caches."""
    pairs = []
    for _ in range(repeats):
        folder = tempfile.mkdtemp()
        try:
            pairs.append((processor_seconds(name, folder), processor_seconds(name, folder)))
        finally:
            shutil.rmtree(folder)
    cold, warm = zip(*pairs, strict=True)
    return min(cold), min(warm)


def counts(name: str, folder: str | None = None) -> dict[str, Any]:
    """Return the counts of a program, made by a new process with empty caches or a folder."""
    with tempfile.TemporaryDirectory() as empty:
        done = subprocess.run(
            [sys.executable, __file__, "--count", name], cwd=ROOT, check=True, capture_output=True,
            env=os.environ | {"RIGIDJAX_KERNEL_CACHE": folder or empty}, text=True,
        )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


def count_here(name: str) -> dict[str, Any]:
    """Run a program in this process and count what its first result is made of."""
    import jax
    from jax._src import compiler  # a benchmark may look inside JAX

    from rigidjax.native.runtime import codegen, kernel

    jax.config.update("jax_enable_compilation_cache", False)
    found: dict[str, float] = collections.defaultdict(float)

    def measure(owner: Any, attribute: str, key: str, count: Any = None) -> None:
        original = getattr(owner, attribute)

        def call(*args, **kwargs):
            begin = time.perf_counter()
            result = original(*args, **kwargs)
            found[f"{key}_seconds"] += time.perf_counter() - begin
            if count is not None:
                found[count[0]] += count[1](*args)
            return result

        setattr(owner, attribute, call)

    measure(compiler, "compile_or_get_cached", "xla", ("programs", lambda *args: 1))
    measure(kernel.Kernel, "_emit", "emission")
    measure(codegen, "_run_passes", "passes", ("llvm_lines", lambda text, *_: text.count("\n")))
    measure(kernel, "compile_module", "llvm")

    def profile(frame, event, _):
        # The function by which `compile_method` replaces a method of a model.
        if event == "call" and frame.f_code.co_name == "with_arrays":
            found["method_calls"] += 1

    begin = time.perf_counter()
    sys.setprofile(profile)
    try:
        exec(PROGRAMS[name], {"__name__": "__main__"})
    finally:
        sys.setprofile(None)
    found["other_seconds"] = time.perf_counter() - begin
    found["other_seconds"] -= sum(found[f"{k}_seconds"] for k in ("xla", "emission", "llvm"))
    found.pop("passes_seconds", None)
    return dict(found)


def rows(smoke: bool) -> list[dict[str, Any]]:
    repeats = 1 if smoke else 3
    unit, _ = cold_and_warm(UNIT, repeats)
    out = []
    for name in ["import rigidjax"] if smoke else PROGRAMS:
        cold, warm = cold_and_warm(name, repeats)
        row = {"case": name, "cold_seconds": cold, "cold": cold / unit, "warm": warm / unit}
        by_us = name not in (UNIT, *OTHERS) and not name.startswith("import")
        out.append(row | (counts(name) if by_us else {}))
        print(f"{name:28s} cold {row['cold']:5.2f}  warm {row['warm']:5.2f}", file=sys.stderr)
    return out


def _arguments(parser):
    parser.add_argument("--count", choices=PROGRAMS, help="count for one program, in this process")


def main() -> None:
    if "--count" in sys.argv:  # before anything is imported
        print(json.dumps(count_here(sys.argv[sys.argv.index("--count") + 1])))
        return
    import _common as common

    args = common.arguments(str(__doc__), _arguments)
    common.write("first_result", rows(args.smoke), args.smoke)


if __name__ == "__main__":
    main()

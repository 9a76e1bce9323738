"""Parts that were built before and after double precision was switched on."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj
from rigidjax.checks import check_one_precision

REMEDY = "enable x64 before building any object"


def parts():
    body = rj.Body("b", 1.0, (0.1, 0.1, 0.02), (0.5, 0.0, 0.0))
    return {
        "body": body,
        "joint": rj.Revolute("ground", "b", (0, 0, 0), (0, 1, 0), name="h", damping=0.1),
        "force": rj.Gravity((0.0, 0.0, -9.81)),
        "motor": rj.Motor("h", rj.Signal([0.0, 1.0], [0.0, 1.0])),
        "frame": rj.Frame("f", "b", (0.0, 0.0, 0.1)),
        "sensor": rj.Gyroscope("b"),
        "parameter": rj.Parameter("m", lambda e: e.model.system.bodies[0].mass, start=2.0),
        "limits": rj.Parameter(
            "m", lambda e: e.model.system.bodies[0].mass, rj.identification.Bounded(0.5, 2.0)
        ),
    }


def system_of(body, joint, force, motor, frame, **_):
    return rj.System(body, joint, [force, motor], frame)


# As where `jax_enable_x64` is switched on after these lines.
with jax.enable_x64(False):
    OLD = parts()
    OLD_SYSTEM = system_of(**OLD)
    OLD_FIXED = rj.FixedPointBody((1.0, 2.0, 3.0))
NEW = parts()
SYSTEM = system_of(**NEW)
MODEL = rj.NullSpace(SYSTEM)


@pytest.mark.parametrize(
    ("part", "name"),
    [
        ("body", r"the body 'b'\.mass"), ("joint", r"the joint 'h'\.point"),
        ("force", r"the force `Gravity`\.vector"), ("motor", r"the force `Motor`\.torque\.ts"),
        ("frame", r"the frame 'f'\.point"),
    ],
)  # fmt: skip
def test_system_names_the_single_precision_part(part, name):
    message = f"`System.* combines float64 and float32: {name} is float32.*{REMEDY}"
    with pytest.raises(ValueError, match=message):
        system_of(**{**NEW, part: OLD[part]})


def test_mixed_precision_raises_wherever_parts_are_combined():
    start, old = SYSTEM.reference_state(), OLD_SYSTEM.reference_state()
    values = np.zeros((3, 3), np.float32)
    ts = np.linspace(0.0, 0.1, 3)

    def fit(sensor, parameter, ts=ts):
        data = rj.Measurements(ts, {sensor: values}, {sensor: 0.01})
        return rj.identify(MODEL, data, parameter, state0=start)

    replaced = eqx.tree_at(lambda s: s.bodies[0].mass, SYSTEM, jnp.float32(1.0))
    with jax.enable_x64(False):
        data = rj.Measurements(ts, {OLD["sensor"]: values}, {OLD["sensor"]: 0.01})
    for refused, name in (
        (lambda: rj.simulate(MODEL, old, 0.1), r"the `State`\.position"),
        (lambda: jax.jit(lambda s: rj.simulate(MODEL, s, 0.1).ys)(old), r"the `State`\.position"),
        (lambda: rj.simulate(rj.NullSpace(OLD_FIXED), rj.State(), 0.1), r"the model\.system"),
        (lambda: rj.consistent_state(SYSTEM, old), r"the state\.position"),
        (lambda: rj.Absolute(replaced), r"the system\.bodies\[0\]\.mass"),
        (lambda: rj.JointStart(OLD_SYSTEM, [0.1]), r"the system\.bodies\[0\]\.mass"),
        (lambda: fit(OLD["sensor"], NEW["parameter"]), r"the sensor 'gyroscope of b'\.bias"),
        (lambda: fit(NEW["sensor"], OLD["parameter"]), r"the parameter 'm'\.start"),
        (lambda: fit(NEW["sensor"], OLD["limits"]), r"the parameter 'm'\.transform"),
        (lambda: rj.identify(MODEL, data, NEW["parameter"]), "`ts` of the measurements"),
        (lambda: rj.sensitivity(MODEL, start, 0.1, OLD["parameter"]), r"the parameter 'm'\.start"),
    ):
        with pytest.raises(ValueError, match=f"{name}.* is float32.*{REMEDY}"):
            refused()


@jax.numpy_dtype_promotion("standard")
def test_fixed_point_body_rejects_laws_of_another_precision():
    class Friction(eqx.Module):
        rate: jax.Array

        def __call__(self, t, R, omega):
            return -self.rate * omega

    with pytest.raises(ValueError, match=r"FixedPointBody.* moment\.rate is float32"):
        rj.FixedPointBody((1.0, 2.0, 3.0), moment=Friction(jnp.ones(3, jnp.float32)))


def test_uniform_single_precision_is_accepted():
    """The message about tolerances names what helps objects that exist already."""
    start = OLD_SYSTEM.reference_state()
    with pytest.raises(ValueError, match=f"below what float32 reaches.*{REMEDY}"):
        rj.simulate(rj.NullSpace(OLD_SYSTEM), start, 0.1)
    run = rj.simulate(rj.NullSpace(OLD_SYSTEM), start, 0.1, rtol=1e-5, atol=1e-5)
    assert run.ys.dtype == jnp.float32
    # Integers, Python's and NumPy's numbers, arrays of single precision given to a constructor.
    body = rj.Body("b", np.int32(1), np.array([0.1, 0.1, 0.02], np.float32), (0.5, 0, 0))
    joint = rj.Revolute("ground", "b", np.zeros(3, int), (0, 1, 0), damping=np.float64(0.1))
    system = rj.System(body, joint, rj.Gravity(np.array([0, 0, -9], np.float16)))
    assert {leaf.dtype for leaf in jax.tree.leaves(system)} == {jnp.dtype("float64")}
    weak = jnp.asarray(2.0)
    assert weak.weak_type
    check_one_precision("A pair", [("one", jnp.zeros(2, jnp.float32)), ("two", weak)])

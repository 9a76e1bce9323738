"""Every flag, option and compiler setting of MJCF: accelerations as in MuJoCo, or an error."""

import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj
from rigidjax.models import load

mujoco = pytest.importorskip("mujoco")

# A hinge and a slide with all laws, and an actuator each; no geoms touch. The equality, whose
# solver is soft in MuJoCo and exact here, takes part only where it is disabled.
TEXT = """<mujoco>{options}
<asset><mesh name="wedge" vertex="0 0 0 0.1 0 0 0 0.2 0 0 0 0.3"/></asset>
<worldbody><body name="a" pos="0 0 1" euler="10 20 30">
<inertial pos="0.2 0 0.01" mass="0.7" diaginertia="{inertia}"/>
<joint name="hinge" axis="0 1 0" damping="0.3" stiffness="2" springref="20" ref="5"
 frictionloss="0.2" range="-90 30" armature="0.05"/>
<geom type="capsule" fromto="0 0 0 0.4 0 0.1" size="0.03" contype="0" conaffinity="0"/>
<body name="plate" pos="0.1 0 0.1"><geom type="box" size="0.1 0.1 0.02" mass="0.3"/></body>
<body name="b" pos="0.5 0 0">
<joint name="slide" type="slide" axis="0 0 1" damping="0.1" frictionloss="0.1" range="-0.2 0.3"/>
<geom size="0.05" pos="0.1 0 0" contype="0" conaffinity="0" group="2"/>
<geom type="box" mesh="wedge" euler="40 50 60" contype="0" conaffinity="0" group="3"/>
<geom type="box" size="0.3 0.1 0.01" pos="0 0 0.1" contype="0" conaffinity="0" group="3"/>
</body></body></worldbody>
<equality><joint joint1="hinge" joint2="slide" polycoef="0 2 0 0 0" active="{active}"/></equality>
<actuator><position name="servo" joint="hinge" kp="3" kv="0.4" gear="2" ctrlrange="-1 1" group="1"/>
<motor name="drive" joint="slide" gear="3" armature="0.02" damping="0.7" group="2"
 forcerange="-2 2"/></actuator></mujoco>"""
INSIDE, BEYOND = (0.1, 0.05), (1.2, 0.5)
CONTROLS = {"servo": 1.5, "drive": 0.4}
RATES = np.array([2.0, 1.5])


def write(folder, options, active="false", inertia="0.01 0.02 0.03"):
    path = folder / "model.xml"
    path.write_text(TEXT.format(options=options, active=active, inertia=inertia))
    return path


def deviation(path, displacements=INSIDE):
    """Return the largest deviation of accelerations and actuator forces from MuJoCo.

    Limits are stops; `displacements` from the reference configuration are within them or beyond.
    """
    reference = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(reference)
    model = load(path, stops=rj.Stop(1e4))
    data.qpos[:], data.qvel[:] = data.qpos + displacements, RATES
    data.ctrl[:] = list(CONTROLS.values())
    mujoco.mj_forward(reference, data)
    force = np.zeros(2)
    for actuator in model.actuators:
        k, (constant, by_length, by_rate) = model.names.joints.index(actuator.joint), actuator.bias
        control = np.clip(CONTROLS[actuator.name], *(actuator.control_range or (-np.inf, np.inf)))
        q = data.qpos[k] - model.zeros[actuator.joint]
        own = actuator.gain * control + constant + actuator.gear * by_length * q
        own += actuator.gear * by_rate * RATES[k]
        force[k] += actuator.gear * np.clip(own, *(actuator.force_range or (-np.inf, np.inf)))
    trees, state = rj.Relative(model.system), model.from_mujoco(data.qpos, RATES)
    acceleration = trees.forward_dynamics(jnp.zeros(()), trees.pack(state), jnp.asarray(force))
    return max(
        np.abs(acceleration - data.qacc).max(), np.abs(force - data.qfrc_actuator).max()
    )  # fmt: skip


def flags():
    """Return all flags that this MuJoCo has, each with the value that is not the default."""
    bits = *mujoco.mjtDisableBit.__members__, *mujoco.mjtEnableBit.__members__
    values = {"mjDSBL": "disable", "mjENBL": "enable"}
    named = (name.split("_") for name in bits if "_" in name)
    return {name.lower(): values[prefix] for prefix, name in named}


@pytest.mark.parametrize("flag", flags())
def test_flag(flag, tmp_path):
    # The mode `ipc` is one of the discrete integrator, whose accelerations are those of a step.
    option = 'integrator="discrete" timestep="1e-12"' if flag == "ipc" else ""
    options = f'<option {option}><flag {flag}="{flags()[flag]}"/></option>'
    path = write(tmp_path, options, str(flag in ("constraint", "equality")).lower())
    assert deviation(path) < (1e-7 if option else 1e-11)
    if flag in ("constraint", "limit"):
        assert deviation(path, BEYOND) < 1e-11


OPTIONS = {
    "cone": "elliptic", "impratio": "3", "jacobian": "sparse", "magnetic": "1 2 3", "solver": "PGS",
    "gravity": "1 2 3", "wind": "4 5 6", "iterations": "300", "tolerance": "1e-12",
    "ls_iterations": "77", "ls_tolerance": "1e-4", "noslip_iterations": "9",
    "noslip_tolerance": "1e-3", "ccd_iterations": "9", "ccd_tolerance": "1e-3", "o_margin": "0.1",
    "o_solref": "0.1 2", "o_solimp": "0.5 0.6 0.01", "o_friction": "2 2 0.1 0.1 0.1",
    "sdf_iterations": "3", "sdf_initpoints": "5", "sleep_tolerance": "0.5",
    "actuatorgroupdisable": "0 2 30", "timestep": "0.01", "density": "1000", "viscosity": "3",
    "integrator": "RK4",
}  # fmt: skip


def known_options():
    """Return the options of this MuJoCo."""
    fields = {name for name in dir(mujoco.MjOption) if not name.startswith("_")}
    fields -= {"disableflags", "enableflags", "disableactuator"}
    return sorted(fields | {"actuatorgroupdisable"})


@pytest.mark.parametrize("option", known_options())
def test_option(option, tmp_path):
    # Contact parameters take effect by the flag `override`.
    options = f'<option {option}="{OPTIONS[option]}"><flag override="enable"/></option>'
    path = write(tmp_path, options)
    if option not in ("density", "viscosity"):
        assert deviation(path) < 1e-10
        return
    message = r'model.xml:1: <option>: forces of a medium .* not supp.*ignore=\("fluid",\)'
    with pytest.raises(ValueError, match=message):
        load(path)


COMPILER = (
    'angle="radian"', 'balanceinertia="true"', 'boundinertia="0.5"',
    'boundmass="3"', 'discardvisual="true"', 'eulerseq="ZYX"', 'fitaabb="true"',
    'fusestatic="true"', 'inertiafromgeom="true"',
    'inertiagrouprange="0 2"', 'settotalmass="7"',
)  # fmt: skip


@pytest.mark.parametrize("setting", COMPILER)
def test_compiler(setting, tmp_path):
    # The compiler accepts this inertia only if it may change it.
    inertia = "0.01 0.02 0.06" if "balance" in setting else "0.01 0.02 0.03"
    assert deviation(write(tmp_path, f"<compiler {setting}/>", inertia=inertia)) < 1e-10


def test_free_joint_that_the_compiler_aligns(tmp_path):
    path = tmp_path / "model.xml"
    path.write_text("""<mujoco><compiler alignfree="true"/><worldbody><body euler="10 20 30">
        <freejoint/><geom type="box" size="0.1 0.2 0.3" pos="0.1 0.02 0" euler="40 50 60"/>
        </body></worldbody></mujoco>""")
    reference = mujoco.MjModel.from_xml_path(str(path))
    data, model = mujoco.MjData(reference), load(path)
    data.qvel[:] = np.arange(1.0, 7.0)
    mujoco.mj_forward(reference, data)
    trees = rj.Relative(model.system)
    y = trees.pack(model.from_mujoco(data.qpos, data.qvel))
    # The frame of the aligned body is that of its principal axes, whose rates both programs use.
    acceleration = trees.forward_dynamics(jnp.zeros(()), y, jnp.zeros(6))
    np.testing.assert_allclose(acceleration, data.qacc, rtol=0, atol=1e-12)


ASLEEP = """<mujoco><option>\n<flag sleep="{}"/></option><worldbody><body name="base">
    <body name="a" sleep="init"><joint axis="0 1 0"/><geom size="0.1" pos="0.3 0 0"/></body></body>
    </worldbody></mujoco>"""


@pytest.mark.skipif("sleep" not in flags(), reason="this MuJoCo has no flag `sleep`")
def test_bodies_that_start_asleep_are_refused(tmp_path):
    path = tmp_path / "model.xml"
    path.write_text(ASLEEP.format("disable"))
    load(path)
    path.write_text(ASLEEP.format("enable"))
    message = r'model.xml:3: body \'a\': a body that starts asleep is not .*ignore=\("sleep",\)'
    with pytest.raises(ValueError, match=message):
        load(path)
    assert load(path, ignore=("sleep",)).report.of_kind("ignored")


def test_report_names_the_laws_that_are_switched_off(tmp_path):
    flags = '<flag constraint="disable" damper="disable"/>'
    path = write(tmp_path, f'<option actuatorgroupdisable="1">{flags}</option>', "true")
    model = load(path, stops=rj.Stop(1e4))
    assert [actuator.name for actuator in model.actuators] == ["drive"]
    text = str(model.report)
    for line in (
        "joint 'hinge': limits, which a <flag> disables",
        "joint 'hinge': friction, which a <flag> disables",
        "joint 'hinge': damping, which a <flag> disables",
        "actuator 'servo': exerts no force: a <flag> or `actuatorgroupdisable` disables it",
        "joint 'joint 0': is not active",
    ):
        assert line in text

"""Models, data and arguments that regression refuses."""

import numpy as np
import pytest
from identification.arms import arm_data, excitation, mixed_tree, planar_arm

import rigidjax as rj
from rigidjax import identification as ident


def ground_hinge(**options):
    body = rj.Body("bob", 1.0, (0.1, 0.1, 0.1))
    hinge = rj.Revolute("ground", "bob", (0, 0, 0), (0, 0, 1), name="hinge", **options)
    return rj.System(body, hinge)


def test_models_without_regressor_raise():
    state, rate = ground_hinge().reference_state(), np.zeros(1)
    with pytest.raises(TypeError, match="takes a `System`, or a formulation of one; got Fixed"):
        ident.regressor(rj.NullSpace(rj.FixedPointBody((1, 1, 1))), state, rate)
    with pytest.raises(ValueError, match="'hinge' is prescribed: leave `motion` out"):
        ident.regressor(ground_hinge(motion=lambda t: t), state, rate)
    for motor in (rj.Motor("hinge", 1.0), rj.LaggedMotor("hinge", 0.1, 1.0)):
        driven = rj.System(ground_hinge().bodies, ground_hinge().joints, motor)
        message = f"`regress` take .* leave out the `{type(motor).__name__}` on 'hinge'"
        with pytest.raises(ValueError, match=message):
            ident.regressor(driven, state, rate)
    four_bar = rj.problems.four_bar()
    with pytest.raises(ValueError, match="takes a tree; the joints .* close loops"):
        ident.regressor(four_bar.system, four_bar.state0, rate)
    with pytest.raises(ValueError, match=r"shape \(1,\), one column for each of \['hinge'\]"):
        ident.regressor(ground_hinge(), state, np.zeros(2))


def test_joints_that_do_not_determine_poses_raise():
    body = rj.Body("bob", 1.0, (0.1, 0.1, 0.1))
    with pytest.raises(ValueError, match="do not place the body 'bob', which is free"):
        rj.joint_states(rj.System(body), np.zeros(6))
    ball = rj.Spherical("ground", "bob", (0, 0, 0))
    cross = rj.Universal("ground", "bob", (0, 0, 0), (1, 0, 0), (0, 1, 0))
    for joint, count in ((ball, 3), (cross, 2)):
        message = f"child of the {type(joint).__name__} .*: only lengths and one angle do"
        with pytest.raises(ValueError, match=message):
            rj.joint_states(rj.System(body, joint), np.zeros(count))
    with pytest.raises(ValueError, match="is prescribed; leave `motion` out where"):
        rj.joint_states(ground_hinge(motion=lambda t: t), np.zeros(0))
    with pytest.raises(ValueError, match="close loops. Give states"):
        rj.joint_states(rj.problems.four_bar().system, np.zeros(3))
    with pytest.raises(ValueError, match=r"take shape \(1,\) or \(T, 1\)"):
        rj.joint_states(ground_hinge(), np.zeros(2))


def test_invalid_data_raise():
    one = np.zeros((3, 1))
    with pytest.raises(ValueError, match=r"rates=...\)` must have shape \(T, 1\)"):
        ident.joint_data(ground_hinge(), one, np.zeros(3), one, one)
    with pytest.raises(ValueError, match="torques=.* is not finite at sample 2"):
        ident.joint_data(ground_hinge(), one, one, one, np.array([[0.0], [0.0], [np.nan]]))
    with pytest.raises(ValueError, match="needs as many samples of each"):
        ident.joint_data(ground_hinge(), one, one, one, np.zeros((4, 1)))
    with pytest.raises(ValueError, match="takes of .*'viscous'.*; got 'stiction'"):
        ident.joint_data(ground_hinge(), one, one, one, one, terms=("stiction",))
    with pytest.raises(ValueError, match="a label of its own; got .'bob.m'. twice"):
        ident.joint_data(ground_hinge(), one, one, one, one, extra={"bob.m": one})


def test_invalid_arguments_of_solutions_raise(noisy_arm, exact_arm):
    with pytest.raises(ValueError, match="a label for each column; got shape"):
        ident.base_parameters(np.zeros((3, 2)), ["a"])
    with pytest.raises(ValueError, match="must be finite numbers"):
        ident.base_parameters(np.full((3, 1), np.nan), ["a"])
    with pytest.raises(ValueError, match="is zero: no parameter acts"):
        ident.base_parameters(np.zeros((3, 1)), ["a"])
    with pytest.raises(ValueError, match="must be positive and finite, N m"):
        ident.regress(exact_arm, noise=[1.0, 0.0])
    few = arm_data(0.0, 3)
    with pytest.raises(ValueError, match="6 torques for 6 base parameters"):
        ident.regress(few)
    with pytest.raises(ValueError, match=r"weight=...\)` must be positive; got 0"):
        ident.consistent_regression(noisy_arm, weight=0)
    with pytest.raises(ValueError, match="no body called 'forearm'. Did you mean 'fore'"):
        ident.consistent_regression(noisy_arm, prior={"forearm": noisy_arm})
    rod = rj.MassProperties(1.0, (0, 0, 0), (0.0, 0.1, 0.1))
    with pytest.raises(ValueError, match="prior of 'fore' has no positive definite"):
        ident.consistent_regression(noisy_arm, prior={"fore": rod})
    idle = ident.joint_data(
        planar_arm(), *excitation(2), exact_arm.torques, extra={"idle": np.zeros((200, 2))}
    )
    with pytest.raises(ValueError, match=r"\['idle'\] have no prior, and the data do not"):
        ident.consistent_regression(ident.regress(idle))


def test_bodies_that_cannot_be_exchanged_raise():
    with pytest.raises(ValueError, match=r"must have shape \(20,\); got \(10,\)"):
        ident.with_inertial_parameters(planar_arm(), np.ones(10))
    with pytest.raises(ValueError, match="to which the Spring on .'a', 'c'. is attached"):
        ident.with_inertial_parameters(mixed_tree(), np.ones(30))
    with pytest.raises(ValueError, match="must be positive"):
        ident.with_inertial_parameters(planar_arm(), -np.ones(20))


def test_units_do_not_make_a_parameter_idle(rng):
    """Columns as the masses of a mechanism of micrometres have them beside its moments."""
    rows = rng.normal(size=(50, 3)) * np.array([1.0, 1e-12, 1e-6])
    rows[:, 2] += 2e6 * rows[:, 1]
    base = ident.base_parameters(np.column_stack([rows, 0 * rows[:, 0]]), list("abcd"))
    assert base.rank == 3 and base.idle == ("d",)

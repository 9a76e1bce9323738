"""Errors of joints, and alternative forms of their arguments."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from joints import cases

import rigidjax as rj

P, Z, X = (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), (1.0, 0.0, 0.0)


@pytest.mark.parametrize("kind", cases.KINDS)
@pytest.mark.parametrize(
    ("bodies", "options", "error", "match"),
    [
        (("one", "one"), {}, ValueError, "joins two different bodies; got 'one' as parent and"),
        (("ground", "ground"), {}, ValueError, "joins two different bodies; got 'ground'"),
        ((1, "one"), {}, TypeError, r"\(parent=...\)` takes the name of a body or .* got 1"),
        (("one", None), {}, TypeError, r"\(child=...\)` takes the name of a body or .* got None"),
        (("a", "b"), {"name": ""}, ValueError, r"\(name=...\)` must be a non-empty string; got ''"),
        (("a", "b"), {"name": 7}, ValueError, r"\(name=...\)` must be a non-empty string; got 7"),
    ],
)
def test_invalid_names_raise(kind, bodies, options, error, match):
    with pytest.raises(error, match=f"`{kind.split()[-1]}.*{match}"):
        cases.KINDS[kind](*bodies, **options)


@pytest.mark.parametrize(
    ("build", "error", "match"),
    [
        (lambda: rj.Spherical("a", "b", 1.0), ValueError,
         r"`Spherical\(point=...\)` must have shape \(3,\); got shape \(\)"),
        (lambda: rj.Revolute("a", "b", (0.0, 1.0), Z), ValueError,
         r"`Revolute\(point=...\)` must have shape \(3,\); got shape \(2,\)"),
        (lambda: rj.Revolute("a", "b", P, np.eye(3)), ValueError,
         r"`Revolute\(axis=...\)` must have shape \(3,\); got shape \(3, 3\)"),
        (lambda: rj.Revolute("a", "b", P, P), ValueError,
         r"`Revolute\(axis=...\)` must not be zero: it is the direction of an axis"),
        (lambda: rj.Revolute("a", "b", P, (np.nan, 0.0, 1.0)), ValueError,
         r"`Revolute\(axis=...\)` must be finite"),
        (lambda: rj.Revolute("a", "b", (np.inf, 0.0, 1.0), Z), ValueError,
         r"`Revolute\(point=...\)` must be finite"),
        (lambda: rj.Revolute("a", "b", P, Z, 3.0), TypeError,
         r"`Revolute\(motion=...\)` must be a function of time .* got 3.0"),
        (lambda: rj.Prismatic("a", "b", P), ValueError,
         r"`Prismatic\(axis=...\)` must not be zero"),
        (lambda: rj.Prismatic("a", "b", Z, "up"), TypeError,
         r"`Prismatic\(motion=...\)` must be a function of time .* got 'up'"),
        # A slider written like a hinge and the other way round.
        (lambda: rj.Prismatic("a", "b", P, Z), TypeError,
         r"got \(0.0, 0.0, 1.0\)\. `Prismatic\(parent, child, axis, motion, point\)` has its axis "
         r"before its point.*give `axis=` and `point=` by name"),
        (lambda: rj.Prismatic("a", "b", X, jnp.array(Z), np.sin), TypeError, "before its point"),
        (lambda: rj.Revolute("a", "b", Z), TypeError,
         r"`Revolute\(axis=...\)` is missing.*parent, child, point and then the direction"),
        (lambda: rj.Revolute("a", "b", Z, np.sin), TypeError,
         r"`Revolute\(axis=...\)` is a function, .*`Prismatic` has its axis before its point"),
        (lambda: rj.Revolute("a", "b", P, Z, "hinge"), TypeError,
         r"got 'hinge'\. Give a name by keyword, `name='hinge'`"),
        (lambda: rj.Prismatic("a", "b", Z, point=2.0), ValueError,
         r"`Prismatic\(point=...\)` must have shape \(3,\)"),
        (lambda: rj.Cylindrical("a", "b", P, P), ValueError,
         r"`Cylindrical\(axis=...\)` must not be zero"),
        (lambda: rj.Cylindrical("a", "b", (P, P), Z), ValueError,
         r"`Cylindrical\(point=...\)` must have shape \(3,\)"),
        (lambda: rj.Planar("a", "b", P, P), ValueError, r"`Planar\(normal=...\)` must not be zero"),
        (lambda: rj.Planar("a", "b", "here", Z), TypeError, r"`Planar\(point=...\)` must be real"),
        (lambda: rj.Universal("a", "b", P, P, Z), ValueError,
         r"`Universal\(axis1=...\)` must not be zero"),
        (lambda: rj.Universal("a", "b", P, X, P), ValueError,
         r"`Universal\(axis2=...\)` must not be zero"),
        (lambda: rj.Universal("a", "b", 0.0, X, Z), ValueError,
         r"`Universal\(point=...\)` must have shape \(3,\)"),
        (lambda: rj.Universal("a", "b", P, X, (1e-4, 0.0, 1.0)), ValueError,
         r"`Universal\(axis1=..., axis2=...\)` must be orthogonal .* subtract from one axis"),
        (lambda: rj.Screw("a", "b", P, P, 0.1), ValueError,
         r"`Screw\(axis=...\)` must not be zero"),
        (lambda: rj.Screw("a", "b", P, Z, (0.1,)), ValueError,
         r"`Screw\(pitch=...\)` must have shape \(\); got shape \(1,\)"),
        (lambda: rj.Screw("a", "b", P, Z, np.inf), ValueError,
         r"`Screw\(pitch=...\)` must be finite"),
        (lambda: rj.Screw("a", "b", (1.0,), Z, 0.1), ValueError,
         r"`Screw\(point=...\)` must have shape \(3,\)"),
        (lambda: rj.Weld("a", "b", (1.0,)), ValueError,
         r"`Weld\(point=...\)` must have shape \(3,\)"),
        (lambda: rj.Distance("a", "b", X, X), ValueError,
         r"must be two different points; for coinciding points use `Spherical`"),
        (lambda: rj.Distance("a", "b", 1.0, X), ValueError,
         r"`Distance\(parent_point=...\)` must have shape \(3,\)"),
        (lambda: rj.Distance("a", "b", X, (1.0, 2.0)), ValueError,
         r"`Distance\(child_point=...\)` must have shape \(3,\)"),
    ],
)  # fmt: skip
def test_invalid_joints_raise(build, error, match):
    with pytest.raises(error, match=match):
        build()


@pytest.mark.parametrize(
    ("build", "value", "match"),
    [
        (lambda axis: rj.Revolute("a", "b", P, axis).axis, P, "must not be zero"),
        (lambda axis: rj.Universal("a", "b", P, X, axis).axis2, (1.0, 0.0, 1.0), "orthogonal"),
        (lambda point: rj.Distance("a", "b", X, point).child_point, X, "two different points"),
    ],
)
def test_traced_values_are_checked_too(build, value, match):
    with pytest.raises(eqx.EquinoxRuntimeError, match=match):
        eqx.filter_jit(build)(jnp.array(value)).block_until_ready()
    good = jnp.array((0.0, 2.0, 1.0))
    assert np.array_equal(eqx.filter_jit(build)(good), good)


def test_valid_names_and_values_are_accepted():
    joint = rj.Revolute("arm", "hand", (0, 1, 2), [0, 0, 3])
    assert joint.name == "revolute arm-hand"
    assert joint.point.dtype == jnp.result_type(float)
    assert rj.Weld("ground", "arm", name="base").name == "base"
    arm = rj.Body("arm", 1.0, (1, 1, 1))
    for one in (rj.Weld("ground", "arm"), rj.Prismatic("ground", "arm", Z)):
        assert np.array_equal(rj.System(arm, [one]).joints[0].point, P)
    # The cosine of the angle of the axes, 5e-7, is within the tolerance; the frame is exact.
    frame = rj.Universal("a", "b", P, X, (5e-7, 0.0, 1.0)).frame()
    assert np.abs(frame.T @ frame - np.eye(3)).max() < 1e-15


@pytest.mark.parametrize("build", [rj.Revolute, rj.Prismatic])
def test_invalid_return_values_of_motions_raise(build):
    def joint(motion):
        points = (P,) if build is rj.Revolute else ()
        return build("a", "b", *points, Z, motion)

    at = cases.reference("Weld")
    for constant in (2, 2.0, jnp.array(2.0)):
        still = joint(lambda t, constant=constant: constant)
        assert np.array_equal(still.prescribed_twist(at, 0.0), np.zeros(6))
        assert float(still.constraint(at, 0.0)[-1]) == -2.0
        assert np.array_equal(still.constraint_rate(at, jnp.zeros(6), 0), np.zeros(6))
    with pytest.raises(ValueError, match=rf"`{build.__name__}\(motion=...\)` must return a number"):
        joint(lambda t: jnp.stack([t, t]))

"""Sherif's forms with the multiplier as unknown: equations of index 1, 2 and 3."""

from typing import get_args

import diffrax
import jax.numpy as jnp
import numpy as np
import pytest
from formulations import cases
from formulations.test_euler_parameters import form_terms, matrix_L

import rigidjax as rj
from rigidjax.formulations.euler_parameters import Form
from rigidjax.io.names import unknown_names

TENSOR = jnp.array(((3.0, 0.3, -0.2), (0.3, 2.5, 0.4), (-0.2, 0.4, 2.2)))
U, F = jnp.array([0.3, -0.2, 0.5]), jnp.array([2.0, -1.0, 1.5])


def one_body(form, index):
    force = rj.PointForce("body", U, F)
    return rj.EulerParameters(rj.System(rj.Body("body", 2.0, TENSOR), forces=force), form, index)


@pytest.fixture
def unknowns(rng):
    """Unit quaternion, tangent rate and a multiplier, and what they are in the unknowns."""
    p, p_dot, x = rng.normal(size=(3, 4))
    p = p / np.linalg.norm(p)
    p_dot, lam = p_dot - (p @ p_dot) * p, x[3]
    y = np.concatenate([x[:3], p, 2.0 * x[:3], p_dot, [lam]])
    return jnp.asarray(p), jnp.asarray(p_dot), lam, jnp.asarray(y)


@pytest.mark.parametrize("form", ["virtual-work", "no-multiplier"])
def test_equations_agree_with_the_paper(form, unknowns):
    """(23), (25), (29), (69), (82) in the paper's matrices, with (33) as the last equation."""
    p, p_dot, lam, y = unknowns
    model, t = one_body(form, 1), jnp.zeros(())
    y = y[: model.num_unknowns]
    A, b = model.mass_matrix(t, y), model.right_hand_side(t, y)
    np.testing.assert_allclose(rj.solvers.dae_term(model).product(t, y, b, None), A @ b, atol=1e-12)
    gyroscopic, load = form_terms(form, p, p_dot, U, F, TENSOR)
    L = matrix_L(p)
    M, right = 4 * L.T @ TENSOR @ L, load - gyroscopic
    np.testing.assert_allclose(A[:7, :7], np.eye(7), atol=0)
    np.testing.assert_allclose(b[:7], y[7:14], atol=0)
    if form == "no-multiplier":
        assert y.size == 14
        M = jnp.concatenate([L @ M, p[None]])
        right = jnp.append(L @ right, -p_dot @ p_dot)
        np.testing.assert_allclose(A[10:, 10:], M, atol=1e-13)
        np.testing.assert_allclose(b[10:], right, atol=1e-13)
        return
    np.testing.assert_allclose(A[10:14, 10:], jnp.append(M, jnp.zeros((4, 1)), 1), atol=1e-13)
    np.testing.assert_allclose(b[10:14], right - p * lam, atol=1e-13)
    np.testing.assert_allclose(A[14, 10:14], p, atol=1e-15)
    np.testing.assert_allclose(b[14], -p_dot @ p_dot, atol=1e-14)


def test_constraint_level_of_each_index(unknowns):
    """Index 2 and 3 replace the last equation by p . p' and (p . p - 1) / 2."""
    *_, y = unknowns
    y = y.at[3].add(0.1).at[11].add(0.2)
    p, p_dot, t = y[3:7], y[10:14], jnp.zeros(())
    for form, row in (("simplified-torque", 14), ("no-multiplier", 13)):
        for index, level in ((2, p @ p_dot), (3, 0.5 * (p @ p - 1.0))):
            model = one_body(form, index)
            own = y[: model.num_unknowns]
            np.testing.assert_allclose(model.right_hand_side(t, own)[row], level, rtol=1e-13)
            assert not np.any(model.mass_matrix(t, own)[row])
            assert model.indices[-1] == (index - 1 if form == "no-multiplier" else index)


def test_every_form_has_the_same_motion():
    """Each form solved with its own multiplier, in the paper's matrices; and the package's one."""
    top = cases.heavy_top()
    state = rj.State(orientation=(1.0, 0.0, 0.0, 0.0), angular_velocity=(0.3, -0.2, 3.0))
    inertia, weight = jnp.diag(top.inertia), top.potential.weight_moment
    u, f = jnp.array([0.0, 0.0, 1.0]), -weight * jnp.array([0.0, 0.0, 1.0])

    def p_ddot(form, p, p_dot):
        c, load = form_terms(form, p, p_dot, u, f, inertia)
        L = matrix_L(p)
        M, right = 4 * L.T @ inertia @ L, load - c
        if form == "no-multiplier":
            return jnp.linalg.solve(
                jnp.concatenate([L @ M, p[None]]), jnp.append(L @ right, -p_dot @ p_dot)
            )
        augmented = jnp.block([[M, p[:, None]], [p[None], jnp.zeros((1, 1))]])
        return jnp.linalg.solve(augmented, jnp.append(right, -p_dot @ p_dot))[:4]

    def field(t, y, args):
        p, p_dot = y[:, :4], y[:, 4:]
        rows = zip(get_args(Form), p, p_dot, strict=True)
        return jnp.concatenate([p_dot, jnp.stack([p_ddot(*row) for row in rows])], axis=1)

    model = rj.EulerParameters(top)
    start = jnp.tile(model.encode(state), (len(get_args(Form)), 1))
    motions = diffrax.diffeqsolve(
        diffrax.ODETerm(field), diffrax.Dopri5(), 0.0, 1.0, None, start,
        stepsize_controller=diffrax.PIDController(rtol=1e-10, atol=1e-10),
        saveat=diffrax.SaveAt(t1=True),
    ).ys[0]  # fmt: skip
    end = rj.simulate(model, state, 1.0, solver=diffrax.Dopri5(), rtol=1e-10, atol=1e-10).ys[-1]
    assert cases.error(end, start[0]) > 0.1
    for motion in motions:
        assert cases.error(motion, end) < 1e-8


def test_invalid_arguments_raise():
    top = rj.FixedPointBody((1.0, 2.0, 2.5))
    with pytest.raises(ValueError, match=r"`EulerParameters\(index=...\)` must be 0, 1, 2 or 3"):
        rj.EulerParameters(top, index=4)
    model = rj.EulerParameters(top, index=2)
    with pytest.raises(ValueError, match=r"`EulerParameters\(index=2\)` is a differential-alg"):
        model.vector_field(jnp.zeros(()), jnp.zeros(9))
    state0 = rj.State(orientation=[[1.0, 0, 0, 0]], angular_velocity=[[1.0, 0, 0]])
    with pytest.raises(ValueError, match=r"`Dopri8` does not integrate"):
        rj.simulate(model, state0, 1.0)
    assert unknown_names(model)[-1] == "lambda1"
    assert unknown_names(rj.EulerParameters(top, "no-multiplier", 2))[-1] == "w4"

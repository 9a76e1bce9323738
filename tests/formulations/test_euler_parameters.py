"""Sherif's forms, against explicit matrices of the paper."""

from typing import get_args

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from formulations import cases

import rigidjax as rj
from rigidjax.formulations.euler_parameters import Form
from rigidjax.rotations import so3

FORMS = get_args(Form)
J = jnp.array(cases.TENSOR)


def tilde(v):
    return jnp.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])


def matrix_G(p):
    """Sherif (8)."""
    return jnp.concatenate([-p[1:, None], tilde(p[1:]) + p[0] * jnp.eye(3)], axis=1)


def matrix_L(p):
    """Sherif (9)."""
    return jnp.concatenate([-p[1:, None], -tilde(p[1:]) + p[0] * jnp.eye(3)], axis=1)


def matrix_H(u):
    """Sherif (67)."""
    return jnp.block([[jnp.zeros((1, 1)), -u[None, :]], [u[:, None], -tilde(u)]])


def matrix_A(p):
    """Sherif (5)."""
    e = p[1:]
    return (2 * p[0] ** 2 - 1) * jnp.eye(3) + 2 * (jnp.outer(e, e) + p[0] * tilde(e))


@pytest.fixture(scope="module")
def samples():
    """Unit quaternions, tangent rates, points and forces."""
    rng = np.random.default_rng(1)
    p = rng.normal(size=(50, 4))
    p /= np.linalg.norm(p, axis=1, keepdims=True)
    p_dot = rng.normal(size=(50, 4))
    p_dot -= np.sum(p * p_dot, axis=1, keepdims=True) * p
    return tuple(map(jnp.asarray, (p, p_dot, rng.normal(size=(50, 3)), rng.normal(size=(50, 3)))))


def errors(function, samples) -> dict[str, float]:
    pairs = jax.jit(jax.vmap(function))(*samples)
    return {key: float(jnp.max(jax.vmap(cases.error)(*sides))) for key, sides in pairs.items()}


def test_equations_of_the_paper(samples):
    def equations(p, p_dot, u, f):
        G, L, H, A = matrix_G(p), matrix_L(p), matrix_H(u), matrix_A(p)
        L_dot = matrix_L(p_dot)
        n = tilde(u) @ A.T @ f
        omega = 2 * L @ p_dot
        c1 = 8 * L.T @ L @ L_dot.T @ J @ L @ p_dot
        c2 = 8 * L_dot.T @ J @ L @ p_dot
        augmented = jnp.block([[4 * L.T @ J @ L, p[:, None]], [p[None, :], jnp.zeros((1, 1))]])
        inverse = jnp.block(
            [[L.T @ jnp.linalg.inv(J) @ L / 4, p[:, None]], [p[None, :], jnp.zeros((1, 1))]]
        )

        def solve(load):
            return jnp.linalg.solve(augmented, jnp.append(load, -p_dot @ p_dot))

        def solve_accelerations(moment, lam):
            p_ddot = L.T @ jnp.linalg.inv(J) @ (-2 * L @ L_dot.T @ J @ L @ p_dot + moment / 2)
            return jnp.append(p_ddot - p * (p_dot @ p_dot), lam)

        A_dot = jax.jvp(matrix_A, (p,), (p_dot,))[1]
        B1, B2 = -2 * A @ tilde(u) @ L, jax.jacfwd(lambda p: matrix_A(p) @ u)(p)
        return {
            "(7)": (G @ L.T, A),
            "(16)": (2 * L @ L_dot.T, A.T @ A_dot),
            "(17)": (tilde(omega), A.T @ A_dot),
            "(34), (37), (38)": (solve(-c1 + 2 * L.T @ n), solve_accelerations(n, 0.0)),
            "(35)": (augmented @ inverse, jnp.eye(5)),
            "(39), (40)": (
                solve(-c2 + 2 * L.T @ n),
                solve_accelerations(n, -8 * p @ L_dot.T @ J @ L @ p_dot),
            ),
            "(68)": (B2, 2 * G @ H + 2 * jnp.outer(u, p)),
            "(69)": (B2.T @ f, 2 * H.T @ G.T @ f + 2 * p * (u @ f)),
            "(72)": (L @ H, -tilde(u) @ L + jnp.outer(u, p)),
            "(74)": (B1, 2 * G @ H - 2 * G @ L.T @ jnp.outer(u, p)),
            "(75)": (B1.T @ f, 2 * H.T @ G.T @ f - 2 * p * (u @ L @ G.T @ f)),
            "(84)": (
                solve(-c1 + 2 * H.T @ G.T @ f),
                solve_accelerations(L @ H.T @ G.T @ f, 2 * p @ H.T @ G.T @ f),
            ),
            "(82) in the dyad of forces": (H.T @ G.T @ f, p * (u @ A.T @ f) + L.T @ n),
        }

    # A solve with the inertia, whose condition number is 2.
    assert np.max(list(errors(equations, samples).values())) < 1e-13


def form_terms(form, p, p_dot, u, f, J=J):
    """Quadratic terms and generalized force of a form of the equations, in the paper's matrices."""
    G, L, H, A = matrix_G(p), matrix_L(p), matrix_H(u), matrix_A(p)
    L_dot = matrix_L(p_dot)
    gyroscopic = 8 * L.T @ L @ L_dot.T @ J @ L @ p_dot
    force = 2 * L.T @ tilde(u) @ A.T @ f
    if form == "simplified-gyroscopic":
        gyroscopic = 8 * L_dot.T @ J @ L @ p_dot
    elif form == "simplified-torque":
        force = 2 * H.T @ G.T @ f
    elif form == "virtual-work":
        force = jax.jacfwd(lambda p: matrix_A(p) @ u)(p).T @ f
    return gyroscopic, force


@pytest.mark.parametrize("form", FORMS)
def test_multipliers_reproduce_the_equations_of_the_form(form, samples):
    def balance(p, p_dot, u, f):
        force = rj.PointForce("top", u, f)
        model = rj.EulerParameters(rj.System(rj.Body("top", 1.0, J), forces=force), form)
        y = jnp.concatenate([jnp.zeros(3), p, jnp.zeros(3), p_dot])
        p_ddot = model.vector_field(jnp.zeros(()), y)[10:]
        lam = model.multipliers(jnp.zeros(()), y)
        gyroscopic, load = form_terms(form, p, p_dot, u, f)
        L = matrix_L(p)
        left = 4 * L.T @ J @ L @ p_ddot + gyroscopic
        if form == "no-multiplier":
            assert lam.shape == (0,)
            return {"(25)": (L @ left, L @ load), "(33)": (p @ p_ddot, -p_dot @ p_dot)}
        return {"equations": (left + p * lam, load), "(33)": (p @ p_ddot, -p_dot @ p_dot)}

    assert np.max(list(errors(balance, samples).values())) < 1e-13


def multipliers_of_all_forms(system, state):
    @jax.jit
    def evaluate(t, state):
        models = [rj.EulerParameters(system, form) for form in FORMS]
        lang = rj.Absolute(system)
        return [model.multipliers(t, model.encode(state)) for model in models], lang.multipliers(
            t, lang.encode(state)
        )

    values, lang = evaluate(jnp.array(0.3), state)
    return dict(zip(FORMS, values, strict=True)), lang


def test_multipliers_of_several_bodies():
    system = cases.two_bodies()
    state = jax.tree.map(lambda x: x[0], cases.random_states(np.random.default_rng(2), system, 1))
    values, lang = multipliers_of_all_forms(system, state)
    assert [value.shape for value in values.values()] == [(2,), (0,), (2,), (2,), (2,)]
    # Lang's quaternion equations simplify both the gyroscopic moment and the torque.
    both = values["simplified-gyroscopic"] + values["simplified-torque"]
    assert cases.error(both, lang) < 1e-13


def test_pure_moment_counts_as_a_couple_of_forces():
    arm, force = np.array([0.3, -0.2, 0.5]), np.array([0.4, 1.0, -0.7])
    # The dyads of the two pairs are transposes of each other but for their sign.
    couple = [
        rj.PointForce("top", 0.5 * arm, force, "body"),
        rj.PointForce("top", -0.5 * arm, -force, "body"),
        rj.PointForce("top", 0.5 * force, -arm, "body"),
        rj.PointForce("top", -0.5 * force, arm, "body"),
    ]
    moment = rj.Torque("top", 2.0 * np.cross(arm, force))
    state = jax.tree.map(
        lambda x: x[0], cases.random_states(np.random.default_rng(3), cases.two_bodies(), 1)
    )
    state = jax.tree.map(lambda x: x[:1], state)
    body = rj.Body("top", 1.0, J)
    (first, _), (second, _) = (
        multipliers_of_all_forms(rj.System(body, forces=forces), state)
        for forces in (couple, moment)
    )
    assert abs(float(second["virtual-work"][0])) > 0.1
    for form in FORMS:
        assert cases.error(first[form], second[form]) < 1e-14


def test_multipliers_are_differentiable_at_rest():
    """First and second derivatives are finite for zero moment arm and rates."""
    top = cases.loaded_top()
    y = jnp.concatenate([so3.exp_quaternion(jnp.zeros(3)), jnp.zeros(4)])

    def all_multipliers(y):
        models = (rj.EulerParameters(top, form) for form in FORMS)
        return jnp.concatenate([model.multipliers(jnp.zeros(()), y) for model in models])

    hessian = jax.jit(jax.jacfwd(jax.jacrev(all_multipliers)))(y)
    assert hessian.shape == (4, 8, 8)
    assert np.all(np.isfinite(hessian))


def test_unknown_form_raises():
    with pytest.raises(ValueError, match=r'`EulerParameters\(form=...\)` must be one of "zero-m'):
        rj.EulerParameters(cases.heavy_top(), "23")
    with pytest.raises(TypeError, match="takes a `System` or a `FixedPointBody`"):
        rj.EulerParameters(3)

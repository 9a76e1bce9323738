"""Problems with known solutions, and short ways to solve them."""

import diffrax
import equinox as eqx
import jax.numpy as jnp
import numpy as np
import optimistix as optx

from rigidjax.solvers import ImplicitTerm, MassMatrixTerm, SimplifiedNewton
from rigidjax.solvers.counting import CountingController, CountingSolver

GRAVITY = 9.81


def solve(solver, term, y0, t1, rtol, atol, **kwargs):
    """End of a run, its steps and evaluations, with the solver's own controller."""
    return _solve(solver, term, y0, t1, jnp.asarray(rtol), jnp.asarray(atol), kwargs)


@eqx.filter_jit
def _solve(solver, term, y0, t1, rtol, atol, kwargs):
    finder = eqx.tree_at(
        lambda f: (f.rtol, f.atol, f.norm), solver.root_finder, (rtol, atol, optx.rms_norm)
    )
    solver = eqx.tree_at(lambda s: s.root_finder, solver, finder)
    controller = CountingController(solver.controller(rtol, atol, optx.rms_norm))
    settings = dict(
        max_steps=20_000, throw=False, adjoint=diffrax.ForwardMode(),
        saveat=diffrax.SaveAt(t1=True, controller_state=True),
    )  # fmt: skip
    solution = diffrax.diffeqsolve(
        term, CountingSolver(solver), 0.0, t1, None, y0, stepsize_controller=controller,
        **{**settings, **kwargs},
    )  # fmt: skip
    return solution, solution.controller_state[1]


def with_tolerance(solver, tolerance):
    """The solver with tolerances of its own, for fixed steps."""
    finder = SimplifiedNewton(rtol=tolerance, atol=tolerance, max_steps=20)
    return eqx.tree_at(lambda s: s.root_finder, solver, finder)


# With solutions in closed form.


def decay(t, y, args):
    return -t * y * y


def decay_solution(t):
    return (2.0 / (1.0 + t * t))[..., None]


def turning(t, y, args):
    rate = (1.0 + 0.5 * jnp.cos(t)) * jnp.sum(y * y)
    return rate * jnp.stack([-y[1], y[0]])


def turning_solution(t):
    angle = t + 0.5 * jnp.sin(t)
    return jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=-1)


SMOOTH = {"decay": (decay, decay_solution), "turning": (turning, turning_solution)}


# Stiff; ends by SciPy's Radau at rtol 1e-12.


def van_der_pol(t, y, mu):
    return jnp.stack([y[1], mu * (1.0 - y[0] ** 2) * y[1] - y[0]])


def robertson(t, y, args):
    a, b, c = 0.04 * y[0], 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
    return jnp.stack([-a + b, a - b - c, c])


def hires(t, y, args):
    y1, y2, y3, y4, y5, y6, y7, y8 = y
    return jnp.stack(
        [
            -1.71 * y1 + 0.43 * y2 + 8.32 * y3 + 0.0007,
            1.71 * y1 - 8.75 * y2,
            -10.03 * y3 + 0.43 * y4 + 0.035 * y5,
            8.32 * y2 + 1.71 * y3 - 1.12 * y4,
            -1.745 * y5 + 0.43 * y6 + 0.43 * y7,
            -280 * y6 * y8 + 0.69 * y4 + 1.71 * y5 - 0.43 * y6 + 0.69 * y7,
            280 * y6 * y8 - 1.81 * y7,
            -280 * y6 * y8 + 1.81 * y7,
        ]
    )


HIRES_START = np.array([1.0, 0, 0, 0, 0, 0, 0, 0.0057])

ROBERTSON_END = np.array([0.10730042853796966, 4.800166972579936e-07, 0.8926990914453344])

# Right-hand side, start, end time, absolute tolerance as a part of the relative one, and the end.
STIFF = {
    "van der Pol": (
        van_der_pol, np.array([2.0, 0.0]), 2000.0, 1e-2,
        np.array([1.7061677321704736, -0.0008928097010248073]),
    ),
    "Robertson": (robertson, np.array([1.0, 0.0, 0.0]), 1e4, 1e-4, ROBERTSON_END),
    "HIRES": (
        hires, HIRES_START, 321.8122, 1e-2,
        np.array([
            0.000737131257332532, 0.00014424857263161162, 5.8887297409669355e-05,
            0.001175651343283084, 0.0023863561988303125, 0.006238968252739652,
            0.0028499983951850326, 0.0028500016048149694,
        ]),
    ),
}  # fmt: skip


# Differential-algebraic.


def robertson_dae():
    def f(t, y, args):
        rates = robertson(t, y, args)
        return jnp.stack([rates[0], rates[1], jnp.sum(y) - 1.0])

    return MassMatrixTerm(f, np.diag([1.0, 1.0, 0.0]))


def robertson_implicit():
    def F(t, y, y_dot, args):
        rates = robertson(t, y, args)
        return jnp.stack([y_dot[0] - rates[0], y_dot[1] - rates[1], jnp.sum(y) - 1.0])

    return ImplicitTerm(F)


def pendulum(index):
    """A point mass on a massless link of 1 m; y = (x, z, x', z', lambda)."""

    def f(t, y, args):
        x, z, u, w, lam = y
        level = {
            3: lambda: x * x + z * z - 1.0,
            2: lambda: x * u + z * w,
            1: lambda: u * u + w * w - 2.0 * lam * (x * x + z * z) - GRAVITY * z,
        }[index]()
        return jnp.stack([u, w, -2.0 * x * lam, -2.0 * z * lam - GRAVITY, level])

    indices = {1: None, 2: (1, 1, 1, 1, 2), 3: (1, 1, 2, 2, 3)}[index]
    return MassMatrixTerm(f, np.diag([1.0, 1.0, 1.0, 1.0, 0.0]), indices)


PENDULUM_START = np.array([1.0, 0.0, 0.0, 0.0, 0.0])
# At t = 3, from the equation of the angle, DOP853 at rtol 1e-13.
PENDULUM_END = np.array(
    [-0.17665178992281566, -0.9842734097378967, -4.325368674538757, 0.7762925533433003,
     14.483583224293097]
)  # fmt: skip


def car_axis():
    """The car axis of the IVP test set, index 3."""
    L, L0, M, eps, gravity = 1.0, 0.5, 10.0, 1e-2, 1.0
    half = M * eps**2 / 2

    def f(t, y, args):
        xl, yl, xr, yr, ul, vl, ur, vr, l1, l2 = y
        yb = 0.1 * jnp.sin(10.0 * t)
        xb = jnp.sqrt(L * L - yb * yb)
        left = jnp.sqrt(xl**2 + yl**2)
        right = jnp.sqrt((xr - xb) ** 2 + (yr - yb) ** 2)
        a, b = (L0 - left) / left, (L0 - right) / right
        dx, dy = xl - xr, yl - yr
        return jnp.stack(
            [
                ul, vl, ur, vr,
                a * xl + l1 * xb + 2 * l2 * dx,
                a * yl + l1 * yb + 2 * l2 * dy - half * gravity,
                b * (xr - xb) - 2 * l2 * dx,
                b * (yr - yb) - 2 * l2 * dy - half * gravity,
                xb * xl + yb * yl,
                dx**2 + dy**2 - L * L,
            ]
        )  # fmt: skip

    mass = np.diag([1.0] * 4 + [half] * 4 + [0.0] * 2)
    return MassMatrixTerm(f, mass, (1,) * 4 + (2,) * 4 + (3,) * 2)


CAR_AXIS_START = np.array([0, 0.5, 1, 0.5, -0.5, 0, -0.5, 0, 0, 0])
# Test Set for IVP Solvers (GAMD, quadruple precision), t = 3.
CAR_AXIS_END = np.array(
    [
        0.04934557842754028, 0.49698946023017115, 1.0417425248854215, 0.37391102726536124,
        -0.07705836840409723, 0.007446866587237785, 0.017556815753723223, 0.7703410437792519,
        -0.004736886590848933, -0.0011046803312573436,
    ]
)  # fmt: skip

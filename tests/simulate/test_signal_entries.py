"""Entries of one table as laws of several motors: values, steps, searches, inputs of runs."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj
from rigidjax.identification.experiment.inputs import insert_tables, make_tables
from rigidjax.signals.shared_tables import freeze_signals, table_signals
from rigidjax.signals.signal import signals_of

N, K = 3, 9
TS = np.linspace(0.0, 1.0, K)
VALUES = np.random.default_rng(3).normal(size=(K, N))


def chain(laws):
    """Rods on a chain of hinges, with a motor on each hinge."""
    rods, joints = [], []
    for k in range(len(laws)):
        rods.append(rj.Body.rod(f"rod{k}", 1.0, mass=1.0, position=(0, 0, -0.5 - k)))
        parent = "ground" if k == 0 else f"rod{k - 1}"
        joints.append(rj.Revolute(parent, f"rod{k}", (0, 0, -k), (0, 1, 0), name=f"hinge{k}"))
    motors = [rj.Motor(f"hinge{k}", law) for k, law in enumerate(laws)]
    return rj.System(rods, joints, [rj.Gravity((0, 0, -9.81)), *motors])


def separate(values, kind="linear"):
    return [rj.Signal(TS, values[:, k], kind) for k in range(N)]


@eqx.filter_jit
def end_and_steps(system):
    start, options = system.reference_state(), {"rtol": 1e-8, "atol": 1e-8}
    run = rj.simulate(rj.Relative(system), start, 0.95, solver=diffrax.Dopri5(), **options)
    return run.states.position[-1], run.stats["num_steps"]


def count_lookups(tree):
    """Return the number of reads of tables in the jaxpr of the polynomials of all signals."""
    jaxpr = jax.make_jaxpr(lambda tree, t: jax.tree.leaves(freeze_signals(tree, t)))(tree, 0.3)
    return str(jaxpr).count("dynamic_slice")


@pytest.mark.parametrize("kind", ["linear", "hold", "cubic"])
def test_entries_are_the_columns_of_a_table(kind):
    bias = np.arange(1.0, N + 1)
    table = rj.Signal(TS, VALUES, kind, gain=2.0, bias=bias, name="torques")
    assert len(list(table)) == N and table[-1].entry == (N - 1, N) and table[1].name == "torques"
    for t in (0.0, 0.3, 1.0):
        np.testing.assert_array_equal([table[k](t) for k in range(N)], table(t))
    assert table[2].ts is table.ts


def test_motors_on_one_table():
    """Runs and steps are those of separate signals, but the table counts once."""
    system, by_columns = chain([*rj.Signal(TS, VALUES, "hold")]), chain(separate(VALUES, "hold"))
    assert len(signals_of(system)) == N and len(table_signals(system)) == 1
    assert len(table_signals(by_columns)) == N
    (end, steps), (expected, others) = map(end_and_steps, (system, by_columns))
    np.testing.assert_allclose(end, expected, rtol=0, atol=1e-12)
    assert steps == others


def test_a_shared_table_is_searched_once():
    per_entry = 5  # two samples, their times, and the time at which the polynomial starts
    single = count_lookups(chain([rj.Signal(TS, VALUES[:, 0])]))
    assert count_lookups(chain([*rj.Signal(TS, VALUES)])) == single + (N - 1) * per_entry
    assert count_lookups(chain(separate(VALUES))) == N * single
    # The numbers of tables are those of the system: another one with equal tables compiles nothing.
    systems = [chain([*rj.Signal(TS, x)]) for x in (VALUES, 2.0 * VALUES)]
    assert jax.tree.structure(systems[0]) == jax.tree.structure(systems[1])


def test_inputs_of_a_run_replace_the_whole_table():
    table = rj.Signal(TS, VALUES, "cubic", name="torques")
    system = chain([*table])
    tables = make_tables(system, [{"torques": (2.0 * TS, 3.0 * VALUES)}])
    first = jax.tree.map(lambda x: x[0], tables)
    found = insert_tables(system, first)
    wanted = rj.Signal(2.0 * TS, 3.0 * VALUES, "cubic")
    for k, motor in enumerate(found.forces[1:]):
        np.testing.assert_allclose(motor.torque(0.7), wanted[k](0.7), rtol=1e-14)
    with pytest.raises(ValueError, match=r"values of 'torques' must have shape \(K, 3\), as in"):
        make_tables(system, [{"torques": (TS, VALUES[:, 0])}])


def test_entries_with_other_times_raise():
    system = chain([*rj.Signal(TS, VALUES)])
    moved = eqx.tree_at(lambda s: s.forces[2].torque.ts, system, 1.5 * jnp.asarray(TS))
    with pytest.raises(ValueError, match="Entries of a Signal share the times of its table"):
        rj.simulate(rj.Relative(moved), moved.reference_state(), 0.5, solver=diffrax.Dopri5())
    with pytest.raises(Exception, match="Entries of a Signal share the times of its table"):
        end_and_steps(moved)


def test_invalid_entries_raise():
    table = rj.Signal(TS, VALUES)
    with pytest.raises(IndexError, match=r"signal\[3\]`: the Signal has 3 entries"):
        table[3]
    with pytest.raises(TypeError, match="entry of a Signal is an integer"):
        table["a"]  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match=r"Only a Signal with values of shape \(K, n\)"):
        table[0][0]
    with pytest.raises(ValueError, match=r"must return a scalar; got shape \(3,\)"):
        rj.Motor("hinge0", table)

"""Ten seconds of the fuzzer with fixed seeds, and that it finds what it is made for.

`make fuzz SECONDS=3600` goes on with new seeds; see CONTRIBUTING.md.
"""

import pathlib
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fuzz import (
    control,
    elementwise,
    generate,
    jaxprs,
    rounding,
    run,
    shrink,
    system_checks,
    systems,
)
from fuzz.blocks import Block, Line, Type, source
from fuzz.generate import Case, write
from fuzz.writer import Writer
from rigidjax.native.primitives.expansions import EXPANSIONS
from rigidjax.native.primitives.registry import RULES

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Names of other versions of JAX, of what only its transformations make, and of other packages.
NOT_WRITTEN = {
    "add_any", "call_hi_primitive", "closed_call", "composite", "copy_p", "core_call",
    "create_token", "custom_lin", "custom_vjp_call", "custom_vjp_call_jaxpr", "device_put", "empty",
    "empty2", "eq_to", "eval_jaxpr", "for_each", "householder_product", "le_to", "log2", "lt_to",
    "name", "noinline", "nonbatchable", "nondifferentiable", "nondifferentiable_backward",
    "one_minus_square", "pjit", "polynomial", "positive_solve", "psum", "remat", "remat2",
    "scatter-sub", "scatter-update", "scatter_add", "scatter_max", "scatter_min", "scatter_mul",
    "scatter_sub", "select_if_vmap", "shared_call", "symmetric_product", "unvmap_all", "unvmap_any",
    "unvmap_max", "platform_index", "clz", "expand_dims", "tile", "checkpoint", "custom_vmap_call",
    "lu_pivots_to_permutation", "native_forward",
}  # fmt: skip


@pytest.mark.parametrize("seed", [9, 12, 22, 30, 36, 179604667627, 179604667656])
def test_random_jaxprs_agree_with_xla(seed):
    found = run.run_seed("jaxpr", seed, None, 0.0)
    assert "failure" not in found, found


@pytest.mark.exhaustive("0")
@pytest.mark.parametrize("seed", [0, 34])
def test_random_systems_agree(seed):
    found = run.run_seed("system", seed, None, 0.0)
    assert "failure" not in found, found


@pytest.mark.exhaustive
def test_every_primitive_with_a_rule_is_generated():
    inputs = [Type((), "int64"), Type((), "bool"), Type((3, 3), "float64"), Type((4,), "float64")]
    inputs += [Type((5,), "complex128"), Type((3, 3), "complex128"), Type((7,), "int32")]
    missing = {name.removeprefix("complex ") for name in {*RULES, *EXPANSIONS}} - NOT_WRITTEN
    for seed in range(400):
        w = Writer(np.random.default_rng(seed), inputs, 1, reverse=False)
        for operation in [*generate.FLAT, *control.OPERATIONS]:
            write(w, operation)
        missing -= w.primitives
        if not missing:
            break
    assert missing == set()


def test_generated_operations_are_valid_jax():
    """Nearly all: else a mistake in one of them would leave it out of every function."""
    inputs = [Type((), "int64"), Type((), "bool"), Type((3, 3), "float64"), Type((4,), "float32")]
    inputs += [Type((5,), "complex128"), Type((12, 3), "float64"), Type((7,), "int32")]
    refused, written = [], 0
    for seed in range(6):
        w = Writer(np.random.default_rng(seed), inputs, 0, reverse=False)
        written += sum(write(w, operation) for operation in generate.FLAT)
        refused += w.refused
    assert written > 150
    assert len(refused) < 0.03 * written, refused


def test_faulty_rule_is_detected_and_shrunk(monkeypatch, tmp_path):
    """A hyperbolic tangent with an error of 1e-12, in the middle of other lines."""
    right = EXPANSIONS["tanh"]
    monkeypatch.setitem(EXPANSIONS, "tanh", lambda x, **rest: right(x, **rest) * (1 + 1e-12))
    # Kernels of this test stay out of the folder of the others.
    monkeypatch.setenv("RIGIDJAX_KERNEL_CACHE", "off")
    x = Type((11,), "float64")
    lines = (
        Line("{0} * {0}", (0,), (x,), 1.0),
        Line("{0} + {1}", (0, 1), (x,), 1.0),
        Line("jnp.tanh({0})", (2,), (x,), 8.0),
        Line("jnp.flip({0})", (3,), (x,)),
    )
    argument = np.linspace(0.1, 1.0, 33).reshape(3, 11)
    case = Case(Block((x,), lines, (1, 4)), (argument,), (True,), 3)
    failure = jaxprs.check(case, forms=("batch",)).failure
    assert failure is not None
    assert (failure.kind, failure.output) == ("value", 1)
    small = shrink.shrink(case, failure, 0, 60.0)
    assert "tanh" in source(small.block)
    assert (len(small.block.lines), small.batch) == (1, 0)
    program = tmp_path / "found.py"
    program.write_text(shrink.standalone(small, failure, 0))
    # Without the wrong rule it finds nothing.
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "kernel:" in done.stdout


def test_results_that_xla_computes_wrongly_are_undecided():
    """XLA's cosine is infinite before it overflows; the kernel's is right."""
    x = Type((2,), "complex128")
    line = Line(
        "jnp.cos({0})", (0,), (x,), 8.0, doubt=elementwise.DOUBTS["jnp.cos"].format(x="{0}")
    )
    argument = np.array([[0.5 + 710.1j, 0.5 + 1j]])
    case = Case(Block((x,), (line,), (1,)), (argument,), (True,), 1)
    outcome = jaxprs.check(case, forms=("batch",))
    assert (outcome.elements, outcome.undecided, outcome.failure) == (2, 1, None)
    without_doubt = Block((x,), (line._replace(doubt=""),), (1,))
    assert jaxprs.check(case._replace(block=without_doubt), forms=("batch",)).failure is not None


def test_extents_beyond_the_range_of_an_index_type():
    """A function that takes from an axis of 300 with indices of 8 bits."""
    case, _ = generate.random_case(179572023611)
    assert case.block.lines


def test_rounding_differences_are_no_failures():
    """A sum that cancels: off by more than its last places, and yet right."""
    exact = np.array([1.0, 2.0, -3.0 + 1e-12])

    def cancelling(x):
        return jnp.sum(rounding.near(x, 1))

    reference = jax.jit(rounding.with_errors(cancelling))
    (drawn,) = rounding.draws(reference, (exact,), rounding.DRAWS, 0)
    expected = drawn[0]
    assert not rounding.compare(expected + 4e-16, drawn).wrong.any()
    assert rounding.compare(expected + 4e-14, drawn).wrong.all()


@pytest.mark.parametrize(
    ("actual", "undecided", "wrong"),
    [(1.0, 0, False), (np.nan, 0, True), (np.inf, 0, True), (1.0 + 1e-12, 0, True)],
)
def test_special_values_are_compared(actual, undecided, wrong):
    verdict = rounding.compare(np.array([actual]), np.ones((7, 1)))
    assert verdict.undecided == undecided
    assert verdict.wrong[0] == wrong


def test_decisions_between_equal_values_are_undecided():
    drawn = np.array([[3, 1], [3, 2], [3, 1]])
    verdict = rounding.compare(np.array([3, 2]), drawn)
    assert verdict.undecided == 1
    assert not verdict.wrong.any()
    assert rounding.compare(np.array([4, 2]), drawn).wrong.tolist() == [True, False]


def test_values_without_a_correct_digit_may_be_zero():
    """And what divides by them not finite, which a value of some digits may not be."""
    no_digit, digits = np.array([[1.0], [-2.0], [1.5]]), np.array([[1.0], [1.001], [0.999]])
    assert not rounding.compare(np.array([np.nan]), no_digit).wrong.any()
    assert rounding.compare(np.array([np.nan]), digits).wrong.all()
    assert rounding.compare(np.array([np.nan]), np.zeros((3, 1))).wrong.all()


def test_comparison_of_systems_names_the_difference():
    comparison = system_checks.Comparison(
        "height", np.array([1.0, 2.0]), np.array([1.0, 2.1]), 0.01
    )
    assert comparison.failure().startswith("height[1]: np.float64(2.0), expected np.float64(2.1)")
    assert comparison._replace(allowed=0.2).failure() == ""


def test_shrinking_removes_bodies_and_their_dependents():
    description = next(
        d for d in map(systems.random_description, range(99)) if len(d.tree) > 2 and d.loops
    )
    smaller = systems.without(description, "bodies", 0)
    assert "b0" not in smaller.code()
    assert len(smaller.bodies) == len(description.bodies) - 1


def test_generated_systems_contain_all_constraints():
    """A coupling goes with each of its joints."""
    descriptions = [systems.random_description(seed) for seed in range(200)]
    found = {p.code.split("(")[0] for d in descriptions for p in d.loops}
    assert found >= {"rj.Coupling", "rj.Constraint", "rj.VelocityConstraint", "rj.Distance"}
    coupled = next(d for d in descriptions if any(p.joints for p in d.loops))
    joints = next(p.joints for p in coupled.loops if p.joints)
    for k, name in enumerate(coupled.bodies):
        kept = any(p.joints for p in systems.without(coupled, "bodies", k).loops)
        own = [p for p in coupled.tree if name in p.bodies]
        assert kept == (not any(f"name='{joint}'" in p.code for joint in joints for p in own))


def test_command_prints_counts(tmp_path):
    """One second of it: no failure, exit code 0, and counts."""
    command = [sys.executable, "-m", "tests.fuzz", "--seconds", "1", "--kind", "jaxpr"]
    done = subprocess.run(
        [*command, "--first", "1", "--out", str(tmp_path)], capture_output=True, text=True,
        check=False, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "failures: 0" in done.stdout

"""Cache keys of jaxprs, by which their kernels are found on disk."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import Primitive

from rigidjax.native.runtime.cache_key import compute_cache_key
from rigidjax.native.runtime.kernel import Kernel, Signature

from .. import rule_cases

X = np.array([1.0, 2.0, 4.0])


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("RIGIDJAX_KERNEL_CACHE", str(tmp_path))


def name(function, *args, signature=None):
    return compute_cache_key(jax.make_jaxpr(function)(*args), signature)


def make_scaling(factor, axis=0):
    inner = jax.jit(lambda x: factor * jnp.cumsum(x, axis=axis))

    def function(x):
        return jax.lax.fori_loop(0, 3, lambda _, y: inner(y) + x, x)

    return function


def test_retraced_jaxpr_has_the_same_key():
    assert name(make_scaling(2.0), X) == name(make_scaling(2.0), X)
    assert name(make_scaling(X), X) == name(make_scaling(X + 0.0), X)


def test_any_difference_changes_the_key():
    square = np.ones((3, 3))
    names = [
        name(make_scaling(2.0), X),
        name(make_scaling(np.nextafter(2.0, 3.0)), X),
        name(make_scaling(X), X),
        name(make_scaling(X + 1e-15), X),
        name(make_scaling(2.0), X[:2]),
        name(make_scaling(2.0), X.astype(np.float32)),
        name(make_scaling(2.0), square),
        name(make_scaling(2.0, axis=1), square),
        name(lambda x, y: x - y, X, X),
        name(lambda x, y: y - x, X, X),
        name(lambda x, y: (x - y, x), X, X),
        name(lambda x, y: (x, x - y), X, X),
        name(lambda x: x + 0.0, X),
        name(lambda x: x + -0.0, X),
        name(lambda x: x + jnp.float64(0.0), 1.0),
        name(lambda x: x + 0.0, 1.0),
        name(make_scaling(2.0), X, signature=Signature((True,), True)),
        name(make_scaling(2.0), X, signature=Signature((False,), False)),
        name(make_scaling(2.0), X, signature=Signature((False,), False, run_once=True)),
    ]
    assert None not in names
    assert len(set(names)) == len(names)


def test_equal_keys_imply_equal_text():
    """Keys of the functions in the tests of rules."""
    signature, texts = Signature((False, False), False), {}
    for function in rule_cases.ARITHMETIC.values():
        closed = jax.make_jaxpr(function)(rule_cases.X, rule_cases.Y)
        texts.setdefault(compute_cache_key(closed, signature), set()).add(
            Kernel(closed, signature).text
        )
    assert None not in texts
    assert all(len(of_one) == 1 for of_one in texts.values())
    assert not any(a & b for a, b in itertools.combinations(texts.values(), 2))


def test_settings_are_part_of_the_key(monkeypatch):
    before = name(make_scaling(2.0), X)
    monkeypatch.setenv("RIGIDJAX_KERNEL_THREADS", "1")
    assert name(make_scaling(2.0), X) != before


def test_foreign_functions_and_objects_have_no_key(monkeypatch):
    own = Primitive("of a user")
    own.def_impl(lambda x, **_: x * 2.0)
    own.def_abstract_eval(lambda x, **_: x)
    assert name(lambda x: own.bind(x), X) is None
    assert name(lambda x: own.bind(x, what=object()), X) is None
    assert name(lambda key: jax.random.wrap_key_data(key), np.zeros(2, np.uint32)) is None
    monkeypatch.setenv("RIGIDJAX_KERNEL_CACHE", "off")
    assert name(make_scaling(2.0), X) is None

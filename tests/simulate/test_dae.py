"""Absolute coordinates of index 1, 2, 3 through `simulate`, all forms of the same equations."""

import pytest

import rigidjax as rj

TOP = rj.problems.heavy_top()
T1 = 0.2


def test_invalid_arguments_raise():
    with pytest.raises(ValueError, match=r"index=2\)` is a differential-algebraic.*`Dopri8`"):
        rj.simulate(rj.Absolute(TOP.system, index=2), TOP.state0, T1)
    with pytest.raises(ValueError, match=r"`Seulex` .* of index up to 1; got .*3"):
        model = rj.Absolute(TOP.system, index=3)
        rj.simulate(model, TOP.state0, T1, solver=rj.solvers.Seulex())
    with pytest.raises(ValueError, match=r"stabilized=True\)` is a form of index=2; got index=1"):
        rj.Absolute(TOP.system, index=1, stabilized=True)
    with pytest.raises(ValueError, match=r"takes two rates .*; got .* for index=2"):
        rj.Absolute(TOP.system, index=2, baumgarte=(1.0, 1.0))

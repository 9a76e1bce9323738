"""Every optimisation reaches its goal."""

import numpy as np


def check_1(names, printed):
    assert names["result"].success
    np.testing.assert_allclose(names["swing"].ys[-1], names["goal"], atol=1e-6)
    assert np.abs(names["result"].x[80:]).max() <= 20


def check_2(names, printed):
    assert names["result"].success
    np.testing.assert_allclose(names["duration"], 12.76, atol=0.005)  # two digits on the page
    assert np.abs(names["final_errors"](names["result"].x)).max() < 1e-8


def check_3(names, printed):
    np.testing.assert_allclose(names["fit"].value, [0.5, 1.3, 1.0, 1.4, 0.6, 0.5], 1e-6)

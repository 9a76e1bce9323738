"""Bounce times are those of a falling ball."""

import pathlib
import re

import numpy as np

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs" / "events.md"


def check_1(page, printed):
    # Potential energy of half a metre, for a rod that rotates about its end.
    rod, sol = page["rod"], page["hanging_run"]
    speed = np.sqrt(9.81 / (float(rod.inertia[0]) + 0.25))
    np.testing.assert_allclose(np.abs(sol.event_state.angular_velocity[0, 1]), speed, rtol=1e-7)
    fall, e = np.sqrt(2 / 9.81), 0.8
    expected = fall * (1 + 2 * np.array([0, e, e + e**2, e + e**2 + e**3]))
    np.testing.assert_allclose(page["times"], expected, rtol=1e-8)
    np.testing.assert_allclose(page["slopes"], 0.5 * expected, rtol=1e-6)
    third = np.sqrt(2.0) * expected
    np.testing.assert_allclose(page["many"][2, :4], np.where(third < 2.5, third, np.inf), rtol=1e-8)
    assert page["difference"] < 1e-13
    # The pendulum falls from the horizontal to 1.2 rad.
    rebound = 0.7 * np.sqrt(np.sin(1.2)) * speed
    np.testing.assert_allclose(page["rebound"], -rebound, rtol=1e-7)
    assert page["names"][:4] == ["slip", "stick", "slip", "stick"]
    assert set(np.unique(page["in_stick"])) == {0.0, 1.0}
    np.testing.assert_allclose(
        page["half_swings"], np.pi * np.sqrt(0.5 / 20.0) * np.arange(1, 8), rtol=1e-7
    )
    np.testing.assert_allclose(page["last"], -0.01, atol=1e-7)
    assert set(np.unique(page["direction"])) == {-1.0, 0.0, 1.0}
    inertias = [float(disc.inertia[2]) for disc in page["discs"]]
    np.testing.assert_allclose(page["common"], 1.0 + 4.0 * inertias[1] / sum(inertias), rtol=1e-9)
    np.testing.assert_array_equal(page["locked"], [0.0, 1.0, 0.0])
    shown = re.search(r"# ([\d., ]+)\n", PAGE.read_text("utf-8"))
    assert shown
    np.testing.assert_allclose([float(x) for x in shown[1].split(",")], expected, atol=6e-5)

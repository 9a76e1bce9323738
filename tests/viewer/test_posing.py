"""Sliders of joint coordinates on the page of a mechanism without a run."""

import pathlib

import numpy as np
import pytest
from external_programs import CHROMEDRIVER, CHROMIUM, NO_BROWSER
from viewer.motions import mechanism
from viewer.pages import ask

import rigidjax as rj


@pytest.mark.skipif(not (CHROMIUM and CHROMEDRIVER), reason=NO_BROWSER)
def test_sliders_place_bodies_as_joint_coordinates_do(browser, tmp_path):
    whole = mechanism()
    bodies = [body for body in whole.bodies if body.name != "ball"]
    kept = [joint for joint in whole.joints if joint.child != "ball"]
    system = rj.System(bodies, kept)
    start = rj.jointed_state(system, {joint.name: 0.1 for joint in kept if joint.num_rates == 1})
    view = rj.view(system, state=start)
    browser.get(view.save(tmp_path / "posed.html").as_uri())
    names = ask(browser, "v.runs[0].run.coordinates.map((c) => v.runs[0].run.joints[c.joint].name)")
    shown = browser.execute_script(
        "const sliders = [...document.querySelectorAll('#bar input')]; sliders.forEach((slider, k) "
        "=> { slider.value = arguments[0][k]; slider.dispatchEvent(new Event('input')); });"
        "rigidjaxViewer.render(); return sliders.map((slider) => Number(slider.value));",
        np.linspace(-0.7, 0.8, len(names)).tolist(),
    )
    coordinates = {}
    for name, value in zip(names, shown, strict=True):
        coordinates.setdefault(name, []).append(value)
    expected = rj.jointed_state(system, coordinates)
    for k in range(len(bodies)):
        found = np.array(ask(browser, f"v.pose(0, {k})"))
        np.testing.assert_allclose(found[:3], expected.position[k], atol=1e-5)
        assert abs(found[3:] @ np.asarray(expected.orientation[k])) > 1 - 1e-6


def test_limits_of_files():
    arm = rj.models.load(pathlib.Path(rj.__file__).parents[1] / "tests/models/data/arm.urdf")
    scene = rj.view(arm).scene
    limits = {c["name"]: c["limits"] for c in scene["runs"][0]["coordinates"]}
    known = {name: limit.position for name, limit in arm.limits.items() if limit.position}
    assert scene["poses"] == (not arm.system.constraints) and len(known) > 2
    for name, position in known.items():
        np.testing.assert_allclose(limits[name], np.clip(position, -np.pi, np.pi), atol=1e-12)
    assert not rj.view(rj.problems.four_bar().system).scene["poses"]  # it has a loop

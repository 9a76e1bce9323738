"""Browser and page of the tests of the viewer."""

import numpy as np
import pytest
from external_programs import CHROMEDRIVER, CHROMIUM
from viewer.motions import TS, mechanism, turned_states
from viewer.pages import FLAGS, TETRAHEDRON

import rigidjax as rj


@pytest.fixture(scope="module")
def browser():
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(CHROMEDRIVER))
    driver.set_script_timeout(100)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def states():
    return turned_states(9)


@pytest.fixture(scope="module")
def page(browser, states, tmp_path_factory):
    """The page of a mechanism with every joint, the same run twice, the second with a delay.

    The path of the egg in the last 0.5 s is shown, and the whole path of the tip of the arm.
    """
    system = mechanism()
    later = rj.view(system, state=turned_states(9, TS + 0.3), ts=TS)
    options = {"shapes": {"cube": TETRAHEDRON}, "traces": {"egg": 0.5, "tip": np.inf}}
    shown = rj.view(system, state=states, ts=TS, title="All joints", theme="light", **options)
    first, second = shown.scene["runs"][0], later.scene["runs"][0]
    first["label"], second["label"] = "first", "second"
    first["forces"] = first["reactions"] = first["rates"]
    shown.scene["runs"].append(second)
    path = shown.save(tmp_path_factory.mktemp("pages") / "all.html")
    browser.get(path.as_uri())
    return browser

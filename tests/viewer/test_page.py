"""Pages in headless Chromium: an empty console, a picture, the poses of the run, buttons."""

import base64
import gzip
import html
import json
import pathlib

import numpy as np
import pytest
from external_programs import CHROMEDRIVER, CHROMIUM, NO_BROWSER
from viewer.motions import TS, mechanism, turned_states

import rigidjax as rj

TETRAHEDRON = rj.Mesh(0.2 * np.eye(4, 3), [[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]])
GALLERY = pathlib.Path(__file__).resolve().parents[2] / "docs" / "gallery"
pytestmark = pytest.mark.skipif(not (CHROMIUM and CHROMEDRIVER), reason=NO_BROWSER)

FLAGS = (
    "--headless=new --no-sandbox --use-gl=angle --use-angle=swiftshader "
    "--enable-unsafe-swiftshader --disable-background-networking --disable-component-update "
    "--disable-sync --no-first-run --window-size=900,600 --proxy-server=127.0.0.1:9"
).split()


@pytest.fixture(scope="module")
def browser():
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(CHROMEDRIVER))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def states():
    return turned_states(9)


@pytest.fixture(scope="module")
def page(browser, states, tmp_path_factory):
    """The page of a mechanism with every joint, the same run twice, the second with a delay."""
    system = mechanism()
    later = rj.view(system, state=turned_states(9, TS + 0.3), ts=TS)
    cube = {"cube": TETRAHEDRON}
    shown = rj.view(system, state=states, ts=TS, title="All joints", theme="light", shapes=cube)
    first, second = shown.scene["runs"][0], later.scene["runs"][0]
    first["label"], second["label"] = "first", "second"
    first["forces"] = first["reactions"] = first["rates"]
    shown.scene["runs"].append(second)
    path = shown.save(tmp_path_factory.mktemp("pages") / "all.html")
    browser.get(path.as_uri())
    return browser


def ask(browser, expression):
    return browser.execute_script(f"const v = window.rigidjaxViewer; return {expression};")


def pixels(browser):
    """Return the rendered picture, (height, width, 4)."""
    browser.execute_script(
        "const v = window.rigidjaxViewer; v.render(); const gl = v.stage.renderer.getContext();"
        "window.size = [gl.drawingBufferHeight, gl.drawingBufferWidth];"
        "window.read = new Uint8Array(4 * size[0] * size[1]);"
        "gl.readPixels(0, 0, size[1], size[0], gl.RGBA, gl.UNSIGNED_BYTE, read);"
    )
    values = browser.execute_script(
        "let text = ''; for (const x of read) text += String.fromCharCode(x); return btoa(text);"
    )
    shape = (*browser.execute_script("return size;"), 4)
    return np.frombuffer(base64.b64decode(values), np.uint8).reshape(shape)


def test_meshes_are_drawn(page):
    found = ask(
        page,
        "(() => { let at = []; v.runs[0].bodies[8].traverse((o) => { const p = "
        "o.geometry?.attributes.position; if (p?.count === 12) at = [...p.array]; }); "
        "return at; })()",
    )
    wanted = TETRAHEDRON.vertices[TETRAHEDRON.faces].ravel()
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def click(browser, identifier):
    browser.execute_script(f"document.getElementById('{identifier}').click()")


def test_console_is_empty(page):
    assert ask(page, "Boolean(v)")
    assert page.get_log("browser") == []
    assert page.execute_script("return performance.getEntriesByType('resource').length") == 0


def test_picture_is_not_empty_and_moves(page):
    page.execute_script("rigidjaxViewer.seek(0)")
    first = pixels(page)
    opaque = np.count_nonzero(first[..., 3] > 200) / first[..., 3].size
    assert 0.01 < opaque < 0.9
    assert len(np.unique(first.reshape(-1, 4), axis=0)) > 100
    page.execute_script("rigidjaxViewer.seek(1.2)")
    assert np.count_nonzero(np.any(pixels(page) != first, axis=-1)) > 500


def test_poses_are_those_of_the_run(page, states):
    for row in (0, 17, 40):
        page.execute_script(f"rigidjaxViewer.seek({TS[row]}); rigidjaxViewer.render()")
        for body in (0, 8):
            pose = np.array(ask(page, f"v.pose(0, {body})"))
            wanted = np.concatenate([states.position[row, body], states.orientation[row, body]])
            np.testing.assert_allclose(pose, wanted, atol=2e-6)
    # Between two times: on the line, and half of the turn.
    page.execute_script(f"rigidjaxViewer.seek({(TS[3] + TS[4]) / 2}); rigidjaxViewer.render()")
    pose = np.array(ask(page, "v.pose(0, 2)"))
    np.testing.assert_allclose(pose[:3], states.position[3:5, 2].mean(axis=0), atol=2e-6)
    mean = np.asarray(states.orientation[3:5, 2]).sum(axis=0)
    np.testing.assert_allclose(pose[3:], mean / np.linalg.norm(mean), atol=2e-6)


def test_rods_and_springs_end_at_their_points(page):
    page.execute_script("rigidjaxViewer.seek(0.7); rigidjaxViewer.render()")
    rod = ask(
        page,
        "(() => { const r = v.runs[0]; const c = r.connections[0]; const p = r.pointOf(c.parent, "
        "c.parentPoint); const q = r.pointOf(c.child, c.childPoint); return [c.mesh.scale.y, "
        "p.distanceTo(q), c.mesh.position.distanceTo(p)]; })()",
    )
    np.testing.assert_allclose(rod[1:], [rod[0], rod[0] / 2], rtol=1e-6)


def test_play_and_pause(page):
    page.execute_script("rigidjaxViewer.seek(0)")
    click(page, "play")
    wait_until(page, "v.time > 0.02")
    click(page, "play")
    assert ask(page, "v.playing") is False
    assert 0.02 < ask(page, "v.time") <= TS[-1]


def wait_until(browser, condition):
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, 20).until(lambda driver: ask(driver, condition))


def test_slider_and_keys_move_the_time(page):
    page.execute_script(
        "const s = document.getElementById('time'); s.value = 5000;"
        "s.dispatchEvent(new Event('input'))"
    )
    assert ask(page, "v.time") == pytest.approx(1.0)
    press = "document.body.dispatchEvent(new KeyboardEvent('keydown', {key: '%s', bubbles: true}))"
    page.execute_script(press % "ArrowRight")
    assert ask(page, "v.time") == pytest.approx(1.01)
    page.execute_script(press % "Home")
    assert ask(page, "v.time") == 0.0


@pytest.mark.parametrize("layer", ["bodies", "joints", "frames", "centers", "rates", "reactions"])
def test_layers_can_be_switched(page, layer):
    before = pixels(page)
    click(page, f"show-{layer}")
    after = pixels(page)
    assert np.count_nonzero(np.any(after != before, axis=-1)) > 50
    click(page, f"show-{layer}")
    np.testing.assert_array_equal(pixels(page), before)


def test_runs_can_be_switched_and_named(page):
    labels = page.execute_script(
        "return [...document.querySelectorAll('#heading label')].map((l) => l.textContent)"
    )
    assert labels == ["first", "second"]
    page.execute_script("document.querySelectorAll('#heading input')[1].click()")
    assert ask(page, "v.runs.map((run) => run.group.visible)") == [True, False]
    page.execute_script("document.querySelectorAll('#heading input')[1].click()")


def test_camera_follows_a_body(page):
    page.execute_script(
        "const f = document.getElementById('follow'); f.value = '2'; rigidjaxViewer.seek(0);"
        "rigidjaxViewer.render(); f.dispatchEvent(new Event('change'));"
        "rigidjaxViewer.seek(1); rigidjaxViewer.render()"
    )
    off = ask(page, "v.runs[0].bodies[2].position.distanceTo(v.stage.controls.target)")
    assert off < 1e-6
    page.execute_script("rigidjaxViewer.followBody(-1); rigidjaxViewer.home()")


def test_theme_can_be_changed(page):
    ink = "getComputedStyle(document.documentElement).getPropertyValue('--ink')"
    light = ask(page, ink)
    click(page, "theme")
    assert ask(page, ink) != light
    click(page, "theme")
    assert ask(page, ink) == light


def test_graphs_are_drawn_and_can_be_chosen(page):
    assert ask(page, "v.graphs.length") == 3
    joint = ask(page, "v.runs[0].run.joints[0].name")
    names = ask(page, "[...v.graphs[0].select.options].map((o) => o.text)")
    assert {"z of egg (m)", f"reaction of {joint} (N)"} <= set(names)
    page.execute_script(
        f"const g = rigidjaxViewer.graphs[0]; g.select.value = '{names.index('z of egg (m)')}';"
        "g.select.dispatchEvent(new Event('change'))"
    )
    low, high = ask(page, "v.graphs[0].marks")
    assert (low, high) == (0.0, pytest.approx(0.2, rel=0.02))


def test_notebook_display(browser, tmp_path):
    shown = rj.view(mechanism(), title="In a <cell>")
    path = tmp_path / "notebook.html"
    path.write_text(f"<!DOCTYPE html><body>{shown._repr_html_()}</body>", "utf-8")
    browser.get(path.as_uri())
    browser.switch_to.frame(0)
    assert ask(browser, "v.runs.length") == 1
    assert html.unescape(browser.execute_script("return document.title")) == "In a <cell>"
    # A single state cannot be played.
    assert not browser.execute_script("return document.getElementById('bar').offsetHeight")
    assert np.any(pixels(browser)[..., 3] > 200)
    browser.switch_to.default_content()
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("name", ["ensemble", "hinge_fit", "stewart"])
def test_gallery_pages_are_shown(browser, tmp_path, name):
    scene = json.loads(gzip.decompress((GALLERY / f"{name}.json.gz").read_bytes()))
    browser.get(rj.viewer.View(scene).save(tmp_path / "run.html").as_uri())
    assert ask(browser, "v.runs.length") == len(scene["runs"])
    browser.execute_script(f"rigidjaxViewer.seek({scene['end']})")
    assert np.any(pixels(browser)[..., 3] > 200)
    assert browser.get_log("browser") == []


def test_damaged_data_are_reported(browser, tmp_path):
    path = tmp_path / "damaged.html"
    path.write_text(rj.view(mechanism()).page.replace('"times"', '"tomes"'), "utf-8")
    browser.get(path.as_uri())
    text = browser.execute_script("return document.getElementById('failure').textContent")
    assert "data are damaged" in text
    assert browser.get_log("browser") != []

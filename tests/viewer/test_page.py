"""Pages in headless Chromium: an empty console, a picture, the poses of the run, buttons."""

import gzip
import html
import json
import pathlib

import numpy as np
import pytest
from external_programs import CHROMEDRIVER, CHROMIUM, NO_BROWSER
from viewer.motions import TS, mechanism
from viewer.pages import TETRAHEDRON, ask, click, pixels, wait_until

import rigidjax as rj

GALLERY = pathlib.Path(__file__).resolve().parents[2] / "docs" / "gallery"
pytestmark = pytest.mark.skipif(not (CHROMIUM and CHROMEDRIVER), reason=NO_BROWSER)


def test_meshes_are_drawn(page):
    found = ask(
        page,
        "(() => { let at = []; v.runs[0].bodies[8].traverse((o) => { const p = "
        "o.geometry?.attributes.position; if (p?.count === 12) at = [...p.array]; }); "
        "return at; })()",
    )
    wanted = TETRAHEDRON.vertices[TETRAHEDRON.faces].ravel()
    np.testing.assert_allclose(found, wanted, atol=1e-5)


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
    # So slowly that no browser reaches the end between two clicks.
    page.execute_script("rigidjaxViewer.seek(0); rigidjaxViewer.speed = 0.01")
    click(page, "play")
    wait_until(page, "v.time > 0")
    click(page, "play")
    assert ask(page, "v.playing") is False
    assert 0 < ask(page, "v.time") < TS[-1]
    page.execute_script("rigidjaxViewer.speed = 1")


def test_a_run_plays_at_its_own_speed_when_the_page_opens(page):
    # A slow browser may have played the run to its end when it is asked.
    plays, rests = "(v.playing || v.time === v.end)", "!v.playing && v.time === v.start"
    for motion, is_playing in (("no-preference", plays), ("reduce", rests)):
        features = [{"name": "prefers-reduced-motion", "value": motion}]
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        page.execute_script("history.replaceState(null, '', location.pathname)")
        page.refresh()
        wait_until(page, f"v && v.speed === 1 && {is_playing}")


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
    spring = "'#' + v.runs[0].connections.at(-1).mesh.material.color.getHexString()"
    assert ask(page, spring) == ask(page, ink.replace("--ink", "--metal")).strip()
    click(page, "theme")
    assert ask(page, ink) == light


def test_graphs_are_drawn_and_can_be_chosen(page):
    shown = ask(page, "v.graphs.map((g) => g.select.selectedOptions[0].text)")
    assert shown == ["joint angles (rad)", "joint rates (rad/s)", "joint displacements (m)"]
    joint = ask(page, "v.runs[0].run.joints[0].name")
    assert ask(page, "v.graphs[0].entries[0].line.name") == joint
    names = ask(page, "[...v.graphs[0].select.options].map((o) => o.text)")
    assert {"position of egg (m)", f"reaction of {joint} (N)"} <= set(names)
    page.execute_script(
        "const g = rigidjaxViewer.graphs[0];"
        f"g.select.value = '{names.index('position of egg (m)')}';"
        "g.select.dispatchEvent(new Event('change'))"
    )
    assert ask(page, "v.graphs[0].entries.map((e) => e.line.name)") == ["x", "y", "z"]
    low, high = ask(page, "v.graphs[0].extent")
    assert (low, high) == (0.0, pytest.approx(1.2, rel=0.02))


def test_ticks_are_round(page):
    for limits, wanted in (("0, 6", [0, 2, 4, 6]), ("-0.013, 0.024", [-0.01, 0, 0.01, 0.02])):
        ticks = ask(page, f"ticksOf({limits}, 4).ticks")
        np.testing.assert_allclose(ticks, wanted, atol=1e-12)
    assert ask(page, "[tickText(0.30000000000000004, 0.1), tickText(-20, 10)]") == ["0.3", "-20"]


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


@pytest.mark.parametrize("name", ["hinge_fit", "stewart"])
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

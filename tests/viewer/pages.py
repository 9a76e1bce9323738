"""Functions of the tests of pages in headless Chromium."""

import base64

import numpy as np

import rigidjax as rj

TETRAHEDRON = rj.Mesh(0.2 * np.eye(4, 3), [[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]])
FLAGS = (
    "--headless=new --no-sandbox --use-gl=angle --use-angle=swiftshader "
    "--enable-unsafe-swiftshader --disable-background-networking --disable-component-update "
    "--disable-sync --force-prefers-reduced-motion --no-first-run --window-size=900,600 "
    "--proxy-server=127.0.0.1:9"
).split()


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


def click(browser, identifier):
    browser.execute_script(f"document.getElementById('{identifier}').click()")


def wait_until(browser, condition):
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, 20).until(lambda driver: ask(driver, condition))

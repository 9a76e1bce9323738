"""The page about extending: its force and its sensor work."""

import pathlib
import re

import jax
import jax.numpy as jnp
import numpy as np

import rigidjax as rj

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "extending.md"


def test_the_force_and_the_sensor_of_the_page(capsys):
    names: dict = {}
    for code in re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL):
        exec(code, names)
    place, slope = np.array(
        re.findall(r"-?\d+\.\d*(?:e[+-]\d+)?", capsys.readouterr().out), float
    ).reshape(2, 3)
    # Of c w x v with a constant spin along z: v turns in the plane at the rate c w / m.
    rate = 0.003 * 60.0 / 0.43
    expected = [25 * np.sin(rate) / rate, 25 * (1 - np.cos(rate)) / rate, 8 - 9.81 / 2]
    np.testing.assert_allclose(place, expected, rtol=1e-6)
    turned = 25 * np.array([np.cos(rate), np.sin(rate), 0.0])
    np.testing.assert_allclose(slope[:2], ((turned - expected) / 0.003)[:2], rtol=1e-6)

    model = rj.NullSpace(rj.System(names["ball"]))
    state = rj.State(position=(0.0, 0.0, 0.7))
    sensor = names["Height"]()
    read = sensor.predict(model, jnp.zeros(()), model.encode(state))
    assert float(read) == 0.7 and jax.eval_shape(lambda: read).shape == sensor.value_shape

"""Tossed cubes: ratios of the moments of inertia from the rates in free flight.

`python examples/published_cases/cube.py` prints the values of docs/published_cases.md.
"""

import pathlib

import jax
import jax.numpy as jnp
import numpy as np

import rigidjax as rj
from rigidjax import identification as ident

jax.config.update("jax_enable_x64", True)

DATA = pathlib.Path(__file__).resolve().parents[2] / "datasets" / "dair_tosses" / "cube_flights.npz"
SIDE, NOMINAL = 0.1048, 0.81e-3
# The first frame repeats rates; the flight must be free up to the last one.
FIRST, LAST, HEIGHT = 1, 12, 0.005


def flights():
    """Return the frames (N, T, 13) of tosses whose lowest corner stays above the table, and dt."""
    raw = np.load(DATA)
    frames, dt = raw["state"][:, FIRST:LAST].astype(float), float(raw["dt"])
    to_matrix = jax.vmap(jax.vmap(rj.Quaternion().to_matrix))
    vertical = np.asarray(to_matrix(jnp.asarray(frames[..., :4])))[..., 2, :]
    lowest = frames[..., 6] - SIDE / 2 * np.abs(vertical).sum(axis=-1)
    return frames[np.all(lowest > HEIGHT, axis=1)], dt


def main(count: int = 60) -> None:
    """Print the fit of the first flights."""
    frames, dt = flights()
    ts = dt * np.arange(frames.shape[1])
    curve = np.polyfit(ts, frames[:, :, 6].T, 2)
    fall = 2 * curve[0]
    print(f"{len(frames)} flights; vertical acceleration {fall.mean():.2f}", end=" ")
    print(f"+- {fall.std() / np.sqrt(len(fall)):.2f} m/s^2")
    runs = [
        rj.Measurements(ts, {rj.Gyroscope(): rates}, name=str(k))
        for k, rates in enumerate(frames[..., 7:10])
    ]
    model = rj.NullSpace(rj.FixedPointBody((NOMINAL,) * 3))
    moments = rj.Parameter(
        "body.inertia", transform=ident.PrincipalInertia(fixed=("I3",)), labels=["I1", "I2", "I3"]
    )
    start = ident.start_state(model, positions=False)
    fit = rj.identify(model, runs[:count], [moments, start])
    print(fit.verdict)
    for label in ("I1", "I2"):
        print(f"{label}/I3 {fit.estimates[label] / NOMINAL:.3f} +- {fit.std[label] / NOMINAL:.3f}")


if __name__ == "__main__":
    main()

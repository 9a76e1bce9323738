"""Notes on bodies that cannot exist."""

import pytest

import rigidjax as rj
from rigidjax.identification.statistics.verdict import plausibility_notes


def notes(mass, inertia):
    body = rj.Body("arm", mass, inertia, physical=False)
    return plausibility_notes(rj.NullSpace(rj.System(body)))


@pytest.mark.parametrize(
    ("mass", "inertia"),
    [
        (1.3, (0.02, 0.06, 0.05)),
        (1e-9, (2e-17, 6e-17, 5e-17)),
        (1.0, (0.01, 0.01, 0.02)),
        # A ball of tungsten, of 1 cm; a rod without thickness.
        (0.0808, (3.2e-6, 3.2e-6, 3.2e-6)),
        (1.0, (0.1, 0.1, 0.0)),
    ],
)
def test_plausible_bodies_are_not_noted(mass, inertia):
    assert notes(mass, inertia) == []


def test_implausible_bodies_are_noted():
    (note,) = notes(1e6, (0.02, 0.06, 0.05))
    assert "'arm' would be denser than any material: 1e+06 kg" in note
    assert "need 6.7e+15 kg/m^3 or more" in note
    for inertia in ((1.0, 1.0, 2.1), [[1.0, 0, 0], [0, 1.0, 0], [0, 0, 2.1]]):
        (note,) = notes(1.0, inertia)
        assert "No body has the moments of inertia of 'arm', 1, 1, 2.1 kg m^2" in note


def test_bodies_without_mass_are_not_judged():
    assert plausibility_notes(rj.NullSpace(rj.FixedPointBody((1.0, 2.0, 2.5)))) == []

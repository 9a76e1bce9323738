"""Units of data files, and their factors to SI units and radians."""

import math
import re

from ...checks import did_you_mean

_TURN = 2 * math.pi

# Units by quantity; the first of each is the unit that sensors use.
UNITS: dict[str, dict[str, float]] = {
    "angle": {"rad": 1.0, "mrad": 1e-3, "deg": _TURN / 360, "rev": _TURN},
    "angular velocity": {
        "rad/s": 1.0,
        "mrad/s": 1e-3,
        "deg/s": _TURN / 360,
        "rev/s": _TURN,
        "rpm": _TURN / 60,
    },
    "length": {"m": 1.0, "cm": 1e-2, "mm": 1e-3, "um": 1e-6, "km": 1e3, "in": 0.0254},
    "velocity": {"m/s": 1.0, "cm/s": 1e-2, "mm/s": 1e-3, "km/h": 1 / 3.6},
    "acceleration": {"m/s^2": 1.0, "cm/s^2": 1e-2, "mm/s^2": 1e-3, "g": 9.80665, "mg": 9.80665e-3},
    "force": {"N": 1.0, "mN": 1e-3, "kN": 1e3},
    "moment": {"N m": 1.0, "N mm": 1e-3, "N cm": 1e-2, "mN m": 1e-3, "kN m": 1e3},
    "time": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0},
    "number": {"1": 1.0},
}

_VARIANTS = {
    "rad": "radian radians",
    "deg": "degree degrees °",
    "deg/s": "°/s dps",
    "rpm": "rev/min r/min",
    "m": "metre meter meters metres",
    "s": "second seconds sec",
    "ms": "millisecond milliseconds",
    "us": "microseconds µs μs",
    "ns": "nanoseconds",
    "um": "µm μm",
    **{unit: unit.replace(" ", "") for unit in UNITS["moment"]},
}
_SPELLINGS = {name: unit for unit, names in _VARIANTS.items() for name in names.split()} | {"": "1"}


def factor(unit: str, *quantities: str) -> float:
    """Return the factor from a unit to SI units and radians.

    Units are spelled as in `UNITS`, or with usual variants: `m/s2`, `m s-2`, `N*m`, `Nm`,
    `degrees`.

    **Arguments:** `unit`; `quantities` that it may measure, such as "angle"; none for any.
    **Errors:** `ValueError` for an unknown unit, with the known ones, and for a unit of another
    quantity.
    """
    name = canonical(unit)
    for quantity, units in UNITS.items():
        if name in units:
            if quantities and quantity not in quantities:
                wanted = " or ".join(quantities)
                raise ValueError(
                    f"The unit {unit!r} is one of {quantity}, where one of {wanted} is needed: "
                    f"{known_units(*quantities)}."
                )
            return units[name]
    hint = did_you_mean(name, [u for units in UNITS.values() for u in units])
    raise ValueError(f"The unit {unit!r} is not known.{hint} There are {known_units(*quantities)}.")


def canonical(unit: str) -> str:
    """Return a unit as it is spelled in `UNITS`; any other text is only cleaned."""
    if not isinstance(unit, str):
        raise ValueError(f'A unit is a text such as "deg/s"; got {unit!r}.')
    name = unit.strip().replace("**", "^").replace("²", "^2").replace("⁻¹", "-1")
    name = re.sub(r"\s*[*·⋅]\s*", " ", name)
    name = re.sub(r"\s+s\^?-1$", "/s", name)
    name = re.sub(r"(\s+s\^?-2|/s2|/s/s)$", "/s^2", name)
    return _SPELLINGS.get(name, name)


def quantities_of(unit: str) -> tuple[str, ...]:
    """Return the quantities that a unit of a sensor, such as "rad or m", measures."""
    names = [canonical(part) for part in unit.split(" or ")]
    return tuple(q for q, units in UNITS.items() if any(units.get(name) == 1.0 for name in names))


def known_units(*quantities: str) -> str:
    """Return the units of some quantities, or of all, as text."""
    chosen = quantities or tuple(UNITS)
    return "; ".join(f"{q}: {', '.join(UNITS[q])}" for q in chosen)

"""Conversion of time stamps in files to times, without loss of resolution."""

import datetime
import re
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

# Times beyond this, s, are stamps since 1970, which floating-point numbers resolve poorly.
LEAST_STAMP = 10**8
# Stamps beyond the year 2200, if read as seconds, are in another unit.
_LATEST = Decimal("7.3e9")
ISO = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?\s*(Z|UTC|[+-]\d\d:?\d\d)?"
)
_EPOCH = datetime.datetime(1970, 1, 1)


class Stamps(NamedTuple):
    """Format of a column of stamps, and the stamp from which times are counted.

    **Attributes:** `zero`, the stamp that is 0 s, in the unit of the column; `factor`, seconds per
    unit; `is_iso`, whether stamps are dates and times of ISO 8601; `has_zone`, whether these state
    their zone, otherwise UTC.
    """

    zero: Decimal
    factor: Decimal
    is_iso: bool
    has_zone: bool

    @property
    def time_zero(self) -> str:
        """The stamp that is 0 s as a date and time of ISO 8601, UTC."""
        return _format_iso(self.zero * self.factor)

    def relative(self, text: str) -> float:
        """Return a stamp minus `zero`, in the unit of the column, computed exactly.

        NaN for an empty cell. **Errors:** `ValueError` for another text, or a zone where other
        stamps have none.
        """
        text = text.strip()
        if not text or text.lower() == "nan":
            return float("nan")
        if not self.is_iso:
            return float(_parse_number(text) - self.zero)
        seconds, has_zone = _parse_iso(text)
        if has_zone != self.has_zone:
            raise ValueError(f"some times state a zone, others do not; got {text!r}")
        return float(seconds - self.zero)


def detect_stamps(
    first: str, column: str, factor: float, is_stated: bool, time_zero: str | None
) -> Stamps | None:
    """Return the format of a column of times, from its first cell; `None` for small numbers.

    **Arguments:** `first`, the cell; `column`, its name; `factor`, seconds per unit, where
    `is_stated` tells whether the user or the file stated the unit; `time_zero`, the stamp that is
    to be 0 s, ISO 8601.
    **Errors:** `ValueError` that explains the interpretation: for stamps whose unit is not stated
    and cannot be seconds, for a unit of dates, and an invalid `time_zero`.
    """
    first, unit = first.strip(), Decimal(repr(factor))
    try:
        zero = None if time_zero is None else _parse_iso(time_zero)[0]
    except (ValueError, TypeError) as error:
        raise ValueError(f"`time_zero` must be that of another run: {error}.") from None
    if ISO.fullmatch(first):
        if is_stated and factor != 1.0:
            raise ValueError(
                f"column {column!r} holds dates and times such as {first!r}, which have no unit; "
                "leave its unit out."
            )
        seconds, has_zone = _parse_iso(first)
        return Stamps(seconds if zero is None else zero, Decimal(1), True, has_zone)
    try:
        number = _parse_number(first)
    except ValueError:
        return None  # The parser of the cells reports it.
    if zero is None and abs(number * unit) < LEAST_STAMP:
        return None
    if not is_stated and number > _LATEST:
        raise ValueError(
            f"column {column!r} starts at {first}, which is no time in seconds since 1970"
            + _describe_in_units(number)
            + ' State its unit, such as `units={"time": "ns"}`.'
        )
    return Stamps(number if zero is None else zero / unit, unit, False, False)


def seconds_of_date(text: str) -> Decimal:
    """Return seconds since 1970 of a date, with or without a time; zero for an empty text.

    **Errors:** `ValueError` for another text.
    """
    text = text.strip()
    if not text:
        return Decimal(0)
    return _parse_iso(text if ":" in text else f"{text} 00:00")[0]


def _parse_number(text: str) -> Decimal:
    try:
        number = Decimal(text.replace(",", "."))
    except InvalidOperation:
        raise ValueError(f"a time must be a number; got {text!r}") from None
    if not number.is_finite():
        raise ValueError(f"a time must be finite; got {text!r}")
    return number


def _parse_iso(text: str) -> tuple[Decimal, bool]:
    """Return seconds since 1970 of a date and time, and whether it states its zone."""
    match = ISO.fullmatch(text)
    if not match:
        raise ValueError(f"a time must be as 2026-01-31T13:45:00.5 or with a zone; got {text!r}")
    date, hours, minutes, seconds, fraction, zone = match.groups()
    try:
        days = (datetime.datetime.fromisoformat(date) - _EPOCH).days
    except ValueError as error:
        raise ValueError(f"{text!r} is no date: {error}") from None
    total = Decimal(86400 * days + 3600 * int(hours) + 60 * int(minutes) + int(seconds or 0))
    total += Decimal(f"0.{fraction or 0}")
    if zone and zone[0] in "+-":
        total -= int(zone[0] + "1") * (3600 * int(zone[1:3]) + 60 * int(zone[-2:]))
    return total, zone is not None


def _format_iso(seconds: Decimal) -> str:
    whole = int(seconds // 1)
    fraction = f"{seconds - whole:f}".partition(".")[2].rstrip("0")
    moment = _EPOCH + datetime.timedelta(seconds=whole)
    return f"{moment.isoformat()}{'.' + fraction if fraction else ''}Z"


def _describe_in_units(number: Decimal) -> str:
    """Return the date that a stamp has if its unit is ms, us or ns, as a clause for an error."""
    for name, power in (("milliseconds", 3), ("microseconds", 6), ("nanoseconds", 9)):
        seconds = number.scaleb(-power)
        if LEAST_STAMP < seconds < _LATEST:
            return f"; in {name} it is {_format_iso(seconds)}."
    return "."

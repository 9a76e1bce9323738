"""In how many digits numbers are written: as many as their standard deviations leave."""

import math

# Digits of a standard deviation that are worth writing.
_DIGITS = 2


def estimate_text(value: float, std: float) -> str:
    """A value in the digits that its standard deviation leaves: 1.30008 for 6.6e-5.

    Six digits where it has none, because it is infinite or zero.
    """
    if not (math.isfinite(std) and std > 0 and math.isfinite(value)):
        return f"{value:.6g}"
    last = math.floor(math.log10(std)) - _DIGITS + 1
    if value == 0 or abs(value) < 0.5 * 10.0**last:
        return "0"
    # At most what a number in double precision has.
    digits = min(max(math.floor(math.log10(abs(value))) - last + 1, 1), 17)
    text = f"{value:#.{digits}g}"
    return text.removesuffix(".").replace(".e", "e")


def std_text(std: float) -> str:
    """A standard deviation, or what else is known to two digits."""
    return f"{std:.{_DIGITS}g}"


def interval_text(interval: tuple[float, float]) -> str:
    """An interval in as many digits as its width leaves, such as `0.01770 to 0.01999`."""
    low, high = interval
    if not (math.isfinite(low) and math.isfinite(high)):
        return "not determined"
    half = 0.5 * (high - low)
    return f"{estimate_text(low, half)} to {estimate_text(high, half)}"

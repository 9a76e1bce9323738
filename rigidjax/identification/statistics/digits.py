"""Formatting of estimates with the number of digits that their standard deviations justify."""

import math

# Significant digits of a standard deviation.
_DIGITS = 2


def estimate_text(value: float, std: float) -> str:
    """Format a value with the digits that its standard deviation justifies: 1.30008 for 6.6e-5.

    Six digits are used if the standard deviation is infinite or zero.
    """
    if not (math.isfinite(std) and std > 0 and math.isfinite(value)):
        return f"{value:.6g}"
    last = math.floor(math.log10(std)) - _DIGITS + 1
    if value == 0 or abs(value) < 0.5 * 10.0**last:
        return "0"
    # Double precision has at most 17 significant digits.
    digits = min(max(math.floor(math.log10(abs(value))) - last + 1, 1), 17)
    text = f"{value:#.{digits}g}"
    return text.removesuffix(".").replace(".e", "e")


def std_text(std: float) -> str:
    """Format a standard deviation with two digits."""
    return f"{std:.{_DIGITS}g}"


def interval_text(interval: tuple[float, float]) -> str:
    """Format an interval with the digits that its width justifies, such as `0.01770 to 0.01999`."""
    low, high = interval
    if not (math.isfinite(low) and math.isfinite(high)):
        return "not determined"
    half = 0.5 * (high - low)
    return f"{estimate_text(low, half)} to {estimate_text(high, half)}"

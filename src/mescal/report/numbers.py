"""Numbers as people read them."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float, digits: int = 3) -> str:
    """Three digits, with an exponent only where zeros would have to be counted; "none" for what is not a number."""
    if math.isnan(value):
        return "none"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == 0 or 1e-4 <= abs(value) < 1e5:
        text = f"{value:.{digits}g}"
        return (f"{value:.0f}" if "e" in text else text).replace("-", "−")
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    return f"{mantissa}e{int(exponent)}".replace("-", "−")


def count(value: float) -> str:
    """A count with its thousands apart."""
    return "none" if math.isnan(value) else f"{value:,.0f}"


def counted(value: int, what: str) -> str:
    """A count with what it counts, in its plural where there is not one."""
    return f"{count(value)} {what}{'' if value == 1 else 's'}"


def seconds(value: float) -> str:
    """Seconds, to a hundredth below ten."""
    return "none" if math.isnan(value) else f"{value:.2f}" if value < 10 else f"{value:,.0f}"


def short(value: Any) -> str:
    """A setting in a few characters."""
    if isinstance(value, float):
        return f"{value:g}"
    text = "none" if value is None else str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def tick_labels(values: Sequence[float]) -> list[str]:
    """Labels of an axis with three digits, or as many more as its steps need."""
    ordered = sorted(values)
    step = min((b - a for a, b in pairwise(ordered)), default=math.inf)
    enough = (d for d in range(3, 7) if all(abs(float(f"{v:.{d}g}") - v) < step / 100 for v in values))
    digits = next(enough, 7)
    return [tick(value, digits) for value in values]


def tick(value: float, digits: int = 3) -> str:
    """A label of an axis: plain between 0.001 and 10,000, a power of ten beyond."""
    if value == 0 or 1e-3 <= abs(value) < 1e4:
        text = f"{value:.{digits}g}"
        return (f"{value:.0f}" if "e" in text else text).replace("-", "−")
    exponent = math.floor(math.log10(abs(value)) + 1e-9)
    mantissa = f"{value / 10**exponent:.{digits}g}".replace("-", "−")
    power = f"10{str(exponent).translate(_SUPERSCRIPT)}"
    return {"1": power, "−1": f"−{power}"}.get(mantissa, f"{mantissa}·{power}")


def axis_labels(against: str, values: Sequence[float]) -> list[str]:
    """Labels of the horizontal axis: works with their letters, seconds as plain numbers."""
    return [work_tick(value) for value in values] if against == "work" else tick_labels(values)


def work_tick(value: float) -> str:
    """A label of the work axis: 500, 8k, 1.5M."""
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size * (1 - 1e-9):
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"

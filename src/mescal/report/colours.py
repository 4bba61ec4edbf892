"""How solvers look: Okabe and Ito's colours, told apart by the colour-blind, and a marker and a dash of their own.

Colour never stands alone: each look also differs in marker and dash, so a page printed in grey can be read too. The dark
colours are lighter tints of the same hues; every colour has a contrast of at least 3 with its background (WCAG 1.4.11).
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Look:
    """A colour on white, its tint on dark, a dash (in line widths), a marker as a path around (0, 0) and for matplotlib."""

    colour: str
    dark: str
    dash: tuple[float, ...]
    path: str
    marker: str


LOOKS = (
    Look("#0072b2", "#56b4e9", (), "M-3.4,0a3.4,3.4 0 1,0 6.8,0a3.4,3.4 0 1,0 -6.8,0z", "o"),
    Look("#d55e00", "#f5894a", (5, 2), "M-3,-3h6v6h-6z", "s"),
    Look("#007a59", "#2fc79b", (2, 1.5), "M0,-4L3.8,2.8H-3.8z", "^"),
    Look("#b0578d", "#dd94bf", (6, 1.5, 1.5, 1.5), "M0,-4.2L4.2,0L0,4.2L-4.2,0z", "D"),
    Look("#9a6a00", "#e6b422", (8, 2), "M0,4L3.8,-2.8H-3.8z", "v"),
    Look("#4a4a4a", "#c8c8c8", (1, 1), "M-3.5,-3.5L3.5,3.5M-3.5,3.5L3.5,-3.5", "x"),
)
FIXED = {"spider": 0, "sg-hv-nc": 1, "natasha2": 2}  # the paper's three look the same in every report


def in_order(labels: Iterable[str]) -> list[str]:
    """The paper's three first, in the order of their looks, then the others as they come."""
    return sorted(labels, key=lambda label: FIXED.get(label.split(" (")[0].split(",")[0], len(FIXED)))


def looks(labels: Iterable[str]) -> dict[str, int]:
    """A number in `LOOKS` for every series; the first six that are not fixed share none as long as there are enough."""
    labels = list(labels)
    chosen = {label: FIXED[label] for label in labels if label in FIXED}
    free = [i for i in range(len(LOOKS)) if i not in chosen.values()] or list(range(len(LOOKS)))
    rest = [label for label in labels if label not in FIXED]
    return chosen | {label: free[i % len(free)] for i, label in enumerate(rest)}

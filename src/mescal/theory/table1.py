"""Table 1: sample complexities of MESCAL and of its peers, as rows that can be printed and compared.

The rows of MESCAL follow from the work lemmas; the others are quoted from the table.

Deviations from the paper:

1. Unconstrained SG-HV-NC and SPIDER keep the term eps_g^-2 eps_H^-2 of their work lemmas, which Table 1 drops: nothing
   dominates it where eps_H^2 << eps_g << eps_H^(3/2).
2. Success probabilities are stated: 5/8, 2/3, 1/2 (erratum 25); `theory.boosting` reaches any other.
"""

from dataclasses import dataclass

from . import natasha2, sg_hv_nc, spider
from .complexity import solver_rate
from .orders import Rate, rate, rate_of


@dataclass(frozen=True)
class Row:
    """One method: its constraints and iterates ("E" expectation, "P" probability, "none"), and its rates."""

    method: str
    constraints: str
    iterate: str
    first_order: Rate | None
    second_order: Rate | None
    probability: float | None = None
    note: str = ""


def rows() -> tuple[Row, ...]:
    """Table 1, in the paper's order. The rates of MESCAL are deterministic; probabilistic ones are lower by eps_g."""
    solvers = {"SG-HV-NC": sg_hv_nc, "SPIDER": spider, "Natasha2": natasha2}
    unconstrained = (
        Row(name, "none", "P", None, rate_of(module.TERMS, False, False), module.SUCCESS_PROBABILITY)
        for name, module in reversed(solvers.items())
    )
    ours = (
        Row(f"MESCAL-{name}", "E", "P", None, solver_rate(module.NAME), module.SUCCESS_PROBABILITY)
        for name, module in solvers.items()
    )
    return (
        Row("ConEx", "E", "E", rate((6, 0)), None, note="strong feasibility"),
        Row("Stoch-iALM", "E", "E", rate((5, 0)), None),
        Row("Stoch-SQP", "E", "E", rate((4, 0)), None, note="LICQ"),
        Row("SCR", "none", "P", None, rate((3.5, 0)), note="eps_H = sqrt(L_H eps_g)"),
        *unconstrained,
        *ours,
    )


def text() -> str:
    """The table as aligned lines."""
    head = ("method", "constraints", "iterate", "first order", "second order", "p", "note")
    lines: list[tuple[str, ...]] = [head]
    for row in rows():
        probability = "" if row.probability is None else f"{row.probability:.3g}"
        first, second = (str(cell) if cell else "-" for cell in (row.first_order, row.second_order))
        lines.append((row.method, row.constraints, row.iterate, first, second, probability, row.note))
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    padded = ([cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in lines)
    return "\n".join("  ".join(cells).rstrip() for cells in padded)

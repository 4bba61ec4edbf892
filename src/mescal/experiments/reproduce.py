"""The paper's section 5: four problems, three sub-solvers, and what its text says of the work they need.

The paper stops at a tolerance of 0.01; 0.001 stands beside it here, since losses that saturate meet 0.01 early.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..certificate import Tolerance
from ..forms import plain
from .store import StoredRun
from .sweep import product
from .table import HEAD, ComparisonRow, cells, compare, markdown, to_json
from .task import Task

PROBLEMS = ("neyman-pearson/spambase", "neyman-pearson/madelon", "fairness/bank", "fairness/loan")
SOLVERS = ("spider", "sg-hv-nc", "natasha2")
TOLERANCES = (0.01, 0.001)
SEEDS = 5
PAPER = Tolerance(0.01, 0.01)  # its tolerance
PAPER_CONE = "whole"

# `--quick`: the smallest of the paper's problems of each kind, at the paper's tolerance.
QUICK_PROBLEMS = ("neyman-pearson/spambase", "fairness/bank")
QUICK_SEEDS = 2


@dataclass(frozen=True)
class Claim:
    """What the paper says about one problem and one solver: its work over SPIDER's, and the words."""

    problem: str
    solver: str
    ratio: float
    words: str


_FAIRNESS = (
    "SPIDER requires approximately one order of magnitude less work than SG-HV-NC and two orders of magnitude less work "
    "than Natasha2"
)
_NEYMAN_PEARSON = (
    "SPIDER requires lower computational work than SG-HV-NC and Natasha2, requiring approximately one order of magnitude "
    "less work for the madelon dataset and two orders of magnitude less work for the spambase dataset"
)
CLAIMS = (
    Claim("fairness/bank", "sg-hv-nc", 10, _FAIRNESS),
    Claim("fairness/bank", "natasha2", 100, _FAIRNESS),
    Claim("fairness/loan", "sg-hv-nc", 10, _FAIRNESS),
    Claim("fairness/loan", "natasha2", 100, _FAIRNESS),
    Claim("neyman-pearson/madelon", "sg-hv-nc", 10, _NEYMAN_PEARSON),
    Claim("neyman-pearson/madelon", "natasha2", 10, _NEYMAN_PEARSON),
    Claim("neyman-pearson/spambase", "sg-hv-nc", 100, _NEYMAN_PEARSON),
    Claim("neyman-pearson/spambase", "natasha2", 100, _NEYMAN_PEARSON),
)


def paper_tasks(
    problems: Sequence[str] = PROBLEMS,
    solvers: Sequence[str] = SOLVERS,
    seeds: int = SEEDS,
    tols: Sequence[float] = TOLERANCES,
    **settings: Any,
) -> list[Task]:
    """The tasks of section 5, with the judge's measures in every history, for the figures.

    Curvature is that of the paper's own test, the least eigenvalue of the augmented Lagrangian.
    """
    return product(problems, solvers, seeds=range(seeds), tols=tols, cone=PAPER_CONE, record="exact", **settings)


def summary(runs: Sequence[StoredRun]) -> dict[str, Any]:
    """The comparison and, for every claim that the runs can speak to, the ratio measured beside the paper's."""
    rows = compare(runs)
    return {"rows": to_json(rows), "claims": [plain(claim) | {"measured": m} for claim, m in checked(rows)]}


def checked(rows: Sequence[ComparisonRow]) -> list[tuple[Claim, float]]:
    """Claims with the measured ratio at the paper's tolerance."""
    ratios = {(row.problem, row.solver): row.ratio for row in rows if row.tol == PAPER}
    pairs = ((claim, ratios.get((claim.problem, claim.solver))) for claim in CLAIMS)
    return [(claim, ratio) for claim, ratio in pairs if ratio is not None]


def page(runs: Sequence[StoredRun]) -> str:
    """The same in Markdown."""
    rows = compare(runs)
    seeds = len({stored.seed for stored in runs})
    parts = [
        "# The paper's experiments, measured",
        f"Medians over {seeds} seed{'s' * (seeds != 1)}, with the smallest and the largest in brackets. Work is gradient "
        "evaluations plus twice the Hessian-vector products, per sample; the ratio is to SPIDER.",
        markdown(_timeless(HEAD), (_timeless(cells(row)) for row in rows)),
    ]
    if claims := checked(rows):
        head = ("problem", "solver", "work over SPIDER's: the paper's figures, about", "measured")
        lines = [(c.problem, c.solver, f"{c.ratio:g}", f"{measured:.2g}") for c, measured in claims]
        words = dict.fromkeys(f"> {c.words}" for c, _ in claims)
        parts += [f"## Beside the paper, at {PAPER}", "\n>\n".join(words), markdown(head, lines)]
    return "\n\n".join(parts) + "\n"


def _timeless(line: Sequence[str]) -> list[str]:
    """A line of a table without its seconds: the judge's measures in every row of a history take most of them."""
    return [cell for name, cell in zip(HEAD, line, strict=True) if name != "seconds"]

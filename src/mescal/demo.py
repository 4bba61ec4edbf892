"""The demonstration behind `make demo`: a Neyman-Pearson classifier, solved three ways, certified, and a point refused.

Leaves runs and a page about them, report.html, in runs/demo/.
"""

import importlib.util
import sys
from pathlib import Path

from . import problems
from .certificate import certify
from .distribution import install
from .experiments import product
from .report import write_report

FOLDER = Path("runs/demo")
PROBLEM = "neyman-pearson/breast-cancer"
PARAMETERS = {"tau": 0.05}  # at the default, 0.2, the constraint is slack and there is less to see
SOLVERS = ("spider", "sg-hv-nc", "natasha2")
TOLERANCE = 0.01
EXTRAS = {"typer": "cli", "rich": "cli", "joblib": "cli", "sklearn": "sklearn"}  # what it imports, and what brings it


def main(folder: Path = FOLDER) -> int:
    """Solve, certify, show what a certificate refuses, and write the page; 0 if every run is certified."""
    if lacking := [name for name in EXTRAS if importlib.util.find_spec(name) is None]:
        print(
            f"The demonstration needs {', '.join(lacking)}, not installed here.\n"
            "  Expected: mescal with its extras for the command line and for the data.\n"
            f"  What to do: {install(*dict.fromkeys(EXTRAS.values()))}.",
            file=sys.stderr,
        )
        return 1
    from .cli.progress import sweep_shown
    from .cli.show import results, show_run, shown_path

    named = problems.get(PROBLEM, **PARAMETERS)
    console = results()
    console.print(f"{named.name}: {named.description}\n")
    tasks = product([PROBLEM], SOLVERS, tols=[TOLERANCE], parameters=PARAMETERS, record="exact")
    swept = sweep_shown(tasks, folder, jobs=None, force=True, quiet=False)
    for stored in swept.runs:
        show_run(console, stored)
    refused = certify(named.problem, named.x0, tol=TOLERANCE)
    assert not refused.passes(TOLERANCE)
    console.print("\nThe judge can be asked about any point. It refuses the start:")
    console.print("  " + str(refused).replace("\n", "\n  ") + "\n", soft_wrap=True)
    page = write_report(swept.runs, folder / "report.html")
    console.print(f"Open [bold]{shown_path(page)}[/] in a browser.", soft_wrap=True)
    return 0 if swept.certified else 1


if __name__ == "__main__":
    raise SystemExit(main())

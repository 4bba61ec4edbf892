"""The demonstration behind `make demo`: a Neyman-Pearson classifier, solved three ways, certified, and a point refused.

Leaves certificates and histories under runs/demo/.
"""

from pathlib import Path

import numpy as np

from . import problems, solvers
from .certificate import Tolerance, certify
from .outer import minimize

FOLDER = Path("runs/demo")
TOLERANCE = 0.01


def main():
    """Solve, certify, and show what a certificate refuses."""
    named = problems.get("neyman-pearson/breast-cancer")
    print(f"{named.name}: {named.description}\n")
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in ("spider", "sg-hv-nc", "natasha2"):
        assert name in solvers.names()
        result = minimize(named.problem, named.x0, solver=name, tol=TOLERANCE, seed=0)
        print(f"{result}\n")
        (FOLDER / f"{name}.certificate.json").write_text(result.certificate.to_json())
        (FOLDER / f"{name}.history.csv").write_text(result.history.to_csv())
    far = 1000.0 * np.ones_like(np.asarray(named.x0)) / np.sqrt(named.x0.size)
    strict = Tolerance(TOLERANCE, TOLERANCE, relative=5 * TOLERANCE)
    certificate = certify(named.problem, far, tol=TOLERANCE)
    print("A point far out on a ray, where the losses are flat, is not a minimiser:")
    print("  " + str(certificate).replace("\n", "\n  "))
    print(f"  passes with relative={5 * TOLERANCE:g}: {certificate.passes(strict)}\n")
    print(f"Certificates and histories are in {FOLDER}/")


if __name__ == "__main__":
    main()

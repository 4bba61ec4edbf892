"""The demonstration behind `make demo`: a Neyman-Pearson classifier, solved three ways, certified, and a point refused.

Leaves certificates and histories under runs/demo/.
"""

from pathlib import Path

from . import problems
from .certificate import certify
from .outer import minimize

FOLDER = Path("runs/demo")
TOLERANCE = 0.01


def main():
    """Solve, certify, and show what a certificate refuses."""
    named = problems.get("neyman-pearson/breast-cancer")
    print(f"{named.name}: {named.description}\n")
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in ("spider", "sg-hv-nc", "natasha2"):
        result = minimize(named.problem, named.x0, solver=name, tol=TOLERANCE, seed=0)
        print(f"{result}\n")
        (FOLDER / f"{name}.certificate.json").write_text(result.certificate.to_json())
        (FOLDER / f"{name}.history.csv").write_text(result.history.to_csv())
    refused = certify(named.problem, named.x0, tol=TOLERANCE)
    assert not refused.passes(TOLERANCE)
    print("The judge can be asked about any point. It refuses the start:")
    print("  " + str(refused).replace("\n", "\n  ") + "\n")
    print(f"Certificates and histories are in {FOLDER}/")


if __name__ == "__main__":
    main()

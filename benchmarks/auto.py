"""What `auto` rests on: Newton-CG, SCR and SPIDER to the certificate on small, large and streamed problems.

Seconds as in the benchmark `solvers`, beside AL + L-BFGS-B in the same run; on streams, where there is no such peer, by
the work. Medians over seeds.
"""

import mescal
from mescal import problems

from ._measure import Report
from .peers.al_lbfgsb import LbfgsB
from .solvers import _lbfgsb, _ours

TABLE = "to the certificate, medians over seeds"
CANDIDATES = ("spider", "newton-cg", "scr")
FINITE = ("neyman-pearson/spambase", "neyman-pearson/madelon", "fairness/bank", "fairness/loan")
STREAMS = tuple(f"hock-schittkowski/{number}" for number in (6, 7, 26))
TIGHT = (1e-3, 1e-4)  # tolerances at which seconds are held to those of the peer
HELD = {"fairness/bank": 1.0, "fairness/loan": 1.0, "neyman-pearson/spambase": 1.0, "neyman-pearson/madelon": 1.0}


def run(quick: bool) -> Report:
    """All candidates; what `auto` takes is marked."""
    finite, streams = (("neyman-pearson/breast-cancer",), ()) if quick else (FINITE, STREAMS)
    tolerances, seeds = ((1e-2,), 1) if quick else ((1e-2, *TIGHT), 3)
    report = Report({"seeds": seeds, "tolerances": list(tolerances), "problems": [*finite, *streams]})
    for name in (*finite, *streams):
        named = problems.get(name)
        population = named.problem.bind(named.x0)[0].population
        choice = mescal.solvers.Auto().sized(population).name
        peer = None
        if population is not None:
            peer = LbfgsB(named.problem, named.x0)
            peer.solve(1e-1)
        for tol in tolerances if peer else tolerances[:1]:
            reference = None
            if peer is not None:
                reference = _lbfgsb(peer, named, tol, seeds)
                report.add(TABLE, **reference, auto="")
            for solver in CANDIDATES:
                row = _ours(named, solver, tol, seeds)
                if reference is not None:
                    row["seconds_ratio"] = row["seconds"] / reference["seconds"]
                report.add(TABLE, **row, auto="chosen" if solver == choice else "")
                if solver == choice and tol in TIGHT and name in HELD:
                    report.hold(
                        f"{name} at {tol:g}, auto: seconds to those of L-BFGS-B", row["seconds_ratio"], HELD[name]
                    )
    return report

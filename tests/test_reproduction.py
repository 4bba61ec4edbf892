"""The benchmark of the paper's section 5: its curves, its sentences, its store, and the page's figures, on rows made by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

import mescal
from benchmarks import _measure, _paper_runs
from benchmarks._paper_curves import Curve, Watched, thinned
from benchmarks._paper_runs import FREQUENCIES, KEYS, PAPER_MODES, Runs, between, shortened
from benchmarks._paper_sentences import reasons, sentences
from benchmarks.harness.store import Store
from benchmarks.reproduction import edges, report, summary
from docs.benchmark_curves import draw
from mescal.experiments.tune import choices
from mescal.solvers import SpiderPaper, get
from mescal.testing.exercises import along, distance, nearest

SPAMBASE = "neyman-pearson/spambase"
MADELON = "neyman-pearson/madelon"
BANK = "fairness/bank"


def row(solver, problem=SPAMBASE, work=100.0, curve=(), certified=True, outer=2, study="paper", seed=0, setting=""):
    key = dict(zip(KEYS, (study, problem, solver, seed, setting), strict=True))
    rest = {"certified": certified, "work": work, "searches": work / 4, "outer": outer, "escapes": 0, "objective": 0.1}
    rest |= {"steps": 10 * outer, "distance": 3.0, "status": "CERTIFIED" if certified else "WORK_LIMIT"}
    return key | rest | {"curve": [list(point) for point in curve], "options": {}}


def three(problem, works, **rest):
    return [row(solver, problem, work, **rest) for solver, work in zip(PAPER_MODES, works, strict=True)]


def test_ratios_are_compared_with_the_paper():
    (said,) = sentences(three(BANK, (10.0, 100.0, 100.0)), (BANK,))
    assert "sg-hv-nc 10 times where about 10 is said (as said)" in said
    assert "natasha2 10 times where about 100 is said (less)" in said
    uncertified = [*three(BANK, (10.0, 400.0, 100.0))[:2], row(PAPER_MODES[2], BANK, 100.0, certified=False)]
    (said,) = sentences(uncertified, (BANK,))
    assert "sg-hv-nc 40 times where about 10 is said (more)" in said and "natasha2 at least 10 times" in said


def test_orders_of_madelon_and_spambase_differ():
    for problem, wanted in ((MADELON, 10), (SPAMBASE, 100)):
        (said,) = sentences(three(problem, (1.0, 10.0, 10.0)), (problem,))
        assert f"sg-hv-nc 10 times where about {wanted} is said" in said


def test_reasons_are_shares_steps_and_how_the_ratio_follows_the_coin():
    rows = three(BANK, (10.0, 20.0, 100.0))
    rows += [
        row("sg-hv-nc-paper", BANK, work, study=study, setting=coin)
        for study, coin, work in (("frequency", "0.2", 50.0), ("frequency", "0.9", 5.0), ("short steps", "0.2", 1.0))
    ]
    said, escapes = reasons(rows, (BANK, SPAMBASE))
    assert escapes == "- Steps along negative curvature in all these runs together: 0."
    assert "spider 25%, in 20 steps" in said and "natasha2 25%" in said
    assert said.endswith(
        "The work of SG-HV-NC over SPIDER's goes, at the grid's steps from 5 (coin 0.2) to 0.5 (coin 0.9)."
    )


def test_resets_are_compared_at_the_same_size():
    rows = three(BANK, (10.0, 20.0, 100.0))
    rows += three(BANK, (2.0, 6.0, 3.0), study="resets", setting="4096")
    rows += three(BANK, (1.0, 9.0, 2.0), study="resets", setting="512")
    said, _ = reasons(rows, (BANK,))
    assert said.endswith(
        "Times SPIDER's work, with resets of 512 samples sg-hv-nc 9 and natasha2 2, of 4096 samples sg-hv-nc 3 and natasha2 1.5."
    )
    shown = report(rows, (BANK,), 1).tables["resets from batches"]
    assert [row["setting"] for row in shown] == [
        f"{name} = {n}" for n in (512, 4096) for name in ("reset", "reset", "epoch")
    ]
    assert [row["over_spider"] for row in shown] == [1, 9, 2, 1, 3, 1.5]
    uncertified = row(PAPER_MODES[2], BANK, 2.0, certified=False, study="resets", setting="512")
    said, _ = reasons([*rows[:-1], uncertified], (BANK,))
    assert "natasha2 2 (not all certified)" in said


def test_short_steps_are_shorter_than_the_grid_s_choice():
    assert shortened({"step_size": 16.0}) and not shortened({"step_size": 1.0}) and not shortened(None)


def test_choices_at_an_edge_of_the_grid_are_told():
    trials = [{"options": {"batch": batch}} for batch in (16, 4, 64)]
    assert edges(trials, "batch") == (4, 64)


# outer iteration, work, least eigenvalue, stationarity, feasibility
CURVE = [(0, 1, 0.0, 0.5, 0.3), (0, 2, -0.2, 0.1, 0.2), (1, 3, -0.1, 0.2, 0.25), (1, 4, 0.0, 0.01, 0.01)]


def test_shapes_of_curves_are_said():
    rows = three(SPAMBASE, (1.0, 2.0, 3.0), curve=CURVE)
    said = sentences(rows, (SPAMBASE,))[-1]
    assert "feasibility rises by a tenth over its least once" in said
    assert "first grows to 0.2 and ends at 0" in said and "stationarity grows after 1 of 1 dual updates" in said
    said = sentences(three(MADELON, (1.0, 2.0, 3.0), curve=CURVE), (MADELON,))[-1]
    assert "enters negative curvature beyond 0.01 after the first iteration (least eigenvalue -0.1)" in said
    falling = [(k, work, 0.0, 1 / work, 1 / work) for k, work in ((0, 1), (0, 2), (1, 4))]
    said = sentences(three(BANK, (1.0, 2.0, 3.0), curve=falling), (BANK,))[-1]
    assert said.count("never in stationarity and never in feasibility") == 2


def test_work_of_a_curve_adds_up_over_outer_iterations():
    curve = Curve()
    for penalty, steps, work in ((1.1, 1, 10.0), (1.1, 2, 25.0), (1.21, 3, 5.0), (1.21, 2, 7.0)):
        curve(penalty, SimpleNamespace(steps=steps, work=work, curvature=0.0, stationarity=1.0, constraint=[3.0, 4.0]))
    points = curve.points([1.0, 30.0, 40.0])
    assert [point[:2] for point in points] == [[0, 11.0], [0, 26.0], [1, 35.0], [2, 47.0]]
    assert points[0][4] == pytest.approx(5.0)


def test_watching_a_practical_solver_changes_nothing_but_what_is_known():
    """The same bits and the same work; a point after every step, the last at the measures of the point that is handed back.

    In units of the problem, although the solver has others for so small an objective.
    """
    at, curve = nearest(functions=(lambda x, a: 1e-3 * distance(x, a), along)), Curve()
    asked = {"tol": 1e-5, "seed": 0, "record": "exact"}
    plain = mescal.minimize(at.problem, at.x0, solver="natasha2", **asked)
    watched = mescal.minimize(at.problem, at.x0, solver=Watched(get("natasha2"), curve), **asked)
    assert (plain.x == watched.x).all() and plain.work == watched.work
    rows = watched.history
    points = curve.points([row.work for row in rows])
    assert len(points) > len(rows) and curve.outer == rows[-1].outer
    assert points[-1][1] == rows[-1].work and np.all(np.diff([point[1] for point in points]) > 0)
    assert points[-1][3:] == pytest.approx([rows[-1].stationarity, rows[-1].feasibility], rel=0.05)


def test_thinned_curves_keep_the_ends():
    points = [[k, i] for k in range(3) for i in range(100)]
    few = thinned(points, 20)
    assert len(few) <= 23 and [[k, 99] for k in range(3)] == [point for point in few if point[1] == 99]


def test_steps_between_searches():
    assert between("sg-hv-nc-paper", 0.75, {}) == 4
    assert between("spider-paper", 16, {}) == 16
    assert between("natasha2-paper", 8, {"sub_epoch_steps": 10}) == 80
    assert all(len(values) >= 4 for _, values in FREQUENCIES.values())


def test_what_is_there_is_not_run_again(monkeypatch, tmp_path):
    made = []

    def run(study, name, solver, seed, options, most):
        made.append((study, solver, seed))
        return {"certified": True, "work": 1.0, "outer": 1, "options": dict(options)}

    def tuned(self, name, solver):
        return {"best": {"options": best}, "work": 2.0, "trials": [{"options": o} for o in choices(get(solver))]}

    best = {"step_size": 16.0}
    monkeypatch.setattr(_paper_runs, "_run", run)
    monkeypatch.setattr(Runs, "_tuned", tuned)
    for _ in range(2):
        Runs(Store(tmp_path / "store.jsonl", KEYS)).all_of(("p",), range(2), range(1))
    assert len(made) == len(set(made)) + 3 * 4 + 3 == 2 * 6 + 15 + 4  # frequencies differ by their setting alone
    before = len(made)
    best["every"] = 2
    monkeypatch.setattr(SpiderPaper, "grid", {"every": (1, 2)})
    Runs(Store(tmp_path / "store.jsonl", KEYS)).all_of(("p",), range(2), range(1))
    assert {solver for _, solver, _ in made[before:]} == {
        "spider-paper"
    }  # another grid, another choice: runs of it alone
    assert len(made) == before + 2 + 5
    monkeypatch.setattr(_measure, "seconds_left", -1.0)
    runs = Runs(Store(None, KEYS))
    runs.all_of(("p",), range(2), range(1))
    assert not runs.store.rows


def test_summaries_are_medians_and_bounds():
    found = summary([row("spider-paper", work=work, certified=work < 9) for work in (1.0, 3.0, 9.0)], 2.0)
    assert (found["work"], found["range"], found["over_spider"]) == (3.0, "1 to 9", 1.5)
    assert found["range_of_that"] == "0.5 to 4.5"
    assert (found["certified"], found["uncertified"]) == ("2/3", "WORK_LIMIT") and found["share_of_searches"] == 0.25


def test_figures_are_drawn_from_what_is_stored():
    rows = three(SPAMBASE, (1.0, 2.0, 3.0), curve=CURVE)
    rows += [row("sg-hv-nc-paper", work=work, study="frequency", setting=s) for s, work in (("0.5", 9.0), ("0.9", 4.0))]
    found = report(rows, (SPAMBASE,), 1)
    assert found.conclusions[-1] == "5 of 27 runs are made; a second call makes the others."
    assert [shown["steps_between_searches"] for shown in found.tables["search frequencies"]] == pytest.approx([2, 10])
    stored = {"settings": found.settings, "tables": found.tables}
    for what in ("curves", "frequencies"):
        figure = draw(stored, what)
        assert figure.startswith("<svg") and "sg-hv-nc-paper" in figure

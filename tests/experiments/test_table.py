"""Tables compare certified runs alone, and claims stand beside what was measured."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from mescal import InputError, Tolerance
from mescal.cli.compare import with_options
from mescal.experiments import StoredRun, compare, product, table, task
from mescal.experiments.reproduce import CLAIMS, PROBLEMS, SOLVERS, checked, page, paper_tasks, summary
from mescal.experiments.table import HEAD, METRICS, Metric, Range, cells, count, latex, markdown, to_json
from mescal.report import tables
from mescal.report.grouping import arrange
from mescal.run.result import Seconds
from tests.report.stored import made_up, tally


def fake(problem, solver, seed, work, converged=True, tol=0.01):
    """A stored run with the numbers that a table reads."""
    config = task(problem, solver=solver, seed=seed, tol=tol).config()
    run = made_up(problem, solver, seed, tol=tol, status="certified" if converged else "work_limit", config=config)
    assert run.result is not None
    spent = replace(run.result.work, solver=tally(int(work - 2 * (work // 10)), int(work // 10)))
    seconds, outer = Seconds(5.0, 3.0, 0.1), 3
    result = replace(run.result, work=spent, seconds=seconds, outer_iterations=outer, objective=0.5 + seed)
    return replace(run, result=result)


def test_medians_ratios_and_certificates():
    works = {"spider": [100, 300, 200], "natasha2": [1000, 2000, 9000]}
    runs = [fake("fairness/bank", s, i, w) for s, ws in works.items() for i, w in enumerate(ws)]
    runs.append(fake("fairness/bank", "sg-hv-nc", 0, 50, converged=False))
    spider, natasha2, sg = compare(runs)
    assert spider.work == Range(200, 100, 300) and spider.ratio == 1 and spider.certified == spider.runs == 3
    assert natasha2.ratio == 10 and natasha2.medians["seconds"] == Range(2, 2, 2)
    assert natasha2.medians["objective"] == Range(1.5, 0.5, 2.5)
    assert sg.certified == 0 and sg.runs == 1 and sg.work is None and sg.ratio is None
    assert json.loads(json.dumps(to_json([natasha2])))[0]["work"] == {"median": 2000.0, "low": 1000.0, "high": 9000.0}
    assert cells(sg)[HEAD.index("work")] == "-" and cells(natasha2)[HEAD.index("ratio")] == "10"


def test_a_metric_is_one_entry(monkeypatch):
    """Every table has its column, the page too."""
    added = Metric("judged", "judged", "Judged", "the judge's own work", lambda r: r.work.certificate, "count")
    for module in (table, tables):
        monkeypatch.setattr(module, "METRICS", (*METRICS, added))
    monkeypatch.setattr(table, "IN_TERMINALS", [*table.IN_TERMINALS, added])
    runs = [fake("fairness/bank", solver, 0, 100) for solver in ("spider", "natasha2")]
    rows = compare(runs)
    assert to_json(rows)[0]["judged"]["median"] == runs[0].result.work.certificate
    assert len(cells(rows[0])) == len(HEAD) + 1
    assert "the judge&#x27;s own work" in tables.comparison(arrange(runs))


def test_ratios_are_within_a_problem_and_a_tolerance():
    runs = [
        fake("fairness/bank", "spider", 0, 100),
        fake("fairness/bank", "spider", 0, 1000, tol=0.001),
        fake("fairness/bank", "natasha2", 0, 2000, tol=0.001),
        fake("fairness/loan", "natasha2", 0, 2000),
    ]
    assert [row.ratio for row in compare(runs)] == [1, 1, 2, None]
    assert [row.ratio for row in compare(runs[1:3], "natasha2")] == [1, 0.5]


def test_rows_stand_together_by_problem_and_tolerance():
    """Runs come solver by solver from a sweep; rows are compared within a problem and a tolerance."""
    order = [
        (p, s, t) for p in ("fairness/loan", "fairness/bank") for s in ("natasha2", "spider") for t in (0.01, 0.001)
    ]
    rows = compare([fake(problem, solver, 0, 100, tol=tol) for problem, solver, tol in order])
    expected = [
        (p, Tolerance(t, t), s)
        for p in ("fairness/loan", "fairness/bank")
        for t in (0.01, 0.001)
        for s in ("spider", "natasha2")
    ]
    assert [(row.problem, row.tol, row.solver) for row in rows] == expected


def test_runs_that_have_not_ended_are_left_out():
    assert compare([StoredRun(Path("x"), task("saddles/circle").config())]) == []


def test_latex():
    table = latex(("problem", "x_1"), [("a_b", "1 [0 to 2]")])
    assert r"\begin{tabular}{lr}" in table and r"a\_b & 1 {[}0 to 2{]} \\" in table and r"\bottomrule" in table


def test_a_solver_with_options_is_compared_as_its_tables_write_it():
    assert with_options("spider") == ("spider", {})
    assert with_options("spider,batch=16,search=oja") == ("spider", {"batch": 16, "search": "oja"})
    (one,) = product(["saddles/circle"], [with_options("spider,batch=16")])
    assert one.options == {"batch": 16} and "spider,batch=16" in one.folder.as_posix()
    with pytest.raises(InputError, match="--option bach"):
        with_options("spider,bach=16")


def test_markdown():
    assert markdown(("a", "b"), [("1", "x|y")]) == "| a | b    |\n| - | ---- |\n| 1 | x\\|y |"


@pytest.mark.parametrize(("number", "text"), [(999999, "999,999"), (1.234e6, "1.23e6"), (5e12, "5e12"), (0, "0")])
def test_counts(number, text):
    assert count(number) == text


def test_the_papers_tasks():
    tasks = paper_tasks()
    assert {made.cone for made in tasks} == {
        "whole"
    }  # the paper tests the least eigenvalue of the augmented Lagrangian
    assert len(tasks) == 4 * 3 * 2 * 5 and len({t.folder for t in tasks}) == len(tasks)
    assert {t.record for t in tasks} == {"exact"} and {t.problem for t in tasks} == set(PROBLEMS)
    assert {claim.problem for claim in CLAIMS} == set(PROBLEMS)
    assert {claim.solver for claim in CLAIMS} == set(SOLVERS) - {"spider"}


def test_claims_stand_beside_measurements():
    runs = [fake("fairness/bank", s, 0, w) for s, w in (("spider", 100), ("sg-hv-nc", 700), ("natasha2", 3000))]
    runs += [fake("fairness/bank", s, 0, 10, tol=0.001) for s in SOLVERS]
    assert [(c.solver, c.ratio, m) for c, m in checked(compare(runs))] == [("sg-hv-nc", 10, 7), ("natasha2", 100, 30)]
    assert [claim["measured"] for claim in summary(runs)["claims"]] == [7, 30]
    text = page(runs)
    assert "one order of magnitude less work than SG-HV-NC" in text and "madelon" not in text
    assert "| fairness/bank | natasha2 |" in " ".join(text.split()) and "Medians over 1 seed," in text
    assert "objective" in text and "seconds" not in text

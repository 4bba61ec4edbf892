"""The harness of the benchmarks: stores that go on, profiles by hand, a judge that believes nobody, peers that solve."""

import importlib.util
import json
import math
from pathlib import Path
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from benchmarks import cutest, peers
from benchmarks.cutest import source
from benchmarks.cutest.noisy import picked
from benchmarks.harness import Answer, Budget, Task, judge, ours
from benchmarks.harness.functions import Functions
from benchmarks.harness.profiles import common_problems, data_profile, failures, performance_profile, shares
from benchmarks.harness.store import Store
from mescal import E, problems

TOL = 0.01
SOLUTION = np.array([0.0, 0.5, 0.5])


def small_problem() -> mescal.Problem:
    """min (x0 + 1)^2 + x1^2 + x2^2 + cos-shaped ripple  s.t.  x1 + x2 = 1,  x0 + x1 <= 2,  x >= 0: solved by (0, 1/2, 1/2)."""

    def objective(x):
        return (x[0] + 1) ** 2 + x[1] ** 2 + x[2] ** 2 + 0.1 * (1 - jnp.cos(x[1] - x[2]))

    return mescal.Problem(
        E(objective),
        {"sum": E(lambda x: x[1] + x[2]) == 1.0, "cap": E(lambda x: x[0] + x[1]) <= 2.0},
        mescal.sets.Box(np.zeros(3, np.float32), np.full(3, 5.0, np.float32)),
    )


@pytest.fixture(scope="module")
def task() -> Task:
    problem = small_problem()
    x0 = np.array([2.0, 0.1, 1.5], np.float32)
    return Task("small", problem, x0, TOL, 0, Budget(20_000, 60.0), problem, cone="critical")


def answer(x) -> Answer:
    return Answer(np.asarray(x), True, "sure", 1.0, 0.0)


# --- store and profiles -----------------------------------------------------------------------------------------------


def row(method, problem, certified=True, work=1.0, kind="peer", status="done", why=""):
    key = {"method": method, "problem": problem, "noise": 0.01, "seed": 0, "tol": TOL}
    rest = {"kind": kind, "status": status, "claims": True, "certified": certified, "why": why}
    return key | rest | {"work": work, "seconds": work}


def test_a_store_goes_on_where_it_was_stopped(tmp_path):
    path = tmp_path / "runs" / "store.jsonl"
    first = Store(path)
    first.add(row("a", "p") | {"stationarity": math.nan})
    again = Store(path)
    assert again.has("a", "p", 0.01, 0, TOL) and not again.has("a", "q", 0.01, 0, TOL)
    again.add(row("a", "q"))
    assert [kept["problem"] for kept in Store(path).all()] == ["p", "q"]
    assert json.loads(path.read_text().splitlines()[0])["stationarity"] is None


def test_profiles_by_hand():
    rows = [
        row("b", "p", work=10.0),
        row("b", "q", work=20.0),
        row("a", "p", work=5.0, kind="ours"),
        row("a", "q", work=1.0, kind="ours", certified=False, status="work limit", why="not feasible"),
        row("b", "r", work=3.0),
    ]
    assert common_problems(rows) == ["p", "q"]
    both = [r for r in rows if r["problem"] != "r"]
    assert list(data_profile(both, "work")) == ["a", "b"]  # ours come first
    assert data_profile(both, "work") == {"a": [[5.0, 0.5]], "b": [[10.0, 0.5], [20.0, 1.0]]}
    assert performance_profile(both, "work") == {"a": [[1.0, 0.5]], "b": [[1.0, 0.5], [2.0, 1.0]]}
    table = {line["method"]: line for line in shares(both)}
    assert table["a"]["share"] == 0.5 and table["a"]["of these refused"] == 1 and table["b"]["certified"] == 2
    assert failures(both) == [{"method": "a", "kind": "ours", "status": "work limit: not feasible", "problems": "q"}]


# --- the judge --------------------------------------------------------------------------------------------------------


def test_the_judge_believes_no_claim(task):
    assert judge(task, answer(SOLUTION)).certified
    refused = judge(task, answer([0.0, 0.6, 0.6]))
    assert not refused.certified and "not feasible" in refused.why
    assert "not stationary" in judge(task, answer([1.0, 0.5, 0.5])).why
    assert judge(task, answer([np.nan, 0.5, 0.5])).why == "the answer is not finite"


def test_the_judge_puts_points_on_bounds_that_are_active_to_the_tolerance(task):
    assert judge(task, answer([TOL / 2, 0.5, 0.5])).certified
    assert judge(task, answer([-TOL, 0.5, 0.5])).certified  # projected onto the domain


def test_the_judge_reports_the_best_reading():
    """100 (x - 0.005)^2 on x >= 0: putting x on the bound, which is near and towards which it is pushed, makes it worse."""
    problem = mescal.Problem(E(lambda x: 100 * (x[0] - 0.005) ** 2), domain=mescal.sets.NonNegative())
    near = Task("near", problem, np.ones(1, np.float32), TOL, 0, Budget(1e4, 5.0), problem)
    verdict = judge(near, answer([0.0051]))
    assert not verdict.certified and verdict.stationarity == pytest.approx(0.02, rel=0.01)
    assert judge(near, answer([0.005])).certified


# --- peers ------------------------------------------------------------------------------------------------------------


def test_hessians_of_peers_are_derivatives_of_their_gradients(task):
    functions = Functions(task.problem, task.x0)
    x, v, step = task.x0.astype(float), np.array([0.3, -0.2, 0.5]), 1e-6
    weights = np.array([0.7, -0.4])

    def gradient(y):
        found = functions.first(y)
        return 2.0 * found.gradient + weights @ found.jacobian

    difference = (gradient(x + step * v) - gradient(x - step * v)) / (2 * step)
    np.testing.assert_allclose(functions.hessian(x, 2.0, weights) @ v, difference, rtol=1e-6, atol=1e-6)
    assert functions.work == functions.passes + 2 * x.size  # one Hessian: a product per variable, each of weight 2
    passes, products = functions.passes, functions.products
    np.testing.assert_allclose(functions.hessian_operator(x, 2.0, weights).matvec(v), difference, rtol=1e-6, atol=1e-6)
    assert (functions.passes, functions.products) == (passes, products + 1)


def test_a_long_run_is_charged_what_the_process_had_and_not_the_wall_s_clock(task, monkeypatch):
    """40 seconds on the wall, of which 10 compiling, and 8 of CPU time: three quarters of these."""
    work, seconds = SimpleNamespace(total=1.0, certificate=1.0), SimpleNamespace(total=40.0, compile=10.0)
    told = {"work": work, "seconds": seconds, "x": task.x0, "multipliers": {}, "converged": True}
    result = SimpleNamespace(status=mescal.Status.CERTIFIED, **told)
    monkeypatch.setattr(ours, "clock", iter([0.0, 8.0]).__next__)
    answer = ours.Minimizer("fake", "ours", lambda task: result)._answer(task)  # pyright: ignore[reportArgumentType]
    assert (answer.seconds, answer.compile) == (6.0, 10.0)


METHODS = {method.name: method for method in peers.methods()}
DETERMINISTIC = ("AL + L-BFGS-B", "SLSQP", "trust-constr", "Ipopt", "POUNCE")
TRAINED = ("cooper", "humancompatible-train")


def peer(name: str):
    if name not in METHODS:
        pytest.skip(f"the package of {name} is not installed: it comes with the extra `peers`")
    return METHODS[name]


@pytest.mark.parametrize("name", DETERMINISTIC)
def test_deterministic_peers_solve_equations_inequalities_and_bounds(task, name):
    method = peer(name)
    assert method.declines(task) is None
    found = method.solve(task)
    verdict = judge(task, found)
    assert found.claims and verdict.certified, (found.status, verdict)
    assert 0 < found.work <= task.budget.work
    np.testing.assert_allclose(found.x, SOLUTION, atol=0.05)


@pytest.mark.parametrize("name", DETERMINISTIC)
def test_deterministic_peers_end_with_their_budget(task, name):
    tight = Task(task.name, task.problem, task.x0, 1e-9, 0, Budget(3, 60.0), task.judged, memo=task.memo)
    found = peer(name).solve(tight)
    assert not found.claims and found.work <= 3 + 2 * task.x0.size and np.isfinite(found.x).all()


@pytest.mark.parametrize("name", TRAINED)
def test_torch_peers_train_to_the_solution(task, name):
    """No noise, so no threshold to derive: 1500 steps of Adam at the best of three rates come within five tolerances."""
    method = peer(name)
    found = method.solve(Task("small", task.problem, task.x0, TOL, 0, Budget(1500 * 256, 60.0), task.judged))
    assert found.claims is None and found.work == 1500 * 256
    np.testing.assert_allclose(found.x, SOLUTION, atol=5 * TOL)


def test_the_penalty_barrier_method_declines_equations_and_trains_under_inequalities(task):
    """As above, and with all bounds met to a few tolerances although it starts where they are not."""
    method = peer("penalty-barrier")
    assert "equations" in str(method.declines(task))
    small = problems.get("synthetic/neyman-pearson", classes=3, rows=50, d=3)
    given = Task("small", small.problem, small.x0, TOL, 0, Budget(1500 * 256, 60.0), small.problem)
    assert method.declines(given) is None
    verdict = judge(given, method.solve(given))
    assert verdict.feasibility <= 5 * TOL and verdict.stationarity <= 5 * TOL


# --- CUTEst -----------------------------------------------------------------------------------------------------------


def test_the_picked_list_obeys_its_rule():
    rows = picked()
    assert len(rows) >= 40 and len({r["name"] for r in rows}) == len(rows)
    assert all(r["m"] < r["n"] <= 20 and (r["m"] or r["bounds"]) for r in rows)
    assert len({r["kind"] for r in rows}) == 3


@pytest.mark.filterwarnings("ignore")  # of the collection's own files
def test_noise_has_mean_zero_and_averages_shrink():
    if not source.available():
        pytest.skip("sif2jax is not installed: it comes with the extra `peers`")
    instance = cutest.load("HS39")
    solution, sigma = np.array([1.0, 1.0, 0.0, 0.0]), 0.1
    exact = Functions(instance.exact, instance.x0).first(solution)
    assert exact.objective == pytest.approx(-1.0) and np.abs(exact.constraint).max() < 1e-6
    for draws in (1, 10_000):
        seen = Functions(instance.average(sigma, draws, 3), instance.x0).first(solution)
        # entries of the gradient are N(0, sigma^2/draws): six deviations fail in 4 * 2e-9 of all seeds, and this seed is fixed
        error = np.abs(seen.gradient - exact.gradient)
        assert 0 < error.max() < 6 * sigma / np.sqrt(draws)
    assert instance.noisy(0.0) is instance.exact
    assert instance.noisy(sigma).bind(instance.x0)[0].population is None


# --- pictures ---------------------------------------------------------------------------------------------------------


def test_profiles_are_drawn_with_the_names_of_their_methods():
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: it comes with the extra `plot`")
    pytest.importorskip("docutils", reason="docutils is not installed: it comes with the extra `docs`")
    path = Path(__file__).parents[1] / "docs" / "benchmark_profiles.py"
    spec = importlib.util.spec_from_file_location("benchmark_profiles", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    curves = {"spider": [[1e3, 0.5], [1e4, 1.0]], "SLSQP": [[2e3, 0.5]], "cooper": []}
    kinds = {"spider": "ours", "SLSQP": "peer", "cooper": "peer"}
    picture = module.draw({"data, work": curves, "performance, work": curves}, kinds)
    assert picture.startswith("<svg") and all(name in picture for name in kinds)
    assert picture == module.draw({"data, work": curves, "performance, work": curves}, kinds)  # the same bytes
    many = {f"{kind} {i}": kind for kind in ("ours", "baseline", "peer") for i in range(8)}
    drawn = [tuple(look.values()) for look in module.appearances(many).values()]
    assert len(set(drawn)) == len(many)  # no two lines are alike

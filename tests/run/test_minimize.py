"""minimize: what it promises for every solver on a small problem, every way to stop, and what it refuses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E, Status, Tolerance
from mescal.errors import InputError

pytestmark = pytest.mark.quick

SOLVERS = ("spider", "sg-hv-nc", "natasha2", "newton-cg", "scr")
RNG = np.random.default_rng(0)
POSITIVES = (RNG.normal(size=(400, 4)) + 0.5).astype(np.float32)
NEGATIVES = (RNG.normal(size=(300, 4)) - 0.5).astype(np.float32)
X0 = np.zeros(4, np.float32)
TRACES: list[int] = []


def score(w, a):
    TRACES.append(1)
    return jax.nn.sigmoid(a @ w)


def miss(w, a):
    return 1 - score(w, a)


def ridge(w):
    return w @ w


@pytest.fixture(scope="module")
def problem():
    """A small ridge keeps the minimiser near: no tolerance is met far out."""
    objective = E(miss, over=POSITIVES) + 0.01 * E(ridge)
    return mescal.Problem(objective, {"rate": E(score, over=NEGATIVES) <= 0.2})


@pytest.fixture(scope="module")
def solved(problem):
    """By name; solved when first asked for, so that no process solves what its tests do not look at."""

    class Solved(dict):
        def __missing__(self, name):
            self[name] = mescal.minimize(problem, X0, solver=name, tol=0.005, seed=0)
            return self[name]

    return Solved()


@pytest.mark.parametrize("name", [*SOLVERS[:4], pytest.param("scr", marks=pytest.mark.slow)])
class TestEverySolver:
    def test_certified_and_confirmed(self, problem, solved, name):
        result = solved[name]
        assert result.converged and result.status is Status.CERTIFIED
        again = mescal.certify(problem, result.x, result.multipliers, slack=result.slack, tol=0.005)
        assert again.passes(0.005)
        assert result.certificate.constraints["rate"] <= 0.005
        assert result.multipliers["rate"] >= 0

    def test_prints_a_few_readable_lines(self, solved, name):
        text = str(solved[name])
        assert text.startswith("CERTIFIED") and 5 <= len(text.splitlines()) <= 12
        assert name in text and "  rate: 0." in text and " <= 0.2, " in text and "; multiplier" in text

    def test_work_and_seconds_add_up(self, solved, name):
        result = solved[name]
        assert result.work.total == pytest.approx(result.work.gradients + 2 * result.work.hvps)
        assert result.work.certificate > 0
        assert 0 <= result.seconds.compile <= result.seconds.total
        assert result.history[-1].work <= result.work.total

    def test_history_has_a_row_per_outer_iteration(self, solved, name):
        history = solved[name].history
        assert len(history) == solved[name].outer_iterations
        assert np.all(np.diff(history.column("work")) > 0)
        assert np.allclose(history.column("penalty"), 1.1 ** (1 + np.arange(len(history))))
        header, *lines = history.to_csv().splitlines()
        assert header.startswith("outer,work") and len(lines) == len(history)

    def test_no_inner_solve_goes_up(self, solved, name):
        for row in solved[name].history:
            assert row.value_end <= row.value_start + 1e-6 * max(1, abs(row.value_start))

    def test_same_seed_same_bits_other_seed_other_path(self, problem, solved, name):
        again = mescal.minimize(problem, X0, solver=name, tol=0.005, seed=0)
        other = mescal.minimize(problem, X0, solver=name, tol=0.005, seed=1)
        assert np.array_equal(again.x, solved[name].x)
        assert again.work.total == solved[name].work.total
        if name not in ("newton-cg", "scr"):  # which look at a population of this size whole
            assert not np.array_equal(other.x, again.x)

    def test_nothing_recompiles(self, problem, solved, name):
        """Another start, seed and tolerance, and 30 outer iterations: no function is traced again, nothing is compiled."""
        assert solved[name].seconds.compile >= 0  # compiled by now
        before = len(TRACES)
        other = mescal.minimize(problem, X0 + 0.1, solver=name, tol=0.01, seed=3)
        many = mescal.minimize(
            problem, X0, solver=name, tol=1e-7, seed=4, max_outer=30, outer=mescal.Outer(max_inner=40)
        )
        assert len(TRACES) == before and other.seconds.compile == many.seconds.compile == 0

    def test_stop_reasons(self, problem, name):
        few = mescal.minimize(problem, X0, solver=name, tol=1e-7, max_outer=1, outer=mescal.Outer(max_inner=50))
        assert few.status is Status.OUTER_LIMIT and not few.converged and len(few.history) == 1
        work = mescal.minimize(problem, X0, solver=name, tol=1e-7, max_work=2000)
        assert work.status is Status.WORK_LIMIT
        time = mescal.minimize(problem, X0, solver=name, tol=1e-7, max_seconds=1e-3)
        assert time.status is Status.TIME_LIMIT
        stopped = mescal.minimize(problem, X0, solver=name, tol=1e-7, callback=lambda row: row.outer == 2)
        assert stopped.status is Status.STOPPED and len(stopped.history) == 3
        for result in (few, work, time, stopped):
            assert np.isfinite(result.x).all() and not result.certificate.passes(1e-7)
            assert "NOT CERTIFIED" in str(result) and result.status.advice in str(result)

    def test_ctrl_c_returns_what_there_is(self, problem, name):
        def interrupt(row):
            if row.outer == 1:
                raise KeyboardInterrupt

        result = mescal.minimize(problem, X0, solver=name, tol=1e-7, callback=interrupt)
        assert result.status is Status.INTERRUPTED and len(result.history) == 2 and np.isfinite(result.x).all()

    def test_an_infeasible_problem_is_said_to_be_one(self, name):
        """x^2 + 1 <= 0.5 has no solution; its violation is least at 0."""
        rows = np.linspace(-1, 1, 50, dtype=np.float32)
        infeasible = mescal.Problem(
            E(lambda x, a: (x[0] - a) ** 2, over=rows), {"c": E(lambda x, a: x[0] ** 2 + 1 + 0 * a, over=rows) <= 0.5}
        )
        result = mescal.minimize(infeasible, np.array([0.3], np.float32), solver=name, tol=0.01, max_outer=60)
        assert result.status is Status.INFEASIBLE and result.outer_iterations < 60
        assert result.certificate.regularity < 1e-3

    def test_nan_at_the_start_and_half_way(self, name):
        rows = np.ones((40, 1), np.float32)

        def cliff(x, a):
            """NaN beyond x = 1, downhill towards it."""
            return jnp.where(x[0] > 1, jnp.nan, -x[0] * a[0])

        broken = mescal.Problem(E(cliff, over=rows), {}, mescal.sets.Box(-2.0, 2.0))
        at_once = mescal.minimize(broken, np.array([1.5], np.float32), solver=name, max_outer=3)
        assert at_once.status is Status.NOT_FINITE and at_once.x == 1.5
        later = mescal.minimize(broken, np.array([0.0], np.float32), solver=name, max_outer=3)
        assert later.status in (Status.NOT_FINITE, Status.OUTER_LIMIT) and not later.converged and 0 < later.x[0] <= 1
        assert np.isfinite(later.objective)


def test_warm_continuation(problem, solved):
    """Where a run ended, the same tolerance costs a look and a certificate; a tighter one starts from there."""
    again = mescal.minimize(problem, tol=0.005, start=solved["spider"], solver="spider")
    assert again.converged and again.outer_iterations == 1 and np.array_equal(again.x, solved["spider"].x)
    assert again.work.total < solved["spider"].work.total
    tighter = mescal.minimize(problem, tol=0.001, start=solved["spider"], solver="spider")
    assert tighter.converged and tighter.objective < solved["spider"].objective


def test_relative_tolerance_is_reached(problem):
    result = mescal.minimize(problem, X0, tol=Tolerance(0.01, 0.01, relative=0.01), seed=0, solver="spider")
    assert result.converged and result.certificate.relative_stationarity.upper <= 0.01


@pytest.mark.parametrize(("factor", "row", "tol"), [(1e3, 1e3, 0.05), (1e-4, 1e-3, 1e-6)])
def test_scales_are_undone(factor, row, tol):
    """Objective and constraint far from unit scale: the right point, and the multiplier -2 factor / row, unscaled."""
    rows = {"a": POSITIVES, "factor": np.full(400, factor, np.float32), "row": np.full(400, row, np.float32)}
    scaled = mescal.Problem(E(stretched, over=rows), {"c": E(stretched_row, over=rows) == 0.0})
    result = mescal.minimize(scaled, X0, tol=Tolerance(gradient=tol, curvature=tol), solver="spider")
    assert result.converged, str(result)
    np.testing.assert_allclose(result.x, POSITIVES.mean(0) + np.eye(4)[0], atol=0.01)
    np.testing.assert_allclose(result.multipliers["c"], -2 * factor / row, rtol=0.02)


@pytest.mark.parametrize("factor", [1e-6, 1e6])
@pytest.mark.parametrize("row", [1e-6, 1e6])
def test_extreme_scales_are_certified_or_refused_with_advice(factor, row):
    """Twelve orders of magnitude between objective and constraint are more than float32 holds; alike, they are no trouble."""
    rows = {"a": POSITIVES, "factor": np.full(400, factor, np.float32), "row": np.full(400, row, np.float32)}
    scaled = mescal.Problem(E(stretched, over=rows), {"c": E(stretched_row, over=rows) == 0.0})
    tol = 0.01 * min(factor, row)
    result = mescal.minimize(scaled, X0, tol=tol, solver="spider", max_outer=30)
    assert result.converged == result.certificate.passes(tol)
    if factor == row:
        assert result.converged
        np.testing.assert_allclose(result.x, POSITIVES.mean(0) + np.eye(4)[0], atol=0.01)
    elif not result.converged:
        assert result.status.advice in str(result)


def stretched(w, r):
    return r["factor"] * jnp.sum((w - r["a"]) ** 2)


def stretched_row(w, r):
    return r["row"] * (w[0] - r["a"][0] - 1)


@pytest.mark.parametrize(("seed", "share"), [pytest.param(3, 0.7, marks=pytest.mark.slow), (7, 0.4)])
def test_values_that_differ_by_rounding_do_not_stall_a_solve(seed, share):
    """Prices of 40 to 55 in float32: a rounding of the weights' sum moves L by 5e-6, more than a last step does.

    With values alone to tell points apart, inner solves do not move: 4.7e6 and 1.6e7 evaluations instead of 1.3e5.
    """
    rng = np.random.default_rng(seed)
    means, deviations = np.array([0.25, 0.45, 0.7, 0.85, 0.95, 0.35]), np.array([1.2, 3.2, 4.3, 5.6, 6.3, 4.6])
    months = means + deviations * (rng.normal(size=(600, 1)) + rng.normal(size=(600, 6))) / np.sqrt(2)

    def gain(x, r):
        return r @ x["w"]

    target = share * months.mean(0).max() + (1 - share) * months.mean(0).mean()
    problem = mescal.Problem(
        E(lambda x, r: (gain(x, r) - x["m"]) ** 2, over=months),
        {"return": E(gain, over=months) >= target},
        mescal.sets.Product(w=mescal.sets.Simplex(), m=mescal.sets.Reals()),
    )
    x0 = {"w": np.full(6, 1 / 6, np.float32), "m": np.float32(0.5)}
    result = mescal.minimize(problem, x0, solver="newton-cg", tol=1e-3, cone="critical")
    assert result.converged, str(result)
    assert result.work.total < 1e6


def test_exact_records_are_apart(problem):
    result = mescal.minimize(problem, X0, tol=0.01, record="exact", solver="spider")
    assert result.history[0].outer == -1 and result.history[0].objective == pytest.approx(0.5)
    assert len(result.history) == 1 + result.outer_iterations
    for row in result.history:
        assert set(row.exact) == {"stationarity", "feasibility", "curvature", "objective"}
    assert result.history[-1].exact["feasibility"] == pytest.approx(result.certificate.feasibility.value, abs=1e-6)
    plain = mescal.minimize(problem, X0, tol=0.01, solver="spider")
    assert plain.work.total == result.work.total and plain.work.certificate < result.work.certificate


def test_pytree_parameters(problem):
    split = mescal.Problem(
        E(lambda p, a: miss(jnp.append(p["w"], p["b"]), a), over=POSITIVES),
        {"rate": E(lambda p, a: score(jnp.append(p["w"], p["b"]), a), over=NEGATIVES) <= 0.2},
    )
    result = mescal.minimize(split, {"w": X0[:3], "b": X0[3]}, tol=0.01, solver="spider")
    assert result.converged and set(result.x) == {"w", "b"} and result.x["w"].shape == (3,)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"solver": "spidr"}, "did you mean 'spider'"),
        ({"solver": 3}, "solver=3"),
        ({"tol": 0}, "tolerance"),
        ({"tol": -1.0}, "tolerance"),
        ({"max_work": -5}, "max_work"),
        ({"max_seconds": 0}, "max_seconds"),
        ({"max_outer": 0}, "max_outer"),
        ({"seed": 1.5}, "seed"),
        ({"seed": -1}, "seed"),
        ({"cone": "paperr"}, "cone"),
        ({"outer": None}, "outer=None"),
        ({"outer": {"growth": 2.0}}, r"outer=\{'growth': 2.0\}"),
        ({"confidence": "high"}, "confidence"),
        ({"record": "all"}, "record"),
        ({"callback": 3}, "callback"),
        ({"start": "x"}, "start"),
    ],
)
def test_refused_arguments(problem, options, words):
    with pytest.raises(InputError, match=words) as caught:
        mescal.minimize(problem, X0, **options)
    assert "Expected: " in str(caught.value) and "What to do: " in str(caught.value)


@pytest.mark.parametrize(
    "given", [{"penalty": 0}, {"penalty": "1"}, {"growth": 1.0}, {"growth": None}, {"max_inner": 2.5}], ids=str
)
def test_refused_settings_of_the_outer_loop(given):
    ((name, value),) = given.items()
    with pytest.raises(InputError, match=f"{name}={value!r}") as caught:
        mescal.Outer(**given)
    assert "Expected: " in str(caught.value) and "What to do: " in str(caught.value)


def test_refused_starts(problem):
    with pytest.raises(InputError, match="NaN"):
        mescal.minimize(problem, np.array([0, np.nan, 0, 0], np.float32))
    with pytest.raises(InputError, match="neither x0 nor start"):
        mescal.minimize(problem)
    boxed = mescal.Problem(E(miss, over=POSITIVES), {}, mescal.sets.Box(-1.0, 1.0))
    with pytest.raises(InputError, match="outside"):
        mescal.minimize(boxed, X0 + 2)
    with pytest.raises(InputError, match=r"a mescal\.Problem"):
        mescal.minimize(miss, X0)  # pyright: ignore[reportArgumentType]


def test_unknown_options_of_a_solver():
    with pytest.raises(InputError, match="no option"):
        mescal.solvers.get("spider", perod=3)
    assert mescal.solvers.get("spider", period=16).period == 16

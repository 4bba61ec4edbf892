"""Several starts: where they lie, that the best certified one is returned, that budgets hold for all, and what is refused."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E, Starts, Status
from mescal.run.starts import place


def wells(x):
    """Minimisers near -1 and 1, the lower one near -1."""
    return jnp.sum((x**2 - 1) ** 2 + 0.3 * x)


@pytest.fixture(scope="module")
def problem():
    """Two wells and a constraint that holds in both."""
    return mescal.Problem(E(wells), {"size": E(lambda x: jnp.sum(x**2)) <= 4.0}, mescal.sets.Box(-3.0, 3.0))


@pytest.fixture(scope="module")
def best(problem):
    return mescal.minimize(problem, np.array([1.0]), tol=1e-4, solver="newton-cg", starts=Starts(12, reach=2.0))


def lower_well() -> float:
    """The global minimum of (x^2 - 1)^2 + 0.3 x, from its cubic's roots."""
    roots = np.roots([4.0, 0.0, -4.0, 0.3]).real
    return float(min((roots**2 - 1) ** 2 + 0.3 * roots))


def test_the_best_certified_one_is_returned(problem, best):
    alone = mescal.minimize(problem, np.array([1.0]), tol=1e-4, solver="newton-cg")
    assert best.converged and best.objective == pytest.approx(lower_well(), abs=1e-6)
    assert alone.objective > best.objective + 0.5
    spread = best.spread
    assert spread.tried[0].objective == alone.objective and spread.tried[0].work == alone.work.total
    assert len(spread.tried) == 12 and spread.certified == 12 and spread.distinct == 2
    assert spread.objectives.min() == best.objective == spread.tried[spread.chosen].objective
    assert {one.minimiser for one in spread.tried} == {0, 1} and spread.tried[spread.chosen].minimiser == 0
    assert repr(spread) == str(spread)
    assert f"best of 12 starts (number {spread.chosen}): 12 certified" in str(best) and "at least 2 distinct" in str(
        best
    )


def test_it_is_the_run_from_its_start_and_work_is_the_sum(problem, best):
    """Bit for bit what `minimize` finds from that start."""
    begun = place(problem, np.array([1.0]), best.spread.chosen, seed=0, reach=2.0)
    again = mescal.minimize(problem, begun, tol=1e-4, solver="newton-cg")
    assert np.array_equal(again.x, best.x) and again.objective == best.objective
    assert best.work.total == pytest.approx(sum(one.work for one in best.spread.tried))
    assert best.work.total > again.work.total and best.history[-1].work <= again.work.total


def test_nothing_is_compiled_for_further_starts(problem, best):
    with mescal.testing.count_compilations() as compiled:
        mescal.minimize(problem, np.array([1.0]), tol=1e-4, solver="newton-cg", starts=3, seed=1)
    assert compiled.count == 0


class TestPlaces:
    X0 = {"w": np.full((3, 4), 2.0, np.float32), "b": np.zeros(4), "tiny": np.full(2, 1e-3)}  # noqa: RUF012

    def test_types_structure_and_repeatability(self, problem):
        free = mescal.Problem(E(lambda p: p["w"].sum()))
        one, again, other, seeded = (place(free, self.X0, k, s) for k, s in ((1, 0), (1, 0), (2, 0), (1, 1)))
        assert jax.tree.structure(one) == jax.tree.structure(self.X0)
        assert one["w"].dtype == np.float32 and one["b"].shape == (4,)
        leaves = [np.concatenate([np.ravel(v) for v in jax.tree.leaves(x)]) for x in (one, again, other, seeded)]
        assert np.array_equal(leaves[0], leaves[1])
        assert not np.isclose(leaves[0], leaves[2]).any() and not np.isclose(leaves[0], leaves[3]).any()

    @pytest.mark.parametrize("reach", [0.5, 1.0, 4.0])
    def test_distances_follow_the_scale(self, reach):
        """E|x_k - x0|^2 = reach^2 sum_l n_l s_l^2. The mean of 400 chi-squares of 18 degrees is off by 4 sigma at the rate 6e-5."""
        free, n = mescal.Problem(E(lambda p: p["w"].sum())), 18
        vector = np.concatenate([np.ravel(np.asarray(v, float)) for v in jax.tree.leaves(self.X0)])
        common = np.linalg.norm(vector) / np.sqrt(n)
        sizes = np.concatenate([np.full(4, common), np.full(2, common), np.full(12, max(common, 2.0))])
        moved = [
            np.concatenate([np.ravel(v) for v in jax.tree.leaves(place(free, self.X0, k, 0, reach))])
            for k in range(1, 401)
        ]
        ratio = np.mean([np.sum(((np.asarray(m, float) - vector) / (reach * sizes)) ** 2) for m in moved])
        assert ratio == pytest.approx(n, abs=4 * np.sqrt(2 * n / 400))

    def test_from_zero_they_are_one_away(self):
        free = mescal.Problem(E(lambda x: x.sum()))
        lengths = [np.linalg.norm(place(free, np.zeros(400), k, 0)) for k in range(1, 9)]
        assert np.allclose(lengths, 1.0, atol=0.2)  # chi with 400 degrees: sigma 0.035, over 5 of them

    @pytest.mark.parametrize("domain", [mescal.sets.Box(-0.5, 0.5), mescal.sets.Simplex()])
    def test_they_lie_in_the_domain(self, domain):
        inside = mescal.Problem(E(lambda x: x.sum()), domain=domain)
        x0 = np.asarray(domain.project(np.full(5, 0.2)))
        for k in range(1, 5):
            assert bool(domain.contains(place(inside, x0, k, 0, 3.0)))


class TestBudgets:
    def test_work_holds_for_all(self, problem, best):
        most = 2.5 * best.spread.tried[0].work
        few = mescal.minimize(problem, np.array([1.0]), tol=1e-4, solver="newton-cg", starts=50, max_work=most)
        assert len(few.spread.tried) < 50 and few.spread.asked == 50
        assert few.work.total <= most + max(one.work for one in best.spread.tried)
        assert f"best of 50 starts, {len(few.spread.tried)} of them begun" in str(few)

    def test_seconds_hold_for_all(self, problem, best):
        begun = time.perf_counter()
        found = mescal.minimize(problem, np.array([1.0]), tol=1e-4, solver="newton-cg", starts=10**6, max_seconds=0.5)
        assert time.perf_counter() - begun < 10 and found.seconds.total >= 0.5
        assert found.converged and len(found.spread.tried) < 10**6

    def test_a_callback_ends_all(self, problem, best):
        rows = []
        result = mescal.minimize(
            problem,
            np.array([1.0]),
            tol=1e-9,
            solver="newton-cg",
            starts=5,
            callback=lambda row: rows.append(row) or True,
        )
        assert len(rows) == 1 == len(result.spread.tried)
        assert result.status is (Status.CERTIFIED if result.certificate.passes(1e-9) else Status.STOPPED)


def test_where_none_is_certified_the_least_violated_is_returned():
    """c = 1 + x^2 cannot hold: at x = 0 it is violated least."""
    problem = mescal.Problem(E(lambda x: -jnp.sum(x)), {"never": E(lambda x: jnp.sum(x**2)) <= -1.0})
    result = mescal.minimize(problem, np.array([0.5]), solver="newton-cg", starts=3, max_outer=6)
    assert not result.converged and result.spread.certified == 0 == result.spread.distinct
    assert result.certificate.violation.value == min(one.violation for one in result.spread.tried)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"starts": 0}, "starts=0"),
        ({"starts": 2.5}, "starts=2.5"),
        ({"starts": True}, "starts=True"),
        ({"starts": 2, "checkpoint": "runs/none"}, "checkpoint="),
    ],
)
def test_refusals(problem, asked, words):
    with pytest.raises(mescal.InputError) as error:
        mescal.minimize(problem, np.array([1.0]), **asked)
    assert words in error.value.found and error.value.expected and error.value.advice


def test_a_stored_run_says_how_its_starts_came_out(tmp_path, problem, best):
    from mescal.experiments import write_config, write_result

    write_config(tmp_path, {"problem": "wells", "solver": "newton-cg", "seed": 0, "tol": 1e-4})
    stored = write_result(tmp_path, best, problem="wells", about={})
    assert stored.result.spread == best.spread and str(stored.result) == str(best)

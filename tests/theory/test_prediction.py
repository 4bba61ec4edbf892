"""`predict`: its numbers by hand on a problem with known constants, its units, its text and JSON, and what it refuses."""

import dataclasses
import json
import math

import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E, theory
from mescal.errors import InputError, InputTypeError
from mescal.theory.units import rescale

# f = A cos(w u), c = b v on |v| <= 1, noise sigma_c on c alone, m = 1: L_{grad c} = L_{hess c} = 0.
A, W, B, NOISE = 0.125, 1.85, 0.4, 0.05
EPS_G, EPS_H, PENALTY, GROWTH = 0.1, 0.3, 1.0, 4.0
CONSTANTS = theory.ProblemConstants(
    dimension=2, constraint_count=1,
    objective_bound=A, objective_gradient_bound=A * W, constraint_bound=B, jacobian_bound=B,
    constraint_hessian_bound=0.0, regularity=B,
    objective_gradient_lipschitz=A * W**2, objective_hessian_lipschitz=A * W**3,
    constraint_gradient_lipschitz=0.0, constraint_hessian_lipschitz=0.0,
    constraint_noise=NOISE,
)  # fmt: skip
TOL = mescal.Tolerance(EPS_G, EPS_H)


@pytest.fixture(scope="module")
def predicted():
    return theory.predict(CONSTANTS, tol=TOL, penalty=PENALTY, growth=GROWTH)


def test_outer_numbers_by_hand(predicted):
    """gamma sums to 1.6276 al_0 (kappa_c + sigma_c); K* = ceil(log_4((eps + kappa_grad f + kappa_J Lambda)/(C_reg eps)))."""
    total = 1.6276 * PENALTY * (B + NOISE)
    assert predicted.schedule.multiplier_bound == pytest.approx(total, rel=1e-4)
    ratio = (EPS_G + A * W + B * total) / (B * PENALTY * EPS_G)
    assert predicted.iterations == math.ceil(math.log(ratio, GROWTH)) == 2
    assert predicted.last_penalty == 16
    assert predicted.dual_samples == 1  # (0.05/0.1)^2
    assert theory.predict(CONSTANTS, tol=0.01).dual_samples == 25


def test_subproblem_constants_by_hand(predicted):
    """L_g = A w^2 + al b^2, L_H = A w^3, s_g = al b sigma_c, s_H = 2 L_g, gap 2A + Lambda^2/al_0 + al b^2."""
    for at, penalty in ((predicted.first, 1), (predicted.last, 16)):
        assert at.gradient_lipschitz == pytest.approx(A * W**2 + penalty * B**2)
        assert at.hessian_lipschitz == pytest.approx(A * W**3)
        assert at.gradient_noise == pytest.approx(penalty * B * NOISE)
        assert at.hessian_noise == pytest.approx(2 * at.gradient_lipschitz)
        assert at.gap == pytest.approx(2 * A + predicted.schedule.multiplier_bound**2 + penalty * B**2)
    sharp = theory.predict(CONSTANTS, tol=TOL, penalty=PENALTY, growth=GROWTH, sharp=True)
    assert sharp.last.hessian_noise == 0  # no Hessian of this problem is noisy


def test_the_single_loop_stands_beside_them():
    """Given constants; problems only where they are equalities on all of space. Its probability needs no copies."""
    found = theory.predict(CONSTANTS, tol=TOL, probability=0.9).single_loop
    assert found is not None
    constants = theory.merit.merit_constants(CONSTANTS, EPS_G, EPS_G)
    assert found.constants == constants and found.holds == 0.9
    assert found.parameters == theory.null_space.parameters(constants, EPS_G, EPS_H, failure=1 - 0.9)
    f, c = E(lambda x: jnp.sum(x**2)), E(lambda x: x[0])
    for stated, there in (
        (mescal.Problem(f, {"c": c == 0}), True),
        (mescal.Problem(f, {"c": c <= 0}), False),
        (mescal.Problem(f, {"c": c == 0}, mescal.sets.Ball(2.0)), False),
        (mescal.Problem(f), False),
    ):
        said = theory.predict(stated, np.ones(2, np.float32), TOL)
        assert (said.single_loop is not None) == there and ("null-space" in str(said)) == there


def test_solver_numbers_by_hand(predicted):
    """SG-HV-NC at k = 0: B = ceil(5 (3 s_g/eps_g)^2), search at eps_H; Natasha2: d/L_H, B = 64 (s_g/eps_g)^2."""
    by_name = {forecast.solver: forecast for forecast in predicted.solvers}
    assert {name: f.success for name, f in by_name.items()} == {"sg-hv-nc": 5 / 8, "natasha2": 2 / 3, "spider": 1 / 2}
    first = by_name["sg-hv-nc"].last
    assert first.reset_batch == math.ceil(5 * (3 * 16 * B * NOISE / EPS_G) ** 2)
    assert first.search_tolerance == pytest.approx(EPS_H)
    assert by_name["natasha2"].last.curvature_step == pytest.approx(EPS_H / 3 / (A * W**3))
    assert by_name["natasha2"].last.epoch_batch == math.ceil(64 * (16 * B * NOISE / EPS_G) ** 2)
    assert by_name["spider"].first.stop_threshold == pytest.approx(2 * EPS_G / 3)


def test_work_is_that_of_the_theorems(predicted):
    for forecast in predicted.solvers:
        for bound in forecast.bounds:
            whole = theory.sample_complexity(
                forecast.solver, CONSTANTS, predicted.schedule, EPS_G, EPS_H, gap_bound=bound.statement
            )
            assert (bound.work, bound.evaluations) == (whole.cost.total, whole.evaluations)
            dear = theory.sample_complexity(
                forecast.solver, CONSTANTS, predicted.schedule, EPS_G, EPS_H, gap_bound=bound.statement, search="paper"
            )
            assert bound.by_search == {"lanczos": bound.work, "paper": dear.cost.total} and dear.cost.total > bound.work
            assert bound.rate == str(theory.solver_rate(forecast.solver, bound.statement))
        certain, likely = forecast.bounds
        assert certain.holds == 1 and likely.holds == pytest.approx(forecast.success**predicted.iterations)
        assert likely.exponent == certain.exponent - 1 and likely.work <= certain.work
        assert forecast.boosted > certain.work and forecast.copies > 1


def test_exponents_of_the_paper(predicted):
    """Theorems 4.2, 4.4, 4.6: eps_g^-5 eps_H^-5 rules all three at eps_g = eps_H, for certain; one less likely."""
    assert [[b.exponent for b in f.bounds] for f in predicted.solvers] == [[10, 9]] * 3


@pytest.mark.parametrize(("s", "r", "t"), [(7.3, 0.19, 1.0), (0.02, 3.1, 11.0)])
def test_nothing_depends_on_units(predicted, s, r, t):
    """f -> s f, x -> r x, c -> t c: counts, exponents and work stay; a sum of counts may round by one in each."""
    other = theory.predict(
        rescale(CONSTANTS, s, r, t),
        tol=mescal.Tolerance(EPS_G * s / r, EPS_H * s / r**2),
        penalty=PENALTY * s / t**2,
        growth=GROWTH,
        feasibility=EPS_G * t,
    )
    assert (other.iterations, other.dual_samples) == (predicted.iterations, predicted.dual_samples)
    for mine, theirs in zip(predicted.solvers, other.solvers, strict=True):
        assert mine.copies == theirs.copies
        assert theirs.boosted == pytest.approx(mine.boosted, rel=1e-3)
        for left, right in zip(mine.bounds, theirs.bounds, strict=True):
            assert right.work == pytest.approx(left.work, rel=1e-3)


def test_prints_a_table(predicted):
    text = str(predicted)
    assert text.startswith("MESCAL to eps_g = 0.1, eps_H = 0.3, |c| <= 0.1: K* = 2 (penalty 1 to 16)")
    for word in ("as given", "regularity", "eps_g^-5 eps_H^-5", "deterministic", "parameters of spider", "block steps"):
        assert word in text
    assert max(map(len, text.splitlines())) <= 132


def test_turns_into_json(predicted):
    read = json.loads(predicted.to_json())
    assert read["iterations"] == 2 and read["estimated"] is False
    assert read["constants"] == dataclasses.asdict(CONSTANTS)
    assert [s["solver"] for s in read["solvers"]] == ["sg-hv-nc", "natasha2", "spider"]
    assert read["solvers"][0]["bounds"][0]["work"] == predicted.solvers[0].bounds[0].work


def test_a_problem_has_its_constants_estimated():
    signs = np.array([1.0, -1.0], np.float32)
    problem = mescal.Problem(
        E(lambda x: A * jnp.cos(W * x[0])),
        {"c": E(lambda x, s: B * x[1] + NOISE * s, over=signs) == 0},
        mescal.sets.Box(np.array([-3.0, -1.0]), np.array([3.0, 1.0])),
    )
    predicted = theory.predict(problem, np.array([0.1, 0.9], np.float32), TOL, penalty=PENALTY, growth=GROWTH)
    assert predicted.estimated and "a forecast, not a bound" in str(predicted)
    assert predicted.iterations == 2
    assert predicted.constants == theory.estimate(problem, np.array([0.1, 0.9], np.float32))
    known = theory.predict(problem, tol=TOL, constants=CONSTANTS, penalty=PENALTY, growth=GROWTH)
    assert not known.estimated and known.constants == CONSTANTS


def test_both_prices_of_a_search_are_printed(predicted):
    """The default is the search that runs; the other one stands beside it."""
    dear = theory.predict(CONSTANTS, tol=TOL, penalty=PENALTY, growth=GROWTH, search="paper")
    assert "paper's search" in str(predicted) and "lanczos" in str(dear) and "lanczos" not in str(predicted)
    for here, there in zip(predicted.solvers, dear.solvers, strict=True):
        assert there.bounds[0].work == here.bounds[0].by_search["paper"]
        assert there.bounds[0].by_search == here.bounds[0].by_search and there.boosted > here.boosted
    assert predicted.population is None and json.loads(dear.to_json())["search"] == "paper"


def test_a_population_bounds_resets_and_searches():
    """Two rows: resets are exact, and a search is at most d + 1 exact products."""
    signs = np.array([1.0, -1.0], np.float32)
    stated = mescal.Problem(
        E(lambda x: A * jnp.cos(W * x[0])), {"c": E(lambda x, s: B * x[1] + NOISE * s, over=signs) == 0}
    )
    found = theory.predict(stated, tol=TOL, constants=CONSTANTS, penalty=PENALTY, growth=GROWTH)
    assert found.population == 2
    for forecast in found.solvers:
        assert forecast.last.exact_resets


def test_what_it_refuses():
    problem = mescal.Problem(E(lambda x: x @ x))
    with pytest.raises(InputError, match="without x0"):
        theory.predict(problem)
    with pytest.raises(InputTypeError, match=r"a mescal\.Problem"):
        theory.predict("problem")  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="tol="):
        theory.predict(CONSTANTS, 0.05)  # would else be taken for x0, and the tolerance be the default
    for bad in (0.0, -1.0, math.inf):
        with pytest.raises(InputError, match="positive finite"):
            theory.predict(CONSTANTS, tol=bad)
    with pytest.raises(InputTypeError, match="Tolerance"):
        theory.predict(CONSTANTS, tol="small")
    with pytest.raises(InputError, match="growth"):
        theory.predict(CONSTANTS, growth=1.0)

"""Scalars beside the user's parameters, wherever these go: judge, other data, files, checkpoints, other runs; and their names."""

import equinox as eqx
import jax
import numpy as np
import pytest
from jax.sharding import Mesh

import mescal
from mescal import E
from mescal.errors import InputError
from mescal.experiments.store import write_config, write_result
from mescal.problem import Population

Z = np.random.default_rng(0).normal(size=61)
ONE = np.array([1.0])


def square(x, v):
    return (x[0] - v) ** 2


def line(x, v):
    return x[0] * v


SIZE = E(lambda x: x @ x)


def bounded_tail():
    return mescal.Problem(SIZE, {"c": mescal.cvar(square, 0.9, over=Z) <= 3.5})


# ---- the judge


def test_the_judge_finds_the_scalar_of_a_tail_by_itself():
    """The derivative in t vanishes where E sigmoid((f - t)/width) = 1 - level; the quantile of 61 rows is off by up to 10/61."""
    problem = mescal.Problem(mescal.cvar(square, 0.9, over=Z))
    result = mescal.minimize(problem, np.zeros(1), tol=1e-3, seed=0)
    assert mescal.certify(problem, result.x).passes(mescal.Tolerance(1e-3, 1e-3))
    lifted = problem.lifted(ONE).auxiliary["objective: quantile"]
    assert np.mean(1 / (1 + np.exp((lifted - square(ONE, Z)) / 0.01))) == pytest.approx(0.1, abs=1e-9)


@pytest.mark.parametrize("x0", [0.0, 0.3, 1.0])
def test_a_denominator_that_may_change_its_sign_is_held_at_its_floor(x0):
    problem = mescal.Problem(E(square, over=Z) / E(lambda x: x[0]))
    certificate = mescal.certify(problem, np.zeros(1))
    assert abs(certificate.constraints["objective: denominator"]) == pytest.approx(0.01)
    result = mescal.minimize(problem, np.array([x0]), tol=1e-4, seed=0)
    assert result.converged and float(result.x[0]) == pytest.approx(
        np.sqrt(np.mean(Z**2)), abs=1e-3
    )  # (x^2 - 2mx + s)/x


def test_a_start_outside_of_what_parts_lie_between_is_a_violation():
    problem = mescal.Problem(mescal.of(lambda a: a, SIZE, between=(0, 1)))
    assert mescal.certify(problem, np.array([3.0])).violation.value == pytest.approx(8.0)


@pytest.mark.parametrize(
    ("problem", "x", "said"),
    [
        (mescal.Problem(mescal.variance(lambda x, v: v * jax.numpy.log(x[0]), over=Z)), -ONE, "has the value nan"),
        (mescal.Problem(mescal.variance(lambda x, v: v * (x @ np.ones(4)), over=Z)), ONE, "failed on parameters"),
        (mescal.Problem(mescal.variance(lambda x, v: v * np.ones(3), over=Z)), ONE, "one number per sample"),
        (
            mescal.Problem(mescal.variance(line, over=Z), {}, mescal.sets.Box(-1.0, 0.5)),
            ONE,
            "outside of Box(-1.0, 0.5)",
        ),
    ],
)
def test_what_is_wrong_at_a_point_is_said_in_the_users_terms(problem, x, said):
    with pytest.raises(InputError) as raised:
        mescal.certify(problem, x)
    assert said in str(raised.value) and "Lifted" not in str(raised.value)


# ---- comparisons from either side


def test_an_expectation_may_stand_on_the_left():
    x = np.array([0.3])
    tail = mescal.cvar(line, 0.9, over=Z)
    left = mescal.Problem(SIZE, {"c": E(square, over=Z) >= tail})
    right = mescal.Problem(SIZE, {"c": tail <= E(square, over=Z)})
    values = [float(mescal.certify(problem, x).constraints["c"]) for problem in (left, right)]
    assert (
        values[0] == values[1] == pytest.approx(tail.value(x) - np.mean(square(x, Z)), abs=0.07)
    )  # 0.01 ln 2 / 0.1 of smoothing
    with pytest.raises(InputError, match="bounded from below"):
        mescal.Problem(SIZE, {"c": E(square, over=Z) <= tail})


def test_equations_with_multiples_and_sums():
    ratio, of = E(square, over=Z) / E(lambda x: x[0] + 1), mescal.of(lambda a: a * a, E(square, over=Z))
    for stated, value in (
        (2 * of == 4.0, 2 * of.value(ONE) - 4),
        (ratio + 1 == of, ratio.value(ONE) + 1 - of.value(ONE)),
    ):
        constraints = mescal.certify(mescal.Problem(SIZE, {"c": stated}), ONE).constraints
        assert float(constraints["c"]) == pytest.approx(value)
        assert all(abs(rows) < 1e-12 for name, rows in constraints.items() if "value" in name or "denom" in name)


def test_the_worst_of_tails_and_of_what_is_left_of_a_ratio():
    members = {"tail": mescal.cvar(line, 0.5, over=Z), "rest": 1 - E(square, over=Z) / E(lambda x: x[0] + 3)}
    worst = mescal.worst(members)
    problem = mescal.Problem(worst + 0.1 * SIZE, {}, mescal.sets.Box(-2.0, 2.0))
    result = mescal.minimize(problem, ONE, tol=1e-4, seed=0)
    grid = np.linspace(-2, 2, 4001)
    losses = np.sort(grid[:, None] * Z, axis=1)
    t = losses[:, [int(np.ceil(0.5 * Z.size)) - 1]]
    tail = t[:, 0] + np.maximum(losses - t, 0).mean(axis=1) / 0.5
    rest = 1 - ((grid[:, None] - Z) ** 2).mean(axis=1) / (grid + 3)
    best = (np.maximum(tail, rest) + 0.1 * grid**2).min()
    assert result.converged and result.objective == pytest.approx(
        best, abs=0.014 + 1e-3
    )  # 0.01 ln 2 / 0.5 of smoothing


@pytest.mark.parametrize("operation", [lambda s: s**2, abs, float, lambda s: s @ s, lambda s: s / 0])
def test_operations_that_statements_have_not(operation):
    with pytest.raises(InputError, match="What to do"):
        operation(mescal.cvar(square, 0.9, over=Z))


# ---- names


@pytest.mark.parametrize("turned", [False, True])
def test_no_constraint_is_lost_to_another_of_its_name(turned):
    stated = {"both[0]": E(square, over=Z) <= 7, "both": mescal.worst([E(square, over=Z)]) <= 1}
    with pytest.raises(InputError, match=r"two constraints called 'both\[0\]'"):
        mescal.Problem(SIZE, dict(reversed(stated.items())) if turned else stated)
    with pytest.raises(InputError, match="two constraints called"):
        mescal.Problem(SIZE, {"p (denominator)": SIZE <= 7, "p": E(square, over=Z) / E(square, over=Z) <= 1})


# ---- parameters, data, other runs


def test_parameters_with_static_leaves():
    model = eqx.nn.MLP(1, "scalar", 2, 1, key=jax.random.key(0))
    problem = mescal.Problem(mescal.variance(lambda m, v: m(v[None]), over=Z))
    spread = np.var([float(model(jax.numpy.asarray([v], np.float32))) for v in Z])
    assert mescal.certify(problem, model).objective.value == pytest.approx(spread, rel=1e-4)  # the sum in float32


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_over_several_devices_that_they_do_not_fill(weighted):
    devices = Mesh(np.array(jax.devices()), ("rows",))
    weights = np.arange(61) + 1.0 if weighted else None
    values = [
        mescal.certify(mescal.Problem(mescal.variance(line, over=rows, weights=weights)), ONE).objective.value
        for rows in (Z, mescal.shard(Z, devices))
    ]
    assert values == pytest.approx([float(np.cov(Z, aweights=weights, ddof=0))] * 2, rel=1e-12)


def test_a_subsample_has_scalars_of_its_own_rows():
    half = mescal.subsample(mescal.Problem(mescal.variance(line, over=Z)), 20)
    for problem, rows in ((half, 20), (mescal.subsample(half, 10), 10)):
        source = problem.sources[0]
        assert isinstance(source, Population)
        drawn = source.at(np.arange(rows)).samples
        assert mescal.certify(problem, ONE).objective.value == pytest.approx(np.var(drawn), rel=1e-12)


def test_a_run_goes_on_without_the_statements_of_the_one_before():
    first = mescal.minimize(bounded_tail(), ONE, tol=0.1, seed=0)
    assert mescal.minimize(
        mescal.Problem(SIZE, {"c": E(square, over=Z) <= 3.5}), start=first, tol=0.01, seed=0
    ).converged


def test_callbacks_are_given_the_users_parameters():
    seen = []
    mescal.minimize(bounded_tail(), ONE, tol=0.01, seed=0, callback=lambda _, x: seen.append(np.shape(x)) and None)
    assert set(seen) == {(1,)}


# ---- checkpoints and files


def test_a_checkpoint_holds_the_scalars(tmp_path):
    x0, loss = {"a": np.ones(2)}, lambda x, v: (x["a"][0] - v) ** 2 + (x["a"][1] - 1) ** 4
    problem = lambda: mescal.Problem(E(lambda x: x["a"] @ x["a"]), {"c": mescal.cvar(loss, 0.9, over=Z) <= 3.1})
    asked = {"tol": 1e-3, "seed": 0, "solver": "spider"}
    whole = mescal.minimize(problem(), x0, **asked)
    cut = mescal.minimize(problem(), x0, **asked, max_outer=1, checkpoint=tmp_path)
    assert not cut.converged
    resumed = mescal.resume(tmp_path, problem(), max_outer=100)
    assert resumed.converged and np.array_equal(resumed.x["a"], whole.x["a"]) and resumed.auxiliary == whole.auxiliary


def test_a_stored_run_holds_the_scalars(tmp_path):
    result = mescal.minimize(bounded_tail(), ONE.astype(np.float32), tol=0.01, seed=0, solver="null-space")
    write_config(tmp_path / "run", {"problem": "own"})
    stored = write_result(tmp_path / "run", result, problem="own", about={}).result
    assert stored is not None and stored.auxiliary == result.auxiliary
    assert mescal.minimize(bounded_tail(), start=stored, tol=0.01, seed=0).converged

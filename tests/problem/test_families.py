"""Families: groups with the same functions have one call site, and every value is that of the groups one by one, in numpy."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E
from mescal.oracle import look
from mescal.oracle.access import sum_rows
from mescal.oracle.draw import draw_rows
from mescal.oracle.evaluator import evaluator_of
from mescal.problem import Rows

RNG = np.random.default_rng(7)
D = 3
SIZES = (5, 1, 12, 3, 8, 2, 17, 4, 9, 6)
GROUPS = [RNG.normal(size=(size, D)) for size in SIZES]
EVERYBODY = RNG.normal(size=(30, D))
WEIGHTS = [RNG.uniform(0.5, 2.0, size) for size in SIZES]
X = np.array([0.4, -0.7, 0.2])
WEIGHT = RNG.normal(size=len(SIZES))  # of the constraints


def loss(w, a):
    return 0.5 * jnp.sum((w - a) ** 2)


def rate(w, a):
    return jax.nn.sigmoid(a @ w)


def both(w, a):
    """Two numbers per row."""
    return jnp.stack([jax.nn.sigmoid(a @ w), jnp.sum(a * w**2)])


class Dense:
    """Mean, gradient and Hessian of `rate`, or of one output of `both`, over some rows."""

    def __init__(self, rows: np.ndarray, weights: np.ndarray | None = None, squares: bool = False):
        share = np.full(len(rows), 1 / len(rows)) if weights is None else weights / weights.sum()
        p = 1 / (1 + np.exp(-rows @ X))
        if squares:
            self.value, self.gradient = share @ (rows @ X**2), share @ (rows * 2 * X)
            self.hessian = np.diag(2 * share @ rows)
        else:
            self.value, self.gradient = share @ p, share @ (rows * (p * (1 - p))[:, None])
            self.hessian = (rows * (share * p * (1 - p) * (1 - 2 * p))[:, None]).T @ rows


def per_group(bound: float = 0.5):
    return mescal.Problem(
        E(loss, over=EVERYBODY), {f"group {g}": E(rate, over=rows) <= bound for g, rows in enumerate(GROUPS)}
    )


def parity():
    """Every group's rate less everybody's, and twice the last but one less the first."""
    gaps = {f"gap {g}": E(rate, over=rows) - E(rate, over=EVERYBODY) <= 0.1 for g, rows in enumerate(GROUPS)}
    return mescal.Problem(
        E(loss, over=EVERYBODY), gaps | {"pair": 2 * E(rate, over=GROUPS[-2]) - E(rate, over=GROUPS[0]) == 0.3}
    )


def weighted():
    rows = enumerate(zip(GROUPS, WEIGHTS, strict=True))
    return mescal.Problem(E(loss, over=EVERYBODY), {f"{g}": E(rate, over=r, weights=w) <= 0.5 for g, (r, w) in rows})


def vectors():
    return mescal.Problem(
        E(loss, over=EVERYBODY), {f"{g}": E(both, over=rows) <= np.array([0.5, 2.0]) for g, rows in enumerate(GROUPS)}
    )


def split_objective():
    """Groups that feed the objective, each with a coefficient of its own, and a constraint."""
    body = sum((g * E(rate, over=rows) for g, rows in enumerate(GROUPS, start=1)), start=E(lambda w: w @ w))
    return mescal.Problem(body, {f"{g}": E(rate, over=rows) >= 0.2 for g, rows in enumerate(GROUPS)})


def expected(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """f, c, gradient, Jacobian and the Hessians of f and of every row of c."""
    groups = [Dense(rows) for rows in GROUPS]
    f = 0.5 * np.mean(np.sum((X - EVERYBODY) ** 2, axis=1))
    first, second, bounds = X - EVERYBODY.mean(0), np.eye(D), 0.5
    if name == "parity":
        all_ = Dense(EVERYBODY)
        gaps = [(1, g, -1, all_) for g in groups] + [(2, groups[-2], -1, groups[0])]
        rows = [[a * getattr(u, part) + b * getattr(v, part) for a, u, b, v in gaps] for part in PARTS]
        bounds = np.array([*[0.1] * len(SIZES), 0.3])
    elif name == "split objective":
        rows = [[-getattr(g, part) for g in groups] for part in PARTS]
        weights = np.arange(1, len(SIZES) + 1)
        f = X @ X + sum(a * g.value for a, g in zip(weights, groups, strict=True))
        first = 2 * X + sum(a * g.gradient for a, g in zip(weights, groups, strict=True))
        second = 2 * np.eye(D) + sum(a * g.hessian for a, g in zip(weights, groups, strict=True))
        bounds = -0.2
    else:
        if name == "weighted":
            groups = [Dense(rows, weights) for rows, weights in zip(GROUPS, WEIGHTS, strict=True)]
        elif name == "vectors":
            groups = [Dense(rows, squares=squares) for rows in GROUPS for squares in (False, True)]
            bounds = np.tile([0.5, 2.0], len(SIZES))
        rows = [[getattr(g, part) for g in groups] for part in PARTS]
    return f, np.array(rows[0]) - bounds, first, np.array(rows[1]), np.array([second, *rows[2]])


PARTS = ("value", "gradient", "hessian")
PROBLEMS = {
    "per group": per_group,
    "parity": parity,
    "weighted": weighted,
    "vectors": vectors,
    "split objective": split_objective,
}


def sites(function, *arguments) -> int:
    """How often the function of the groups is written down in a program: once for every call site."""
    return str(jax.make_jaxpr(function)(*arguments)).count("= logistic")


# What is joined ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["per group", "weighted", "vectors", "split objective"])
def test_groups_of_one_function_are_one_family_with_one_call_site(name):
    problem = PROBLEMS[name]()
    program, x = problem.bind(X)
    joined = [family for family in program.families if len(family.members) > 1]
    assert [family.sizes for family in joined] == [SIZES]
    assert len(program.families) == (1 if name == "split objective" else 2)
    with jax.enable_x64(True):
        assert sites(look.values, program, problem.device_data(program), jnp.asarray(x)) == 1


def test_a_group_in_more_constraints_than_the_others_stands_alone():
    """The first and the last but one are in one constraint more than the others: with other coefficients, but of one kind."""
    program, _ = parity().bind(X)
    assert sorted(len(family.members) for family in program.families) == [1, 2, 8]


def test_a_function_in_many_constraints_is_evaluated_once_per_row():
    names = ("a", "b", "c", "d")
    problem = mescal.Problem(
        E(lambda w, a: 1 - rate(w, a), over=EVERYBODY),
        {name: k * E(rate, over=EVERYBODY) <= k for k, name in enumerate(names, start=1)},
    )
    program, x = problem.bind(X)
    (family,) = program.families
    assert len(family.terms) == 5 and family.fed == ((0, 1, 2, 3),)
    with jax.enable_x64(True):
        rows = Rows(jnp.asarray(EVERYBODY))
        # once for the objective, whose function is another one, and once for the four constraints
        assert sites(lambda v: program.contribution(0, v, rows), jnp.asarray(x)) == 2
    at = evaluator_of(problem, program).at(x)
    np.testing.assert_allclose(at.constraint, np.arange(1, 5) * (Dense(EVERYBODY).value - 1), rtol=1e-12)


def closing_over(table):
    return lambda w, a: jax.nn.sigmoid((a * table) @ w)


def test_functions_that_close_over_different_arrays_are_not_joined():
    tables = [RNG.normal(size=D) for _ in range(3)]
    one = closing_over(tables[0])
    problem = mescal.Problem(
        E(loss, over=EVERYBODY),
        {
            "same": E(one, over=GROUPS[0]) <= 0.5,
            "function": E(one, over=GROUPS[2]) <= 0.5,
            "other": E(closing_over(tables[1]), over=GROUPS[4]) <= 0.5,
            "arrays": E(closing_over(tables[2]), over=GROUPS[6]) <= 0.5,
        },
    )
    program, x = problem.bind(X)
    assert sorted(len(family.members) for family in program.families) == [1, 1, 1, 2]
    at = evaluator_of(problem, program).at(x)
    pairs = zip((0, 2, 4, 6), (0, 0, 1, 2), strict=True)
    wanted = [np.mean(1 / (1 + np.exp(-(GROUPS[g] * tables[t]) @ X))) - 0.5 for g, t in pairs]
    np.testing.assert_allclose(at.constraint, wanted, rtol=1e-12)


def test_functions_with_the_same_equations_are_joined():
    """One lambda per group, as a loop makes them; a number that differs makes another function."""
    problem = mescal.Problem(
        E(loss, over=EVERYBODY), {f"{g}": E(lambda w, a: rate(w, a), over=rows) <= 0.5 for g, rows in enumerate(GROUPS)}
    )
    assert len(problem.bind(X)[0].families) == 2
    problem = mescal.Problem(
        E(loss, over=EVERYBODY),
        {f"{g}": E(lambda w, a, g=g: rate(w, a) ** g, over=rows) <= 0.5 for g, rows in enumerate(GROUPS, start=1)},
    )
    assert len(problem.bind(X)[0].families) == 11


def test_other_shapes_types_and_weights_are_not_joined():
    rows, few = RNG.normal(size=(6, D)), RNG.normal(size=(4, D))

    def first(w, a):
        return a[0] * w[0]

    def joined(*sources) -> int:
        bodies = {f"{k}": E(first, **source) <= 0 for k, source in enumerate(sources)}
        return len(mescal.Problem(E(lambda w: w @ w), bodies).bind(X)[0].families)

    assert joined({"over": rows}, {"over": few}) == 1
    assert joined({"over": rows}, {"over": few[:, :2]}) == 2
    assert joined({"over": rows}, {"over": few.astype(np.float32)}) == 2
    assert joined({"over": rows}, {"over": few, "weights": np.ones(4)}) == 2
    assert joined({"over": rows, "weights": np.ones(6)}, {"over": few, "weights": np.arange(1.0, 5.0)}) == 1
    assert joined({"over": rows}, {"over": mescal.stream(few)}) == 2


# What is computed --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROBLEMS)
def test_looks_equal_numpy(name):
    problem = PROBLEMS[name]()
    program, x = problem.bind(X)
    looks = evaluator_of(problem, program)
    f, c, gradient, jacobian, hessians = expected(name)
    at = looks.at(x)
    np.testing.assert_allclose(at.objective, f, rtol=1e-12)
    np.testing.assert_allclose(at.constraint, c, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(at.gradient, gradient, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(at.jacobian, jacobian, rtol=1e-11, atol=1e-14)
    weight = np.random.default_rng(1).normal(size=len(c))
    wanted, directions = np.tensordot([1, *weight], hessians, 1), RNG.normal(size=(D, 2))
    np.testing.assert_allclose(looks.hessian(x, weight), wanted, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(looks.hessian_times(x, weight, directions), wanted @ directions, rtol=1e-11, atol=1e-13)
    objective, values = looks.values(x)
    np.testing.assert_allclose([objective, *values], [f, *c], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(looks.slope(x, 0.5, weight), 0.5 * gradient + weight @ jacobian, rtol=1e-11, atol=1e-14)


def test_a_look_tells_how_large_samples_are():
    """Mean and mean square of what each family adds to f, and mean squares of what every row of c is made of."""
    problem = per_group()
    program, x = problem.bind(X)
    at = evaluator_of(problem, program).at(x)
    losses = 0.5 * np.sum((X - EVERYBODY) ** 2, axis=1)
    np.testing.assert_allclose(at.moments, [[losses.mean(), np.mean(losses**2)], [0, 0]], rtol=1e-12)
    np.testing.assert_allclose(at.squares, [np.mean((1 + np.exp(-rows @ X)) ** -2.0) for rows in GROUPS], rtol=1e-12)


@pytest.mark.parametrize("rows", [1, 4, 7, 100])
def test_chunks_of_any_size_count_every_row_once_and_for_its_own_group(rows):
    """Chunks of so many rows, which end with one group and hold rows of the next."""
    problem = weighted()
    program, _ = problem.bind(X)
    family = next(k for k, family in enumerate(program.families) if len(family.members) > 1)
    with jax.enable_x64(True):
        data = problem.device_data(program)[family]

        @jax.jit
        def sums(data, x):
            def body(taken, mask, member, x):
                counted = jnp.ones(taken.weights.shape) if mask is None else mask
                _, c = program.contribution(family, x, taken, member)
                return program.spread(family, counted @ c, member), jnp.sum(counted)

            return sum_rows(body, data, SIZES, rows * 8 * (D + 1), x)

        found, counted = sums(data, jnp.asarray(X))
    pairs = zip(GROUPS, WEIGHTS, SIZES, strict=True)
    np.testing.assert_allclose(found, [size * Dense(r, w).value for r, w, size in pairs], rtol=1e-12)
    assert int(counted) == sum(SIZES)


def test_the_oracle_of_solvers_equals_numpy(make_lagrangian):
    """The augmented Lagrangian over the groups: value, gradient, and products with its Hessian."""
    f, c, gradient, jacobian, hessians = expected("per group")
    multipliers, penalty, slack = WEIGHT, 2.0, RNG.uniform(size=len(SIZES))
    with jax.enable_x64(True):
        oracle = make_lagrangian(per_group(), X, multipliers, penalty, dtype=np.float64)
        z = jnp.asarray([*X, *slack])
        at, _ = jax.jit(lambda oracle, z: oracle.exact(z))(oracle, z)
        v = RNG.normal(size=z.size)
        product, _ = jax.jit(lambda oracle, z, v, at: oracle.exact_hvp(z, v, at))(oracle, z, jnp.asarray(v), at)
    c, jacobian = c + slack, np.concatenate([jacobian, np.eye(len(SIZES))], axis=1)
    weight = multipliers + penalty * c
    hessian = penalty * jacobian.T @ jacobian
    hessian[:D, :D] += np.tensordot([1, *weight], hessians, 1)
    np.testing.assert_allclose(at.value, f + multipliers @ c + penalty / 2 * c @ c, rtol=1e-12)
    np.testing.assert_allclose(at.constraint, c, rtol=1e-12)
    np.testing.assert_allclose(at.gradient, [*gradient, *np.zeros(len(SIZES))] + weight @ jacobian, rtol=1e-11)
    np.testing.assert_allclose(product, hessian @ v, rtol=1e-11)


# What is drawn -----------------------------------------------------------------------------------------------------------

FEW = 4  # groups: what is not joined takes long to compile


def few(joined: bool):
    """Rates of some groups; or, group by group, functions none of which has the equations of another: a rate times 1, 2, ..."""
    bodies = {
        f"{g}": E(rate if joined else lambda w, a, g=g: rate(w, a) * (1.0 + g), over=rows) == 0
        for g, rows in enumerate(GROUPS[:FEW])
    }
    return mescal.Problem(E(loss, over=EVERYBODY), bodies)


@jax.jit
def drawn(program, data, key):
    """16 samples of every family, and what they add to F and C."""
    rows = draw_rows(program, data, key, 0, 16)
    return rows, program.evaluate(jnp.asarray(X), rows, 16)


def test_draws_and_estimates_are_those_of_groups_that_stand_alone(make_lagrangian, key):
    found = []
    for joined in (True, False):
        problem = few(joined)
        program, _ = problem.bind(X)
        assert len(program.families) == (2 if joined else 1 + FEW)
        with jax.enable_x64(True):
            rows, outputs = jax.tree.map(np.asarray, drawn(program, problem.device_data(program), key))
            scale = 1.0 if joined else np.arange(1.0, 1 + FEW)
            oracle = make_lagrangian(problem, X, WEIGHT[:FEW] / scale, 0.0, dtype=np.float64)
            gradient, _ = jax.jit(lambda oracle: oracle.gradient(jnp.asarray(X), key, 24))(oracle)
        by_source = {}
        for family, part in zip(program.families, rows, strict=True):
            assert part.samples.shape == (len(family.members), 16, D)
            by_source |= dict(zip(family.members, part.samples, strict=True))
        found.append((by_source, outputs[0], outputs[1] / scale, np.asarray(gradient)))
    for one, other in zip(*map(jax.tree.leaves, found), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    rows, f, c, _ = found[0]
    for source, population in enumerate([EVERYBODY, *GROUPS[:FEW]]):
        taken = {row.tobytes() for row in rows[source]}
        assert taken <= {row.tobytes() for row in population}
        assert len(taken) > len(population) / 4
    np.testing.assert_allclose(f, 0.5 * np.sum((X - rows[0]) ** 2, axis=1), rtol=1e-12)
    wanted = [1 / (1 + np.exp(-rows[source] @ X)) for source in range(1, 1 + FEW)]
    np.testing.assert_allclose(c, np.stack(wanted, axis=1), rtol=1e-12)


def test_members_keep_their_places_among_the_sources():
    program, _ = per_group().bind(X)
    assert sorted(itertools.chain(*(family.members for family in program.families))) == list(range(11))

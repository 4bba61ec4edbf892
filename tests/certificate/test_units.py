"""Units: stating a constraint a million times larger or smaller changes no verdict and no curvature.

Lengths of directions are those of x. A slack s = -c(x) moves as fast as the unit of its constraint makes it: with its length in
the denominator, d'Hd / |d|^2 of a maximum is as small as one likes.
"""

import jax
import numpy as np
import pytest

import mescal
from mescal import E
from mescal.certificate.scalars import Determined, completed, frame_of
from mescal.sets import Box

UNITS = [1e-6, 1.0, 1e6]
STEEP = [1.0, 1e6]  # where what is inactive is so by more than the tolerance, which is one in units of constraints too
TOLERANCE = 0.01
POPULATION = np.zeros((1, 1))
STREAM = mescal.Sampler(lambda key: 1e-9 * jax.random.normal(key, (1,)))  # rows of mean zero
SOURCES = [POPULATION, STREAM]
FIRST, SECOND, THIRD = (E(lambda x, i=i: x[i] ** 2) for i in range(3))  # factors of these are data: programs are shared


def first(x, r):
    return x[0] + r[0]


def certified(problem, x, **options):
    x = np.asarray(x, float) if isinstance(x, list) else x
    return mescal.certify(problem, x, tol=TOLERANCE, seed=0, **options)


def decides(found, curvature):
    """Whether a certificate says that the least curvature is this, and passes where that is positive."""
    assert found.curvature.value == pytest.approx(curvature, rel=1e-6), found
    assert found.passes(TOLERANCE) == (curvature > 0), found


@pytest.mark.parametrize("source", SOURCES, ids=["population", "stream"])
@pytest.mark.parametrize("unit", UNITS)
def test_an_inactive_constraint_hides_no_maximum(source, unit):
    """a x^2 + 3 y^2 with x <= 2, at 0: a saddle where a < 0."""
    far = {"far": unit * (E(first, over=source) - 2) <= 0}
    for a in (-1.0, 1.0):
        decides(certified(mescal.Problem(a * FIRST + 3 * SECOND, far), [0, 0]), 2 * a)


@pytest.mark.parametrize("source", SOURCES, ids=["population", "stream"])
@pytest.mark.parametrize("unit", UNITS)
def test_a_constraint_that_pushes_holds_in_any_unit(source, unit):
    """-x - x^2 + a y^2 with x <= 0: the multiplier is 1/unit, x is held, and along y the curvature is 2a."""
    held = {"held": unit * E(first, over=source) <= 0}
    for a in (-1.0, 1.0):
        problem = mescal.Problem(-E(lambda x: x[0]) - FIRST + a * SECOND, held)
        given = {"multipliers": {"held": 1 / unit}, "slack": {"held": 0.0}}
        decides(certified(problem, [0, 0], **given), 2 * a)


@pytest.mark.parametrize("source", SOURCES, ids=["population", "stream"])
@pytest.mark.parametrize("unit", STEEP)
def test_an_inactive_constraint_makes_no_slope_stationary(source, unit):
    """min x + y^2 with -x <= 2, at 0, with any multiplier."""
    problem = mescal.Problem(E(lambda x: x[0]) + SECOND, {"far": unit * (E(first, over=source) + 2) >= 0})
    for given in (
        {},
        {"multipliers": {"far": 1 / unit}},
        {"multipliers": {"far": 1 / unit}, "slack": {"far": 2 * unit}},
    ):
        found = certified(problem, [0, 0], **given)
        assert not found.passes(TOLERANCE), found
        assert found.stationarity.value >= 1 - 1e-6


@pytest.mark.parametrize("unit", UNITS)
def test_a_multiplier_of_the_wrong_sign_makes_no_slope_stationary(unit):
    """min x with x <= 0, at 0: moving inwards improves, however small the multiplier -1/unit is."""
    problem = mescal.Problem(E(lambda x: x[0]), {"wall": unit * E(lambda x: x[0]) <= 0})
    for given in (
        {},
        {"multipliers": {"wall": -1 / unit}},
        {"multipliers": {"wall": -1 / unit}, "slack": {"wall": 0.0}},
    ):
        found = certified(problem, [0.0], **given)
        assert not found.passes(TOLERANCE)
        assert found.stationarity.value == pytest.approx(1)


@pytest.mark.parametrize("unit", STEEP)
def test_a_multiplier_of_an_inactive_constraint_bends_nothing(unit):
    """min -x^2 with x^2 <= 4, near 0: a multiplier of 1/unit would make the Lagrangian flat."""
    problem = mescal.Problem(-1 * FIRST, {"far": unit * (FIRST - 4) <= 0})
    for given in ({}, {"multipliers": {"far": 1 / unit}, "slack": {"far": 4 * unit}}):
        found = certified(problem, [1e-3], **given)
        assert not found.passes(TOLERANCE)
        assert found.curvature.value == pytest.approx(-2)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("other", [1e-6, 1e6])
def test_weakly_active_constraints_bound_a_cone_in_any_units(unit, other):
    """x^2 + y^2 + 2 b x y with x, y >= 0 as constraints, at 0: the curvature on the quadrant is 2 for b = 2, and -2 for b = -2."""
    for b in (2.0, -2.0):
        problem = mescal.Problem(
            FIRST + SECOND + 2 * b * E(lambda x: x[0] * x[1]),
            {"first": unit * E(lambda x: x[0]) >= 0, "second": other * E(lambda x: x[1]) >= 0},
        )
        decides(certified(problem, [0, 0]), b)


@pytest.mark.parametrize("unit", UNITS)
def test_a_steep_row_that_pushes_beside_a_weakly_active_one(unit):
    """-x + 3 y^2 + a z^2 with x <= 0 and y + z <= 0: the second does not push, and half a line has the curvature of a line."""
    rows = {"held": unit * E(lambda x: x[0]) <= 0, "weak": 1e6 * E(lambda x: x[1] + x[2]) <= 0}
    for a in (-1.0, 1.0):
        decides(certified(mescal.Problem(-E(lambda x: x[0]) + 3 * SECOND + a * THIRD, rows), [0, 0, 0]), 2 * a)


@pytest.mark.parametrize("source", SOURCES, ids=["population", "stream"])
@pytest.mark.parametrize("unit", UNITS)
def test_an_equality_decides_the_same_in_any_unit(source, unit):
    """x^2 - y^2 on x = t y: (t^2 - 1) / (t^2 + 1) times 2 along the line."""
    for t in (2.0, 0.5):
        line = {"line": unit * (E(first, over=source) - t * E(lambda x: x[1])) == 0}
        decides(certified(mescal.Problem(FIRST - SECOND, line), [0, 0]), 2 * (t**2 - 1) / (t**2 + 1))


@pytest.mark.parametrize("unit", [1.0, 1e3, 1e6])
def test_a_scalar_in_a_small_unit_hides_no_saddle(unit):
    """1 + a x^2 + y^2 as a ratio whose denominator unit (2 + x) is a scalar beside x, and follows it: 2a along x."""
    for a in (-1.0, 1.0):
        rows = np.array([[unit, a]])
        above = E(lambda x, r: r[0] * (2 + x[0]) * (1 + r[1] * x[0] ** 2 + x[1] ** 2), over=rows)
        decides(certified(mescal.Problem(above / E(lambda x, r: r[0] * (2 + x[0]), over=rows)), [0, 0]), 2 * a)


def test_scalars_follow_x_in_coordinates_in_which_they_move_as_it_does():
    """t = 3000 x + 4000 y, and s = 10 t by two rows; without the second, (s - 7 y)^2 - 49 y^2 is smallest at s = 7 y."""
    rows = np.array([[3000.0, 4000.0, 0.0, -1.0], [0.0, 0.0, -1.0, 10.0]])
    H, free = np.zeros((4, 4)), np.zeros(2, bool)

    def relations(rows, determined, shares=None, push=True):
        many = len(rows)
        held, given = np.ones(many, bool), np.ones(many) if shares is None else np.array(shares)
        scalar = np.array(determined)[:many]
        return Determined(2, rows, scalar, given, held, ~held | (not push), np.zeros(rows.shape))

    def found(rows, H=H, ended=free, determined=(1, 0), steep=(0.0, 0.0), **given):
        return frame_of(relations(rows, determined, **given), H[:, 2:], ended, np.array(steep))

    both = found(rows)
    np.testing.assert_allclose(both.follow, [[3e4, 4e4], [3e3, 4e3]])
    np.testing.assert_allclose(both.units, [5e4, 5e3])
    assert both.loosened == 1 and found(rows, ended=~free).loosened == 3 and not found(rows, ended=~free).follow.any()
    H[1, 2] = H[2, 1] = -14.0
    H[2, 2] = 2.0
    by_curvature = found(rows[:1])
    np.testing.assert_allclose(by_curvature.follow, [[0, 7], [3e3, 4e3]])
    np.testing.assert_allclose(by_curvature.units, [7, 5e3])
    # a slow one, and one that nothing determines, count in their own
    np.testing.assert_allclose(found(1e-6 * rows[:1] + [0, 0, 0, -1], 0 * H).units, 1)
    # two rows that are one do not tell how both follow, nor does one that determines nothing
    assert not found(rows[[1, 1]], 0 * H).follow.any() and not found(rows[:1], 0 * H, determined=(-1,)).follow.any()
    assert found(rows[:1], 0 * H, determined=(-1,), steep=(0.0, 1e-9)).units[1] > 1e50  # any slope along it is too much
    # of two rows of one scalar the mean at their shares; where neither need hold, s may lie above it by 1e4
    tied = np.array([[1e4, 0, -1.0, 0], [3e4, 0, -2.0, 0]])
    np.testing.assert_allclose(found(tied, 0 * H, determined=(0, 0), shares=[0.4, 0.6]).follow[0], [1.375e4, 0])
    between = found(tied, 0 * H, determined=(0, 0), shares=[1.0, 0.0], push=False)
    np.testing.assert_allclose(between.follow[0], [1e4, 0])
    assert between.loosened == 1 and between.lengthened == pytest.approx(1.25)
    # multipliers that leave the Lagrangian no slope along scalars, and none below zero
    steep, signs = np.array([3.0, -2.0]), np.array([True, False])
    changed = completed(relations(rows, (1, 0)), np.array([5.0, 7.0]), ~signs, steep)
    np.testing.assert_allclose((changed - [5, 7]) @ rows[:, 2:], -steep)
    assert (completed(relations(rows, (1, 0)), np.zeros(2), np.ones(2, bool), -steep) >= 0).all()
    # T, its inverse and its transpose
    d, g = np.arange(1.0, 5.0), np.array([0.5, -1.0, 2.0, 3.0])
    np.testing.assert_allclose(both.inward(both.outward(d)), d)
    assert both.slope(g) @ d == pytest.approx(g @ both.outward(d))
    assert d @ both.matrix(H) @ d == pytest.approx(both.outward(d) @ H @ both.outward(d))
    np.testing.assert_allclose(both.product(H.__matmul__)(np.eye(4)), both.matrix(H))


def test_where_the_hessian_is_not_formed_lengths_are_the_same():
    """1,501 parameters, a steep inactive constraint and a steep one that pushes."""
    size = 1501
    rows = {"far": 1e6 * (E(lambda x: x[1]) - 2) <= 0, "held": 1e6 * E(lambda x: x[0]) <= 0}
    for a in (-1.0, 1.0):
        problem = mescal.Problem(E(lambda x: x @ x - x[0]) + (a - 1) * SECOND, rows)
        found = certified(problem, np.zeros(size))
        assert found.passes(TOLERANCE) == (a > 0), found
        assert found.curvature.lower <= 2 * a <= found.curvature.upper
        assert found.curvature.upper <= 2 * a + TOLERANCE


def test_a_box_that_pushes_beside_a_steep_inactive_row():
    rows = {"far": 1e6 * (E(lambda x: x[0] + x[1]) - 9) <= 0}
    problem = mescal.Problem(E(lambda x: x[0]) - SECOND, rows, Box(np.array([0.0, -1.0]), 1.0))
    decides(certified(problem, [0, 0]), -2.0)


@pytest.mark.parametrize("unit", [1.0, 1e3, 1e6])
def test_a_scalar_in_a_small_unit_hides_no_slope(unit):
    """a x as a ratio whose denominator unit (2 + x) is a scalar beside x: a multiplier of a/unit would turn the slope into one of
    the scalar, where it is as small as the unit makes it. What is reported is the slope of the ratio.
    """
    for a in (0.012, 1.0):
        rows = np.array([[unit, a]])
        above = E(lambda x, r: r[0] * (2 + x[0]) * r[1] * x[0], over=rows)
        found = certified(mescal.Problem(above / E(lambda x, r: r[0] * (2 + x[0]), over=rows)), [0.0])
        assert not found.passes(TOLERANCE), found
        assert found.stationarity.value == pytest.approx(a, rel=1e-6)


@pytest.mark.parametrize("source", SOURCES, ids=["population", "stream"])
@pytest.mark.parametrize("unit", [1.0, 1e3])
def test_groups_in_a_small_unit_hide_no_slope(source, unit):
    """The worst of one group, unit (x - 0.98 x): a multiplier of 0.98 leaves a slope of 0.02 per unit of the scalar alone."""
    group = E(lambda x, r: x[0] + r[0], over=source)
    problem = mescal.Problem(mescal.worst([unit * group]) - 0.98 * unit * E(lambda x: x[0]))
    found = certified(problem, [0.0])
    assert not found.passes(TOLERANCE), found
    assert found.stationarity.value == pytest.approx(0.02 * unit, rel=0.01)


@pytest.mark.parametrize("unit", [1.0, 1e6])
def test_a_function_of_expectations_has_no_kink_in_any_unit(unit):
    """-|y| / unit with y = E[unit x]: a maximum, and at another slope of the kink, too."""
    rows = np.array([[unit]])
    mean = E(lambda x, r: r[0] * x[0], over=rows)
    for slope in (0.0, 1.0):
        steep = mescal.of(lambda y, r=unit: -jax.numpy.abs(y) / r, mean) + slope * E(lambda x: x[0])
        found = certified(mescal.Problem(steep), [0.0])
        assert not found.passes(TOLERANCE), found
        assert any("kink" in sentence for sentence in found.warnings)


def test_groups_of_tails_hide_no_slope_in_any_unit():
    """The worst of one tail: a scalar that a row determines by one that is a minimiser."""
    steep = {}
    for unit in (1.0, 1e4):
        rows = np.linspace(0, 1, 20)
        tail = mescal.cvar(lambda x, r, unit=unit: unit * (x[0] + r), 0.5, over=rows, width=0.1 * unit)
        problem = mescal.Problem(mescal.worst([tail]) - 0.98 * unit * E(lambda x: x[0]))
        found = certified(problem, [0.0])
        assert not found.passes(TOLERANCE), found
        steep[unit] = found.stationarity.value
    assert steep[1.0] == pytest.approx(0.02, rel=0.05) and steep[1e4] == pytest.approx(1e4 * steep[1.0], rel=1e-3)


def test_a_small_factor_hides_no_slope():
    """A multiple f < tolerance of the worst of one group, of slope s: what is left of the scalar's multiplier is no slope of x."""
    for f, s in ((0.005, 100.0), (0.001, 1e6)):
        group = s * E(lambda x: x[0])
        for given in ({}, {"multipliers": {"objective[0]": 0.0}, "slack": {"objective[0]": 0.0}}):
            found = certified(mescal.Problem(f * mescal.worst([group])), [0.0], **given)
            assert not found.passes(TOLERANCE), found
            assert found.stationarity.value == pytest.approx(f * s)


def test_multipliers_of_scalars_follow_from_the_others():
    """1 and 1/100 off, within the tolerance along the scalars alone, they would hide maxima of what was stated."""
    rows = np.array([[1e4]])
    above, below = (E(lambda x, r, b=b: r[0] * (2 + b * x[0] ** 2), over=rows) for b in (0.001, 1.0))
    found = certified(mescal.Problem(above / below), [0.0], multipliers={"objective: denominator": 7.5e-5})
    decides(found, -0.999)
    assert found.multipliers["objective: denominator"] == pytest.approx(-5e-5)
    given = {"multipliers": {"objective[0]": 0.992}, "slack": {"objective[0]": 0.0}}
    decides(certified(mescal.Problem(mescal.worst([-5 * FIRST]) + 4.96 * FIRST), [0.0], **given), -0.08)


def test_several_groups_that_reach_the_worst_hide_no_slope():
    """max(s x, x) - 1.0025 s x: multipliers of 1.0025 and 0.007 sum up to nearly one, and the slow row is the second."""
    s = 1e6
    groups, names = [s * E(lambda x: x[0]), 1 * E(lambda x: x[0])], ["objective[0]", "objective[1]"]
    problem = mescal.Problem(mescal.worst(groups) - 1.0025 * s * E(lambda x: x[0]))
    for given in (
        {},
        {"multipliers": dict(zip(names, (1.0025, 0.0071), strict=True)), "slack": dict.fromkeys(names, 0.0)},
    ):
        found = certified(problem, [0.0], **given)
        assert not found.passes(TOLERANCE), found
        assert found.stationarity.value >= 0.0025 * s * (1 - 1e-6)


def off_by(problem, x, off):
    """Parameters with the one scalar of a problem off its value at x."""
    lifted = problem.lifted(np.asarray(x, float))
    return lifted._replace(auxiliary={name: value + off for name, value in lifted.auxiliary.items()})


TAILS = {  # with a small factor, a maximum along x that matters while the slope of the scalar does not
    "worst": lambda over: 1e-3 * mescal.worst([-500 * E(bowl, over=over), E(bowl, over=over) - 10]),
    "entropic": lambda over: 1e-3 * mescal.entropic(lambda x, r: -500 * bowl(x, r), 1.0, over=over),
    "nested": lambda over: 1e-3 * mescal.worst([mescal.entropic(lambda x, r: -500 * bowl(x, r), 1.0, over=over)]),
    "cvar": lambda over: 1e-3 * mescal.cvar(lambda x, r: -500 * bowl(x, r), 0.8, over=over),
    "variance": lambda over: 1e-3 * mescal.variance(lambda x, r: 500 * bowl(x, r), over=over) - 0.5 * FIRST,
}


def bowl(x, r):
    return x[0] ** 2 + r[0]


@pytest.mark.parametrize("source", SOURCES, ids=["population", "stream"])
@pytest.mark.parametrize("name", TAILS)
def test_a_scalar_that_is_not_that_of_x_hides_no_maximum(name, source):
    """Of a small factor times something steep: where the scalar is above its value, its slope is within the tolerance."""
    problem = mescal.Problem(TAILS[name](source) + SECOND)
    for off in (0.0, -1.0 if name == "variance" else 1.0):
        found = certified(problem, off_by(problem, [0, 0], off))
        assert not found.passes(TOLERANCE), found
    found = certified(
        problem, off_by(problem, [0, 0], 0.0), multipliers=np.zeros(problem.bind(np.zeros(2))[0].layout.size)
    )
    assert not found.passes(TOLERANCE), found


@pytest.mark.parametrize("source", SOURCES, ids=["population", "stream"])
def test_a_scalar_in_a_small_unit_that_is_not_that_of_x_hides_no_slope(source):
    """(1 + x)/1 in units of 1e-6, and a square of 1e-6 (3 + x): 0.005 is within the tolerance of either scalar."""
    unit = 1e-6
    above, below = (E(lambda x, r, s=s: unit * (s * x[0] + 1 + r[0]), over=source) for s in (1.0, 0.0))
    three = E(lambda x, r: unit * (x[0] + 3 + r[0]), over=source)
    for stated, off in (
        (mescal.ratio(above, below, floor=1e-9), 0.005),
        (mescal.of(lambda y: (y / unit) ** 2 / 2, three), -3 * unit),
    ):
        problem = mescal.Problem(stated)
        for far in (0.0, off):
            assert not certified(problem, off_by(problem, [0.0, 0.0], far)).passes(TOLERANCE), (stated, far)


@pytest.mark.parametrize("unit", [1e-3, 1.0])
def test_what_draws_leave_open_of_a_scalar_is_an_error_of_slopes(unit):
    """10 x / E[1 + r] - 10 x / d + |x|^2 / E[1 + r] in any unit of the denominator, d the mean of 4,000 rows: at 0 the slope is
    nothing on these rows, and 10 (1 - 1/d) where E[1 + r] = 1, with a deviation of 10 / sqrt(2000) on the half that is measured.
    """
    rows = np.random.default_rng(0).normal(size=(4000, 1))
    d = 1 + float(rows.mean())
    below = unit * E(lambda x, r: 1 + r[0], over=rows)
    above = mescal.ratio(unit * E(lambda x: 10 * x[0] + x @ x), below, floor=1e-9 * unit)
    problem = mescal.Problem(above - E(lambda x: 10 * x[0]) / d)
    assert certified(problem, [0, 0]).passes(TOLERANCE)
    found = certified(problem, [0, 0], as_sample=True)
    assert not found.passes(TOLERANCE), found
    deviation = 10 / np.sqrt(2000)
    assert max(2 * deviation, abs(10 * (1 - 1 / d))) < found.stationarity.upper < 8 * deviation


def test_a_scalar_on_a_stream_that_lags_behind_x_hides_no_slope():
    """The same ratio on a stream, whose denominator is 0.003 off within the tolerance: a slope of 0.03."""
    stream = mescal.Sampler(lambda key: 1 + 0.5 * jax.random.normal(key, (1,)))
    ratio = E(lambda x: 10 * x[0] + x @ x) / E(lambda x, r: r[0], over=stream)
    problem = mescal.Problem(ratio - E(lambda x: 10 * x[0]) / 1.003)
    found = certified(problem, problem.lifted(np.zeros(2))._replace(auxiliary={"objective: denominator": 1.003}))
    assert not found.passes(TOLERANCE) and found.stationarity.upper >= 10 * (1 - 1 / 1.003), found


@pytest.mark.parametrize("unit", [1.0, 1e-6])
def test_groups_are_told_apart_in_the_units_in_which_they_count(unit):
    """max(x, -1 - x) as a multiple of the worst of two groups in another unit: at 0 the second lies one below the first, and
    has no multiplier; the kink at -1/2 is the minimiser.
    """
    groups = [unit * E(lambda x: x[0]), unit * E(lambda x: -1 - x[0])]
    problem = mescal.Problem(1 / unit * mescal.worst(groups) + SECOND)
    found = certified(problem, [0.0, 0.0])
    assert not found.passes(TOLERANCE), found
    found = certified(problem, [-0.5, 0.0])
    assert found.passes(TOLERANCE)
    for terms in found.terms.values():
        assert terms.bound == pytest.approx(-0.5)
    found = mescal.minimize(problem, np.array([0.0, 1.0]), seed=0)
    assert found.converged and found.objective == pytest.approx(-0.5, abs=TOLERANCE), found


@pytest.mark.parametrize("other", ["inequality", "equality"])
@pytest.mark.parametrize("tilt", [0.1, 1e-3, 1e-6])
def test_rows_that_nearly_cancel_hide_no_maximum(tilt, other):
    """min a y^2 with x <= 0 beside x = tilt y, or x >= tilt y, at 0: multipliers that push by more than the tolerance each hold
    neither, as what is left of them along the face of one is less; for a > 0 it is a minimum.
    """
    beside = E(lambda x, r: r[0] * x[1] - x[0], over=np.array([[tilt]]))
    rows = {"wall": E(lambda x: x[0]) <= 0, "other": beside == 0 if other == "equality" else beside <= 0}
    push = min(0.1, 0.005 / tilt)
    for a in (-1.0, 1.0):
        problem = mescal.Problem(a * SECOND, rows)
        for given in ({}, {"multipliers": {"wall": push, "other": push}}):
            found = certified(problem, [0, 0], **given)
            assert found.passes(TOLERANCE) == (a > 0), found
    # a slope of 1 along the face, which makes one of the two push: it is held, and so is the face
    steep = mescal.Problem(-1 * SECOND - E(lambda x: x[1]), rows)
    assert certified(steep, [0, 0]).passes(TOLERANCE)


def test_three_rows_that_nearly_cancel_in_a_plane_hide_no_maximum():
    """min a y^2 with x <= 0, x >= 0.05 y and x >= 0.1 y, at 0: each row is a combination of the two others, and none is held."""
    beside = [E(lambda x, r: r[0] * x[1] - x[0], over=np.array([[tilt]])) for tilt in (0.05, 0.1)]
    rows = {"wall": E(lambda x: x[0]) <= 0, "first": beside[0] <= 0, "second": beside[1] <= 0}
    for a in (-1.0, 1.0):
        problem = mescal.Problem(a * SECOND, rows)
        found = certified(problem, [0, 0], multipliers={"wall": 0.1, "first": 0.05, "second": 0.05})
        assert found.passes(TOLERANCE) == (a > 0), found
    # a slope of 1 along the face makes two of them push: all are held
    steep = mescal.Problem(-1 * SECOND - E(lambda x: x[1]), rows)
    assert certified(steep, [0, 0], multipliers={"wall": 15.0, "first": 10.0, "second": 5.0}).passes(TOLERANCE)


def test_a_bound_on_a_ratio_that_is_missed_beside_a_small_denominator_is_told():
    """A precision of 0.5 where 0.9 was asked for: what is held is 0.9 d - 0.5 d <= 0, within the tolerance for d = 0.02, not 1."""
    for d, told in ((0.02, True), (1.0, False)):
        over = np.full((1, 1), d)
        hits, predicted = (E(lambda x, r, s=s: s * r[0] + 0 * x[0], over=over) for s in (0.5, 1.0))
        found = certified(mescal.Problem(FIRST, {"precision": hits / predicted >= 0.9}), [0.0])
        assert any("small denominator" in sentence for sentence in found.warnings) == told, found.warnings
        assert found.passes(TOLERANCE) == told

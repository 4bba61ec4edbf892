"""A result that is written and read is the same result, field by field, with all that JSON cannot hold."""

import json
from dataclasses import fields, is_dataclass, replace

import jax
import numpy as np
import pytest

import mescal
from mescal import Certificate, E, InputError, Measured, Status, Tolerance
from mescal.experiments import About, load_run, write_config, write_result
from mescal.forms import Unfit, plain, typed
from mescal.oracle import Tally
from mescal.run import History, Row
from mescal.solvers.ray import Ray
from tests.report.stored import made_up

INF, NAN = float("inf"), float("nan")
STRANGE = Measured(INF, -INF, NAN, "nobody knows")


def same(one, other) -> bool:
    """Equal bit for bit, NaN to NaN, in kind and in all parts."""
    if is_dataclass(one):
        parts = fields(one)
        return type(one) is type(other) and all(same(getattr(one, f.name), getattr(other, f.name)) for f in parts)
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[name], other[name]) for name in one)
    if isinstance(one, History):
        return one.multipliers == other.multipliers and same(tuple(one), tuple(other))
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, (np.ndarray, float)) and not isinstance(one, bool):
        return np.shape(one) == np.shape(other) and np.array_equal(one, other, equal_nan=True)
    return type(one) is type(other) and one == other


def stored_and_read(result, folder):
    write_config(folder, {"problem": "mine"})
    write_result(folder, result, problem="mine", about={})
    return load_run(folder).result


def flat(result):
    """What a folder keeps of a result: its x as one array."""
    leaves = [np.ravel(np.asarray(leaf)) for leaf in jax.tree.leaves(result.x)]
    return replace(result, x=np.concatenate(leaves))


def empty_cone():
    """A linear objective at the corner of a box: no direction is left to test."""
    problem = mescal.Problem(E(lambda x: x[0] + x[1]), {}, mescal.sets.Box(0.0, 1.0))
    return mescal.minimize(problem, np.ones(2, np.float32), tol=0.01)


def stream():
    problem = mescal.Problem(
        E(lambda x, a: ((x["a"] - a) ** 2).sum(), over=mescal.Sampler(lambda key: jax.random.normal(key, (2,)))),
        {"cap": E(lambda x: x["a"]) <= np.array([0.5, 9.0]), "tie": E(lambda x: x["a"][0] + x["b"]) == 0.2},
    )
    x0 = {"a": np.ones(2, np.float32), "b": np.float32(0)}
    return mescal.minimize(problem, x0, tol=0.2, record="exact", max_outer=3, max_seconds=60)


def unbounded():
    problem = mescal.Problem(E(lambda x: x[0]), {"half": E(lambda x: x[1]) <= 1.0})
    return mescal.minimize(problem, np.zeros(2, np.float32), tol=0.01)


def saddle():
    """Stopped at once beside a saddle: a certificate with a direction."""
    problem = mescal.Problem(E(lambda x: x[0] ** 2 - x[1] ** 2), {}, mescal.sets.Box(-1.0, 1.0))
    limits = {"outer": mescal.Outer(max_inner=1), "max_outer": 1}
    return mescal.minimize(problem, np.array([0.5, 0.0], np.float32), solver="spider", tol=0.001, **limits)


@pytest.mark.parametrize("make", [empty_cone, stream, unbounded, saddle])
def test_results_of_runs(make, tmp_path):
    result = make()
    read = stored_and_read(result, tmp_path / "r")
    assert same(read, flat(result)) and str(read) == str(result)
    if make is empty_cone:
        assert result.certificate.curvature.value == INF and read.certificate.passes(0.01)
    if make is stream:
        assert read.history.multipliers == ("cap[0]", "cap[1]", "tie") and read.certificate.confidence is not None
    if make is unbounded:
        assert read.status is Status.UNBOUNDED and isinstance(read.ray, Ray)
    if make is saddle:
        assert read.certificate.direction is not None and read.certificate.curvature.upper < 0


def test_every_number_that_json_does_not_have(tmp_path):
    result = made_up(status="not_finite", constraints={"rate": [NAN, 1.0, -INF], "budget": INF}).result
    assert result is not None
    strange = replace(
        result.certificate, stationarity=STRANGE, curvatures={"whole": STRANGE}, regularity=INF, dual_sign=-INF
    )
    row = replace(result.history[0], curvature=NAN, objective=-INF, multipliers=(NAN, 1.0, INF, 2.0), exact={})
    history = History(
        [*([row] * 2), replace(row, exact={"curvature": INF})], ("rate[0]", "rate[1]", "rate[2]", "budget")
    )
    result = replace(result, certificate=strange, objective=NAN, penalty=INF, history=history)
    read = stored_and_read(result, tmp_path / "r")
    assert same(read, result)
    content = (tmp_path / "r" / "result.json").read_text(encoding="utf-8")
    parsed = json.loads(content, parse_constant=pytest.fail)
    assert parsed["penalty"] is None and parsed["not_finite"] == {
        "objective": "nan", "penalty": "inf", "multipliers.rate": "nan inf", "multipliers.budget": "-inf",
        "slack.rate": "nan inf", "slack.budget": "-inf",
    }  # fmt: skip


@pytest.mark.parametrize(
    "tol", [0.01, Tolerance(0.1, 0.2), Tolerance(0.1, 0.1, feasibility=0), Tolerance(1, 1, relative=3)]
)
def test_tolerances(tol, tmp_path):
    result = replace(made_up(status="work_limit").result, tolerance=Tolerance.from_plain(tol) if tol == 0.01 else tol)
    assert stored_and_read(result, tmp_path / "r").tolerance == result.tolerance


def test_a_certificate_by_itself():
    found = made_up().result.certificate
    assert same(Certificate.from_dict(json.loads(found.to_json())), found)
    for wrong, said in (
        ({"curvature": 3}, "curvature is 3"),
        ({"cone": None}, "cone is None"),
        ({"work": {}}, "work is"),
    ):
        with pytest.raises(InputError, match=said):
            Certificate.from_dict(found.to_dict() | wrong)
    with pytest.raises(InputError, match="says nothing about slack"):
        Certificate.from_dict({name: part for name, part in found.to_dict().items() if name != "slack"})
    forged = found.to_dict()
    forged["objective"]["not_finite"] = {"value": "inf"}
    with pytest.raises(InputError, match=r"objective\.value is 0"):
        Certificate.from_dict(forged)


def test_parameters_of_a_problem_may_be_infinite():
    about = About("p", parameters={"bound": INF, "name": "x", "many": [1, 2]})
    assert typed(About, json.loads(json.dumps(plain(about), allow_nan=False))) == about


def test_what_follows_from_the_parts_is_checked(tmp_path):
    result = made_up(status="work_limit").result
    stored_and_read(result, tmp_path / "r")
    file = tmp_path / "r" / "result.json"
    whole = json.loads(file.read_text(encoding="utf-8"))
    forged = {
        "converged": True, "constraints": {"rate": 5.0}, "work": whole["work"] | {"total": 1.0}, "status": "Work_limit",
        "multipliers": {}, "outer_iterations": 3.5,
    }  # fmt: skip
    for name, value in forged.items():
        file.write_text(json.dumps(whole | {name: value}), encoding="utf-8")
        with pytest.raises(InputError, match=f"damaged.*{name}"):
            load_run(tmp_path / "r")
    near = made_up(certificate={"stationarity": Measured(1.0, 1.0, 1.0, "exact")}).result
    write_config(tmp_path / "s", {"problem": "mine"})
    with pytest.raises(
        InputError, match=r"its status is 'certified', and its certificate has stationarity 1 \(not <= 0.01\)"
    ):
        write_result(tmp_path / "s", near, problem="mine", about={})


def test_a_history_as_a_table():
    row = Row(0, 1.5, 1.0, 0.0, 0.0, 0.1, 0.2, 0.3, 0.4, NAN, 1.1, (0.5, -1.0), 1.0, 8, 64, 9, 0, "cap", 1.0, 0.5)
    history = History([row, replace(row, outer=1, exact={"curvature": -2.0})], ("a", "b[0]"))
    frame = history.to_pandas()
    assert list(frame.columns) == history.to_csv().partition("\n")[0].split(",") == list(history.table())
    assert frame["multiplier:b[0]"].tolist() == [-1.0, -1.0] and frame["inner"].tolist() == ["cap", "cap"]
    assert np.isnan(frame["exact:curvature"][0]) and frame["exact:curvature"][1] == -2.0
    assert same(History.from_csv(history.to_csv()), history)
    np.testing.assert_array_equal(history.column("multiplier:a"), [0.5, 0.5])
    for wrong in ("", "outer\n1\n", history.to_csv() + "1\n", history.to_csv().replace("cap", "cap,cap", 1)):
        with pytest.raises(ValueError, match=r"columns|unpack|literal"):
            History.from_csv(wrong)


def test_pandas_is_asked_for_in_three_parts(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(InputError, match="pip install pandas"):
        History().to_pandas()


@pytest.mark.parametrize("counts", [{}, {"value_samples": 1}, {"total": 3}, "words", None])
def test_counts_of_work_are_whole(counts):
    with pytest.raises(Unfit, match="work is"):
        typed(Certificate, plain(made_up().result.certificate) | {"work": counts})
    assert plain(Tally({"gradient_samples": 3}))["total"] == 3.0

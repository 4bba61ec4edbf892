"""Settings are declared once: signatures, types and help follow from the declaration, and wrong values and names are refused."""

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any, get_type_hints

import numpy as np
import pytest

import mescal
from mescal import Checkpoint, E, InputError, Outer, Tolerance, baselines
from mescal.run.settings import Asked, Settings, check_limits, help_of, settings

OWN = ("problem", "x0", "solver", "start")  # arguments of `minimize` that are no settings
DECLARED = {each.name: each for each in fields(Settings)}
WRONG: dict[str, Any] = {
    "tol": -1.0, "cone": "round", "seed": -1, "max_outer": 0, "max_work": 0, "max_seconds": "long", "record": "all",
    "confidence": 1.0, "starts": 0, "checkpoint": 3, "callback": 3, "progress": "bar", "outer": {"growth": 2.0},
}  # fmt: skip
WRONG_OUTSIDE: dict[str, Any] = {
    "penalty": 0.0, "growth": 1.0, "bounded_dual": 1, "scale": "yes", "max_inner": 2.5, "watchdog": 0.0,
}  # fmt: skip
X0 = np.zeros(2, np.float32)


@pytest.fixture(scope="module")
def problem() -> mescal.Problem:
    return mescal.Problem(E(lambda x: x @ x))


def defaults(function: Callable[..., Any], *but: str) -> dict[str, Any]:
    parameters = inspect.signature(function).parameters
    return {name: each.default for name, each in parameters.items() if name not in but}


def refused(call: Callable[[], Any], found: str) -> InputError:
    with pytest.raises(InputError, match=found) as caught:
        call()
    assert "Expected: " in str(caught.value) and "What to do: " in str(caught.value)
    return caught.value


def test_minimize_shows_what_is_declared():
    assert defaults(mescal.minimize, *OWN) == {name: each.default for name, each in DECLARED.items()}
    assert set(get_type_hints(Asked)) == set(DECLARED)
    for name in DECLARED:
        assert f"- `{name}`: {help_of(name)}." in (mescal.minimize.__doc__ or "")


@pytest.mark.parametrize("name", baselines.names())
def test_baselines_take_a_part_of_it(name):
    """Of a method without inner solves; all of them the same part."""
    taken = defaults(baselines.get(name).minimize, "problem", "x0")
    assert taken == {name: DECLARED[name].default for name in taken}
    assert set(DECLARED) - set(taken) == {"max_outer", "outer", "starts"}
    assert all(f"- `{each}`: {help_of(each)}." in (baselines.Baseline.minimize.__doc__ or "") for each in taken)


@pytest.mark.parametrize("group", [Settings, Outer])
def test_every_setting_has_a_default_that_passes_its_check_and_a_sentence(group):
    for each in fields(group):
        assert each.default is not MISSING and len(each.metadata["help"].split()) >= 3, each.name
        assert not each.metadata["help"].endswith("."), each.name
        each.metadata["check"](each.name, each.default)


def test_what_is_checked_passes_again():
    """Settings are stored in the form that their checks return, and read back through them."""
    given = Settings(tol=0.1, max_work=None, checkpoint="folder", outer=Outer(watchdog=None))
    assert isinstance(given.tol, Tolerance) and given.checkpoint == Checkpoint("folder", seconds=60.0)
    assert Settings(**{name: getattr(given, name) for name in DECLARED}) == given


@pytest.mark.parametrize("name", DECLARED)
def test_a_wrong_value_is_refused(problem, name):
    refused(lambda: mescal.minimize(problem, X0, **{name: WRONG[name]}), "tolerance" if name == "tol" else f"{name}=")


@pytest.mark.parametrize("name", [each.name for each in fields(Outer)])
def test_a_wrong_value_of_the_outer_loop_is_refused(name):
    refused(lambda: Outer(**{name: WRONG_OUTSIDE[name]}), f"{name}=")
    refused(lambda: Outer.parse({name: "often"}), f"{name}=often of the outer loop")


def test_the_outer_loop_from_text():
    texts = {
        "penalty": "2",
        "growth": "1.5",
        "bounded_dual": "true",
        "scale": "False",
        "max_inner": "7",
        "watchdog": "inf",
    }
    assert set(texts) == {each.name for each in fields(Outer)}
    given = Outer.parse(texts)
    assert given == Outer(penalty=2.0, growth=1.5, bounded_dual=True, scale=False, max_inner=7, watchdog=None)
    assert list(given.changed()) == [name for name in texts if name != "watchdog"] and Outer().changed() == {}
    assert "did you mean 'growth'?" in refused(lambda: Outer.parse({"growht": "2"}), "outer loop").advice


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        *((each.name, f"outer=mescal.Outer({each.name}=...)") for each in fields(Outer)),
        *((n, f"solver=mescal.solvers.get('spider-theory', {n}=...)") for n in ("constants", "success", "option")),
        ("checkpoint_seconds", "checkpoint=mescal.Checkpoint(folder, seconds=...)"),
        ("max_secnds", "did you mean max_seconds=?"),
        ("period", "mescal.solvers.get(name, ...)"),
    ],
)
def test_an_argument_that_is_none_is_told_where_it_belongs(problem, name, advice):
    said = refused(lambda: mescal.minimize(problem, X0, **{name: 1}), f"minimize got {name}=")
    assert said.advice.endswith(advice) and isinstance(said, TypeError)


@pytest.mark.parametrize(
    "name", ["max_outer", "outer", "penalty", "max_inner", "constants", "checkpoint_seconds", "batch"]
)
def test_baselines_say_where_an_argument_belongs(problem, name):
    said = refused(lambda: baselines.get("conex").minimize(problem, X0, **{name: 1}), f"conex got {name}=")
    wanted = "Checkpoint(folder" if name == "checkpoint_seconds" else "mescal.baselines.get("
    assert wanted in said.advice and "Outer" not in said.advice


def test_limits_are_checked_one_by_one():
    assert check_limits({"max_outer": 3, "max_work": None}) == {"max_outer": 3}
    refused(lambda: check_limits({"max_outer": 0}), "max_outer=0")
    assert settings("minimize", {}) == Settings()

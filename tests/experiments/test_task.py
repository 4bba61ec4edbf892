"""Tasks are checked when they are made, survive config.json, and name their folders."""

import json
from pathlib import Path

import pytest

from mescal import InputError, Outer, Tolerance
from mescal.experiments import Task, own_problem, task
from mescal.experiments.own import literal

OWN = '''
"""A problem of one's own."""
import numpy as np
import mescal
from mescal import E


def make(center=1.0):
    """A parabola."""
    return mescal.Problem(E(lambda x: (x[0] - center) ** 2)), np.zeros(1, np.float32)


def wrong():
    return 3


def broken():
    return undefined_name
'''


@pytest.fixture
def own_file(tmp_path) -> Path:
    path = tmp_path / "own.py"
    path.write_text(OWN, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"tol": Tolerance(0.01, 0.01, feasibility=0)},
        {"tol": Tolerance(0.01, 0.1, relative=0.5), "seed": 7, "max_work": 1e5, "max_seconds": 3, "record": "exact"},
        {"solver": "natasha2", "options": {"batch": 32}, "cone": "whole", "parameters": {"tau": 0.1}},
        {"outer": Outer(penalty=2, growth=1.5, bounded_dual=True, scale=False, max_inner=7)},
    ],
)
def test_a_task_survives_its_config(settings):
    made = task("neyman-pearson/breast-cancer", **settings)
    config = json.loads(json.dumps(made.config()))
    assert Task.from_config(config) == made
    assert Task.from_config(config | {"schema": 1}).config() == config


def test_parameters_are_complete_and_the_cone_suits_the_problem():
    made = task("neyman-pearson/breast-cancer", parameters={"tau": 0.1})
    assert made.parameters == {"tau": 0.1, "encoding": "paper", "dtype": "float32"}
    assert task("saddles/active-bounds").cone == "critical" and made.cone == "critical"
    assert task("saddles/active-bounds", cone="paper").cone == "paper"


def test_folders_name_what_differs_from_the_defaults():
    plain = task("fairness/bank")
    assert plain.folder == Path("fairness/bank/auto/tol=0.01/seed=0")
    other = task(
        "fairness/bank",
        parameters={"group": "job=blue collar/x"},
        solver="spider",
        options={"batch": 8},
        tol=Tolerance(0.1, 0.2),
    )
    assert other.folder == Path("fairness/bank,group=job=blue-collar/x/spider,batch=8/tol=0.1,0.2/seed=0")
    apart = [
        task("fairness/bank", tol=Tolerance(0.1, 0.2, **part)) for part in ({"feasibility": 0.3}, {"relative": 0.3})
    ]
    assert [made.folder.parts[-2] for made in apart] == ["tol=0.1,0.2,feasibility=0.3", "tol=0.1,0.2,relative=0.3"]


def test_settings_of_the_outer_loop_make_another_run():
    """But for the watchdog's, which change no number."""
    plain, other = (task("saddles/circle", outer=outer) for outer in (Outer(watchdog=1), Outer(growth=2)))
    assert plain.config() == task("saddles/circle").config() and "watchdog" not in plain.config()["outer"]
    assert other.config()["outer"]["growth"] == 2.0 and other.config() != plain.config()
    assert other.folder == Path("saddles/circle/auto,outer.growth=2.0/tol=0.01/seed=0") and other.group != plain.group
    assert other.arguments()["outer"] == Outer(growth=2) and plain.arguments()["outer"].watchdog == 1


def test_seeds_and_tolerances_share_a_group():
    base = task("saddles/circle")
    assert base.group == task("saddles/circle", seed=3, tol=0.1).group
    assert base.group != task("saddles/circle", solver="natasha2").group
    assert base.group != task("saddles/circle", parameters={"sigma": 0.0}).group


@pytest.mark.parametrize(
    ("name", "settings", "found"),
    [
        ("saddles/circel", {}, "no problem named 'saddles/circel'"),
        ("saddles/circle", {"parameters": {"sgima": 1.0}}, "no parameter of saddles/circle named 'sgima'"),
        ("saddles/circle", {"parameters": {"sigma": -1.0}}, "sigma=-1"),
        ("saddles/circle", {"solver": "spidre"}, "no solver named 'spidre'"),
        ("saddles/circle", {"options": {"bach": 3}}, "no option"),
        ("saddles/circle", {"seed": -1}, "seed=-1"),
        ("saddles/circle", {"tol": 0.0}, "tolerance gradient=0"),
        ("saddles/circle", {"cone": "round"}, "cone='round'"),
        ("saddles/circle", {"max_seconds": 0}, "max_seconds=0"),
        ("saddles/circle", {"outer": {"growth": 2}}, "a mescal.Outer"),
        ("saddles/circle", {"solver": "conex", "outer": Outer(growth=2)}, "the baseline conex with Outer"),
    ],
)
def test_bad_tasks_are_refused_at_once(name, settings, found):
    with pytest.raises(InputError, match=found):
        task(name, **settings)


def test_an_incomplete_config_is_refused():
    with pytest.raises(InputError, match="says nothing about cone"):
        Task.from_config({key: value for key, value in task("saddles/circle").config().items() if key != "cone"})


def test_an_own_problem_is_made_with_its_parameters(own_file):
    made = task(own_problem(f"{own_file}:make"), parameters={"center": 2.0})
    assert Task.from_config(json.loads(json.dumps(made.config()))) == made
    named = made.make_problem()
    assert named.name == "own.py:make" and named.description == "A parabola." and named.x0.shape == (1,)
    assert made.folder == Path("own.py-make,center=2.0/auto/tol=0.01/seed=0")


@pytest.mark.parametrize(
    ("function", "parameters", "found"),
    [
        ("mke", {}, "no function in own.py named 'mke'"),
        ("wrong", {}, "own.py:wrong returned int"),
        ("broken", {}, r"own\.py, line 18 raised NameError"),
        ("make", {"radius": 1}, "cannot be called with"),
    ],
)
def test_faulty_own_problems_say_where(own_file, function, parameters, found):
    with pytest.raises(InputError, match=found):
        task(own_problem(f"{own_file}:{function}"), parameters=parameters).make_problem()


def test_an_own_file_that_changed_is_another_problem(own_file):
    made = task(own_problem(f"{own_file}:make"))
    own_file.write_text(OWN + "\n", encoding="utf-8")
    with pytest.raises(InputError, match="has changed"):
        made.make_problem()


@pytest.mark.parametrize("text", ["own.py", "own:make", "own.py:", "own.py:a b"])
def test_own_problems_are_named_by_file_and_function(text):
    with pytest.raises(InputError, match="a Python file and a function"):
        own_problem(text)
    with pytest.raises(InputError, match="could not be read"):
        own_problem("no/such/file.py:make")


def test_literals():
    assert [literal(text) for text in ("1", "0.5", "[1, 2]", "red", "True")] == [1, 0.5, [1, 2], "red", True]

"""Importing mescal imports what a call of `minimize` needs, and the rest on first use; the collector is left as it was.

Seconds are measured by `benchmarks/cold.py`: here they would depend on who else uses the machine.
"""

import gc
import json
import subprocess
import sys

import pytest

import mescal
from mescal import theory
from mescal.importing import collector_at_rest

FRESH = "import json, sys; {code}; print(json.dumps(sorted(sys.modules)))"
OURS = ("baselines", "cli", "datasets", "estimators", "experiments", "problems", "report", "testing", "theory.public")
HEAVY = (
    *("joblib", "matplotlib", "optax", "pandas", "pyarrow", "rich", "sklearn", "torch", "typer"),
    *("jax.experimental.pallas", "scipy.linalg", "scipy.optimize", "scipy.special", "scipy.stats"),
    *(f"mescal.{name}" for name in OURS),
)


def modules_after(code: str) -> set[str]:
    """What a fresh interpreter has imported after some code."""
    command = [sys.executable, "-c", FRESH.format(code=code)]
    return set(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


@pytest.fixture(scope="module")
def imported() -> set[str]:
    return modules_after("import mescal")


@pytest.mark.parametrize("name", HEAVY)
def test_importing_mescal_does_not_import(imported, name):
    assert name not in imported


def test_a_solver_needs_no_more_of_the_theory_than_its_file():
    assert "mescal.theory.prediction" not in modules_after("from mescal.theory import spider")


def test_projections_that_need_optax_import_it_on_first_use():
    box = "import jax, numpy; from mescal import sets; sets.Box(0, 1).project(numpy.ones(2, 'float32'))"
    assert "optax" not in modules_after(box)
    # within a trace, of which nothing may stay in a module that was imported there
    ball = "import jax, numpy; from mescal import sets; jax.jit(lambda x: sets.Ball(1).project(x))(numpy.ones(2, 'float32'))"
    values = "(thing for module in list(sys.modules.values()) for thing in vars(module).values())"
    assert "optax" in modules_after(f"{ball}; assert not any(isinstance(t, jax.core.Tracer) for t in {values})")


@pytest.mark.parametrize("module", [mescal, theory], ids=["mescal", "theory"])
def test_every_listed_name_is_there_and_no_other(module):
    assert {name for name in dir(module) if not hasattr(module, name)} == set()
    with pytest.raises(AttributeError, match=f"module '{module.__name__}' has no attribute 'nothing'"):
        _ = module.nothing
    assert not hasattr(module, "__wrapped__")


def test_names_that_come_on_first_use_are_listed_and_can_be_imported():
    assert {*mescal._PACKAGES, "resume", "minimize", "Problem"} <= set(dir(mescal))
    assert set(theory.__all__) <= set(dir(theory))
    found = modules_after("from mescal import problems, resume; from mescal.theory import predict, gap")
    assert {"mescal.problems", "mescal.experiments.resume", "mescal.theory.prediction", "mescal.theory.gap"} <= found


def test_a_file_of_the_theory_that_fails_to_import_says_so(monkeypatch):
    monkeypatch.delitem(sys.modules, "mescal.theory.table1", raising=False)
    monkeypatch.delattr(theory, "table1", raising=False)
    monkeypatch.setitem(sys.modules, "mescal.theory.complexity", None)  # as if it were not there
    with pytest.raises(ModuleNotFoundError, match="complexity"):
        _ = theory.table1


class TestCollectorAtRest:
    def test_it_rests_within_and_works_afterwards(self):
        frozen = gc.get_freeze_count()
        with collector_at_rest():
            assert not gc.isenabled()
        assert gc.isenabled() and gc.get_freeze_count() == frozen

    def test_after_an_error_too(self):
        with pytest.raises(KeyError), collector_at_rest():
            raise KeyError
        assert gc.isenabled()

    def test_one_that_was_off_stays_off(self):
        gc.disable()
        try:
            with collector_at_rest():
                assert not gc.isenabled()
            assert not gc.isenabled()
        finally:
            gc.enable()

    def test_what_somebody_froze_stays_frozen(self):
        gc.freeze()
        try:
            frozen = gc.get_freeze_count()
            with collector_at_rest():
                pass
            assert gc.get_freeze_count() == frozen > 0 and gc.isenabled()
        finally:
            gc.unfreeze()

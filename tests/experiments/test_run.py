"""A finished run is not run again, an unfinished one starts over, and what lies in a folder is not overwritten."""

import pytest

from mescal import InputError, Status
from mescal.experiments import load_run, run, task, write_config
from mescal.experiments.run import difference
from mescal.files import LOCK, Hold

HOPELESS = {"tol": 1e-12, "max_outer": 1}  # float32 does not reach it


def never(*_):
    raise AssertionError("this ran")


def test_a_finished_run_is_not_run_again(stored, tiny):
    before = (stored.path / "result.json").stat().st_mtime_ns
    again = run(tiny(record="exact"), stored.path, progress=never)
    assert again.result.work == stored.result.work and (stored.path / "result.json").stat().st_mtime_ns == before


def test_equal_tasks_give_equal_runs(stored, tiny, tmp_path):
    other = run(tiny(record="exact"), tmp_path / "other")
    assert other.solution()["x"].tolist() == stored.solution()["x"].tolist()
    assert other.result.work == stored.result.work


def test_progress_sees_every_row(tiny, tmp_path):
    rows = []
    made = run(tiny(seed=1), tmp_path / "r", progress=rows.append)
    assert [row.work for row in rows] == made.result.history.column("work").tolist()


@pytest.mark.parametrize("killed_while_writing", ["config.json", "solution.npz", "history.csv", "result.json"])
def test_an_unfinished_run_starts_over_and_leftovers_go(stored, tiny, tmp_path, killed_while_writing):
    if killed_while_writing != "config.json":
        write_config(tmp_path, tiny(record="exact").config())
    (tmp_path / f".{killed_while_writing}.{'0' * 16}.part").write_text("{", encoding="utf-8")
    made = run(tiny(record="exact"), tmp_path)
    assert made.finished and made.result.work == stored.result.work
    assert not list(tmp_path.glob(".*.part"))


def test_another_run_in_the_folder_is_refused_unless_forced(tiny, tmp_path):
    run(tiny(), tmp_path)
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match="its seed is 0, not 2"):
        run(tiny(seed=2), tmp_path, progress=never)
    assert run(tiny(seed=2), tmp_path, force=True).result.seed == 2
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "mine"


def test_a_folder_with_other_things_is_refused(tiny, tmp_path):
    (tmp_path / "thesis.tex").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="exists and is not a run folder"):
        run(tiny(), tmp_path)
    with pytest.raises(InputError, match=r"thesis.tex is a file"):
        run(tiny(), tmp_path / "thesis.tex")


def test_what_a_solver_refuses_leaves_no_folder(tiny, tmp_path):
    """A setting that is refused only once the solver sees it; folders that were there before stay."""
    (tmp_path / "mine").mkdir()
    with pytest.raises(InputError, match="batch=-5"):
        run(tiny(solver="spider", options={"batch": -5}), tmp_path / "mine" / "deep" / "r")
    assert list(tmp_path.rglob("*")) == [tmp_path / "mine"]


def test_a_wrong_request_leaves_no_folder_and_replaces_nothing(stored, tmp_path):
    """That a group does not exist is known once the data are read: nothing was written by then."""
    wrong = task("fairness/diabetes", parameters={"group": "sex=9"})
    with pytest.raises(InputError, match="no level of sex"):
        run(wrong, tmp_path / "r")
    assert not (tmp_path / "r").exists()
    before = sorted(path.name for path in stored.path.iterdir())
    with pytest.raises(InputError, match="no level of sex"):
        run(wrong, stored.path, force=True)
    assert sorted(path.name for path in stored.path.iterdir()) == before


def test_limits_end_a_run_without_a_certificate(tiny, tmp_path):
    made = run(tiny(**HOPELESS), tmp_path)
    assert made.finished and not made.converged and made.result.status is Status.OUTER_LIMIT
    assert "Raise max_outer" in str(made.result)


def test_an_interrupted_run_is_kept_but_not_finished(tiny, tmp_path):
    def interrupt(_):
        raise KeyboardInterrupt

    made = run(tiny(**HOPELESS), tmp_path, progress=interrupt)
    assert made.result.status is Status.INTERRUPTED and not made.finished
    assert run(tiny(**HOPELESS), tmp_path).result.status is Status.OUTER_LIMIT
    assert load_run(tmp_path).finished


def test_differences_are_named():
    assert difference({"seed": 1}, {"seed": 2}) == "its seed is 1, not 2"
    assert "more settings" in difference({"seed": 1, "new": 2}, {"seed": 1})


def test_two_runs_do_not_share_a_folder(tiny, tmp_path):
    write_config(tmp_path, tiny().config())
    with Hold(tmp_path):
        for force in (False, True):
            with pytest.raises(InputError, match="in use by another run"):
                run(tiny(), tmp_path, force=force, progress=never)
        assert (tmp_path / "config.json").exists()
    (tmp_path / LOCK).write_text("1", encoding="utf-8")  # of a process that was killed
    run(tiny(), tmp_path)
    assert not (tmp_path / LOCK).exists()

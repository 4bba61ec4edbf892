"""A run that is carried on from any of its checkpoints ends as if it had never stopped; damage and mistakes are named."""

import io
import json
import logging
import os
import shutil
import signal
from dataclasses import asdict, fields

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E, InputError, Status, problems
from mescal.files import LOCK, Hold, read_arrays
from mescal.run import checkpoint as checkpoints, fingerprint as fingerprints, snapshot
from mescal.run.snapshot import NUMBERS, TALLIES, Snapshot
from mescal.run.state import State
from mescal.solvers import Spider

ROWS = np.random.default_rng(0).normal(size=(200, 3)).astype(np.float32) + np.float32(0.5)


def loss(x, row):
    return jnp.logaddexp(0.0, -row @ x) + 0.01 * x @ x


def circle(x):
    return x @ x


@pytest.fixture(scope="module")
def problem() -> mescal.Problem:
    return mescal.Problem(E(loss, over=ROWS), {"circle": E(circle) == 1.0})


X0 = np.array([2.0, -1.0, 0.5], np.float32)
SETTINGS = {"solver": "spider", "tol": 1e-5, "seed": 3}


@pytest.fixture(scope="module")
def short_chunks():
    """A look at the clock after every epoch: many checkpoints from a small problem."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Spider, "chunk", 1)
        yield


@pytest.fixture(scope="module")
def whole(problem, short_chunks):
    return mescal.minimize(problem, X0, **SETTINGS)


def always(folder) -> mescal.Checkpoint:
    """A checkpoint at every look at the clock."""
    return mescal.Checkpoint(folder, seconds=0.0)


def essence(result) -> dict:
    """All of a result but seconds."""
    certificate = result.certificate.to_json()
    certificate = json.loads(certificate) if isinstance(certificate, str) else dict(certificate)
    certificate.pop("seconds", None)
    rows = [asdict(row) | {"seconds": 0} for row in result.history]
    return {
        "x": np.asarray(result.x).tolist(),
        "multipliers": {name: value.tolist() for name, value in result.multipliers.items()},
        "status": result.status.name,
        "work": [tally.counts for tally in (result.work.solver, result.work.judge, result.work.searches)],
        "outer": result.outer_iterations,
        "history": repr(rows),
        "certificate": repr(certificate),
        "penalty": result.penalty,
    }  # fmt: skip


def kept_aside(monkeypatch, folder) -> list:
    """Every checkpoint that a run writes, as (name, bytes)."""
    seen, write = [], checkpoints.write_checkpoint

    def watched(path, about, snapshot):
        write(path, about, snapshot)
        seen.append((path.name, path.read_bytes()))

    monkeypatch.setattr(checkpoints, "write_checkpoint", watched)
    return seen


def every_checkpoint_leads_to_the_same_end(monkeypatch, folder, problem, x0, **settings):
    seen = kept_aside(monkeypatch, folder)
    stored = mescal.minimize(problem, x0, checkpoint=always(folder / "first"), **settings)
    files = list(seen)
    assert len(files) >= 3
    for name, content in files[:: max(1, len(files) // 6)]:
        again = folder / name
        again.mkdir()
        (again / name).write_bytes(content)
        resumed = mescal.resume(again, problem)
        assert essence(resumed) == essence(stored), name
    return stored, files


def test_every_checkpoint_leads_to_the_same_end(problem, whole, tmp_path, monkeypatch):
    stored, files = every_checkpoint_leads_to_the_same_end(monkeypatch, tmp_path, problem, X0, **SETTINGS)
    assert essence(stored) == essence(whole), "keeping checkpoints changes nothing"
    assert whole.converged and len(files) > len(whole.history), "some were taken inside of inner solves"


def test_a_stream_leads_to_the_same_end(short_chunks, tmp_path, monkeypatch):
    named = problems.get("hock-schittkowski/7")
    settings = {"solver": "spider", "tol": 0.05, "seed": 1}
    every_checkpoint_leads_to_the_same_end(monkeypatch, tmp_path, named.problem, named.x0, **settings)


def test_two_files_are_kept_and_no_part_of_a_third(problem, short_chunks, tmp_path):
    mescal.minimize(problem, X0, checkpoint=always(tmp_path), **SETTINGS)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert len([name for name in names if name.endswith(".checkpoint")]) == 2 and "ended" in names and len(names) == 3


def test_budgets_stop_a_run_and_larger_ones_carry_it_on(problem, whole, tmp_path):
    half = mescal.minimize(problem, X0, checkpoint=tmp_path, max_work=whole.work.total / 2, **SETTINGS)
    assert half.status is Status.WORK_LIMIT and half.work.total < whole.work.total
    assert mescal.resume(tmp_path, problem).status is Status.WORK_LIMIT
    assert essence(mescal.resume(tmp_path, problem, max_work=1e12)) == essence(whole)


def test_a_cap_on_outer_iterations_can_be_raised(problem, whole, tmp_path):
    first = mescal.minimize(problem, X0, checkpoint=tmp_path, max_outer=1, **SETTINGS)
    assert first.status is Status.OUTER_LIMIT and first.outer_iterations == 1
    assert essence(mescal.resume(tmp_path, problem, max_outer=100)) == essence(whole)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_run_at_the_next_chunk(problem, whole, tmp_path, number, caplog):
    before = signal.getsignal(number)
    rows = []

    def send(row):
        rows.append(row)
        if len(rows) == 1:
            os.kill(os.getpid(), number)

    with caplog.at_level(logging.WARNING, logger="mescal"):
        stopped = mescal.minimize(problem, X0, checkpoint=tmp_path, progress=send, **SETTINGS)
    assert stopped.status is Status.INTERRUPTED and len(rows) == 1
    assert np.isfinite(stopped.objective) and stopped.certificate is not None
    assert signal.Signals(number).name in caplog.text and signal.getsignal(number) == before
    assert essence(mescal.resume(tmp_path, problem)) == essence(whole)


def test_a_second_signal_ends_a_run_at_once(problem):
    def send(row):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    assert mescal.minimize(problem, X0, progress=send, **SETTINGS).status is Status.INTERRUPTED


@pytest.fixture
def stopped(problem, whole, tmp_path):
    """A folder with two checkpoints of a run that is half done."""
    settings = SETTINGS | {"max_work": 0.6 * whole.work.total}
    mescal.minimize(problem, X0, checkpoint=always(tmp_path / "run"), **settings)
    assert len(checkpoints.files(tmp_path / "run")) == 2
    return tmp_path / "run"


def cut(path):
    path.write_bytes(path.read_bytes()[:-100])


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


def empty(path):
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [cut, flip, empty])
def test_a_damaged_checkpoint_is_passed_over_and_said(problem, whole, stopped, damage, caplog):
    newest = checkpoints.files(stopped)[-1]
    damage(newest)
    with caplog.at_level(logging.WARNING, logger="mescal"):
        resumed = mescal.resume(stopped, problem, max_work=1e12)
    assert essence(resumed) == essence(whole)
    assert newest.name in resumed.warnings[0] and "the checkpoint before it was used" in caplog.text


def test_damage_to_both_is_an_error(problem, stopped):
    for path in checkpoints.files(stopped):
        flip(path)
    with pytest.raises(InputError, match="checksum"):
        mescal.resume(stopped, problem)


def with_(objective=None, constraints=None):
    body = E(loss, over=ROWS) if objective is None else objective
    return mescal.Problem(body, {"circle": E(circle) == 1.0} if constraints is None else constraints)


def one_row_changed():
    rows = ROWS.copy()
    rows[113, 2] *= np.float32(1.0001)
    return rows


WEIGHTS = np.ones(len(ROWS))
OTHER_EQUATIONS = "its functions had other equations"


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (with_(E(loss, over=ROWS + 1)), "its data had other rows"),
        (with_(E(loss, over=one_row_changed())), "its data had other rows"),
        (with_(E(loss, over=ROWS[::-1])), "its data had other rows"),
        (with_(E(loss, over=ROWS, weights=WEIGHTS)), "its data had other rows or weights"),
        (with_(E(lambda x, row: 2 * loss(x, row), over=ROWS)), OTHER_EQUATIONS),
        (with_(E(lambda x, row: 1.0005 * loss(x, row), over=ROWS)), OTHER_EQUATIONS),
        (with_(constraints={"circle": E(lambda x: x @ (np.float32([1, 1, 1.0001]) * x)) == 1.0}), OTHER_EQUATIONS),
        (with_(1.0005 * E(loss, over=ROWS)), "its bounds or coefficients were others"),
        (with_(E(loss, over=ROWS) + 1e-3), "its bounds or coefficients were others"),
        (with_(constraints={"circle": E(circle) == 1.0001}), "its bounds or coefficients were others"),
        (with_(constraints={"ball": E(circle) == 1.0}), r"its constraints were \[\['circle', '==', \[\]\]\], not"),
        (with_(constraints={"circle": E(circle) <= 1.0}), "its constraints were"),
        (with_(E(loss, over=ROWS[:100])), r"its populations were \[200\], not \[100\]"),
    ],
)
def test_a_checkpoint_of_another_problem_is_refused_by_name(stopped, other, said):
    with pytest.raises(InputError, match=f"is a checkpoint of another problem: {said}"):
        mescal.resume(stopped, other)


def test_another_jax_may_have_other_equations_and_no_other_values(problem, whole, stopped):
    def older(about):
        told = about["problem"] | {"functions": ["0.0.1", "of another version"]}
        return about | {"problem": told}

    for path in checkpoints.files(stopped):
        rewritten(path, older)
    with pytest.raises(InputError, match="its values at the start were others"):
        mescal.resume(stopped, with_(E(lambda x, row: 2 * loss(x, row), over=ROWS)))
    assert essence(mescal.resume(stopped, problem, max_work=1e12)) == essence(whole)


def projected(radius):
    def project(x):
        return jnp.clip(x, -radius, radius)

    return mescal.Problem(E(loss, over=ROWS), {"circle": E(circle) == 1.0}, mescal.sets.Projected(project))


def test_another_projection_is_another_problem():
    """Of what a function of a set computes, as `fingerprint` sees it."""

    class Bound:
        dtype = np.dtype(np.float32)

        def __init__(self, problem):
            self.problem, self.program = problem, problem.bind(X0, dtype=np.float32)[0]

    prints = [fingerprints._functions(Bound(projected(r))) for r in (5.0, 5.0, 5.001)]  # pyright: ignore[reportArgumentType]
    assert prints[0] == prints[1] != prints[2]


def rewritten(path, change):
    stored = checkpoints.read_checkpoint(path)
    checkpoints.write_checkpoint(path, change(dict(stored.about)), stored.snapshot)


def test_a_checkpoint_of_another_version_is_refused_by_name(problem, stopped):
    newest = checkpoints.files(stopped)[-1]
    rewritten(newest, lambda about: about | {"mescal": "0.0.7"})
    with pytest.raises(InputError, match=r"was written by mescal 0\.0\.7"):
        mescal.resume(stopped, problem)
    newest.write_bytes(newest.read_bytes().replace(b"checkpoint 2", b"checkpoint 9", 1))
    with pytest.raises(InputError, match="a checkpoint of format 9"):
        mescal.resume(stopped, problem)


def without(name):
    return lambda content: {key: value for key, value in content.items() if key != name}


def told(name, value):
    return lambda content: content | {name: value}


HOSTILE = {
    "about: no settings": ("about", without("settings")),
    "about: settings of another kind": ("about", told("settings", [1, 2])),
    "about: a setting that nobody knows": ("about", lambda a: a | {"settings": a["settings"] | {"x": 1}}),
    "about: a limit in words": ("about", lambda a: a | {"settings": a["settings"] | {"max_work": "all"}}),
    "about: a tolerance in words": ("about", lambda a: a | {"settings": a["settings"] | {"tol": "small"}}),
    "about: no solver": ("about", without("solver")),
    "about: a solver that nobody knows": ("about", told("solver", {"name": "../spider"})),
    "about: a solver without a name": ("about", told("solver", {})),
    "about: x0 in words": ("about", told("x0", ["a", "b", "c"])),
    "about: x0 too short": ("about", told("x0", [1.0])),
    "about: x0 of NaN": ("about", told("x0", [float("nan")] * 3)),
    "about: structure of another kind": ("about", told("structure", {"set": []})),
    "about: structure that asks for too much": ("about", told("structure", {"shape": [10**12], "dtype": "float32"})),
    "about: a warm start of another kind": ("about", told("start", {"slack": 1})),
    "about: no problem": ("about", without("problem")),
    "about: seconds in words": ("about", told("seconds", "long")),
    "state: no penalty": ("state", without("penalty")),
    "state: a penalty in words": ("state", told("penalty", "high")),
    "state: work of another kind": ("state", told("work", [1])),
    "state: history of another kind": ("state", told("history", 3)),
    "state: a row in words": ("state", lambda c: c | {"history": [row | {"work": "x"} for row in c["history"]]}),
    "state: a row without work": ("state", lambda c: c | {"history": [without("work")(row) for row in c["history"]]}),
    "state: a goal of another kind": ("state", told("leg", {"goal": {"constants": None}})),
    "arrays: none": ("arrays", lambda arrays: {}),
    "arrays: of another type": ("arrays", lambda arrays: {k: v.astype(str) for k, v in arrays.items()}),
    "arrays: of another shape": ("arrays", lambda arrays: {k: v[None] for k, v in arrays.items()}),
}


@pytest.mark.parametrize(("where", "change"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_content_under_a_right_checksum_is_an_error_in_three_parts(problem, stopped, where, change):
    for path in checkpoints.files(stopped):
        stored = checkpoints.read_checkpoint(path)
        parts = {"about": stored.about, "state": stored.snapshot.content, "arrays": stored.snapshot.arrays}
        parts[where] = change(parts[where])
        checkpoints.write_checkpoint(path, parts["about"], Snapshot(parts["state"], parts["arrays"]))
    with pytest.raises(InputError) as caught:
        mescal.resume(stopped, problem)
    assert caught.value.found and caught.value.expected and caught.value.advice


def test_archives_that_are_larger_than_they_look_are_not_read():
    packed = io.BytesIO()
    np.savez_compressed(packed, x=np.zeros(1 << 20))
    with pytest.raises(ValueError, match="larger than they look"):
        read_arrays(packed.getvalue())
    pickled = io.BytesIO()
    np.savez(pickled, x=np.array([object()]))  # pyright: ignore[reportArgumentType]
    for content in (b"", b"PK", packed.getvalue()[:-30], pickled.getvalue()):
        with pytest.raises(ValueError, match="no archive of arrays"):
            read_arrays(content)


def test_another_solver_is_refused(problem, stopped):
    with pytest.raises(InputError, match="of a run of the solver"):
        mescal.resume(stopped, problem, solver=Spider(batch=7))


def test_nothing_to_resume(problem, tmp_path):
    with pytest.raises(InputError, match="holds no checkpoint"):
        mescal.resume(tmp_path, problem)
    with pytest.raises(InputError, match="no problem was given"):
        mescal.resume(tmp_path)


def test_a_run_does_not_write_over_another_one(problem, stopped):
    with pytest.raises(InputError, match="has not come to its end"):
        mescal.minimize(problem, X0, checkpoint=stopped, **SETTINGS)


def test_a_run_takes_the_place_of_one_that_has_ended(problem, whole, stopped):
    mescal.resume(stopped, problem, max_work=1e12)
    again = mescal.minimize(problem, X0, checkpoint=stopped, **SETTINGS)
    assert essence(again) == essence(whole)


def test_a_folder_that_cannot_be_made_is_said_at_once(problem, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="could not be written"):
        mescal.minimize(problem, X0, checkpoint=tmp_path / "file" / "inside", **SETTINGS)


def test_a_full_disk_does_not_end_a_run(problem, whole, tmp_path, monkeypatch, caplog):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mescal.files.os.fsync", full)
    with caplog.at_level(logging.WARNING, logger="mescal"):
        result = mescal.minimize(problem, X0, checkpoint=always(tmp_path), **SETTINGS)
    assert essence(result) == essence(whole)
    assert caplog.text.count("No checkpoint could be written") == 1 and not checkpoints.files(tmp_path)


def test_a_disk_that_fails_for_a_while_leaves_the_last_good_checkpoint(problem, whole, stopped, monkeypatch):
    kept = [path.read_bytes() for path in checkpoints.files(stopped)]

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("mescal.files.os.fsync", full)
        mescal.resume(stopped, problem, max_work=0.8 * whole.work.total)
    assert [path.read_bytes() for path in checkpoints.files(stopped)] == kept
    assert essence(mescal.resume(stopped, problem, max_work=1e12)) == essence(whole)


def test_a_clock_set_back_changes_nothing(problem, whole, tmp_path, monkeypatch):
    ticks = iter(range(10**6, 0, -1))
    monkeypatch.setattr("time.time", lambda: float(next(ticks)))
    result = mescal.minimize(problem, X0, checkpoint=always(tmp_path), **SETTINGS)
    assert essence(result) == essence(whole) and result.seconds.total > 0


def test_a_warm_start_is_carried_on_warm(problem, whole, tmp_path):
    settings = {"solver": "spider", "tol": 1e-6, "seed": 5, "start": whole}
    straight = mescal.minimize(problem, **settings)
    mescal.minimize(problem, checkpoint=tmp_path, max_work=straight.work.total / 2, **settings)
    assert essence(mescal.resume(tmp_path, problem, max_work=1e12)) == essence(straight)


def test_parameters_in_dicts_need_no_x0_again(tmp_path, short_chunks):
    split = mescal.Problem(
        E(lambda p, row: loss(jnp.append(p["w"], p["b"][0]), row), over=ROWS),
        {"circle": E(lambda p: p["w"] @ p["w"] + p["b"][0] ** 2) == 1.0},
    )
    start = {"w": X0[:2], "b": (X0[2],)}
    settings = {"solver": "spider", "tol": 1e-4}
    straight = mescal.minimize(split, start, **settings)
    mescal.minimize(split, start, checkpoint=tmp_path, max_work=straight.work.total / 2, **settings)
    resumed = mescal.resume(tmp_path, split, max_work=1e12)
    np.testing.assert_array_equal(resumed.x["w"], straight.x["w"])
    assert isinstance(resumed.x["b"], tuple) and resumed.work.solver == straight.work.solver


class Line(eqx.Module):
    w: np.ndarray
    name: str = eqx.field(static=True)


def test_parameters_of_other_structure_are_asked_for(tmp_path, short_chunks):
    own = mescal.Problem(E(lambda p, row: loss(p.w, row), over=ROWS), {"circle": E(lambda p: circle(p.w)) == 1.0})
    start = Line(X0, "line")
    straight = mescal.minimize(own, start, solver="spider", tol=1e-4)
    mescal.minimize(own, start, solver="spider", tol=1e-4, checkpoint=tmp_path, max_work=straight.work.total / 2)
    with pytest.raises(InputError, match="a structure that a checkpoint cannot hold"):
        mescal.resume(tmp_path, own)
    resumed = mescal.resume(tmp_path, own, start, max_work=1e12)
    np.testing.assert_array_equal(resumed.x.w, straight.x.w)
    assert resumed.x.name == "line"


@pytest.mark.parametrize("settings", [{}, {"success": 0.9}], ids=["plain", "boosted"])
def test_a_theory_mode_is_carried_on(known, tmp_path, settings):
    settings = settings | {"penalty": 0.25}  # more than one outer iteration
    straight = known.minimize("spider-theory", **settings)
    known.minimize("spider-theory", checkpoint=always(tmp_path), max_outer=1, **settings)
    resumed = mescal.resume(tmp_path, known.problem, max_outer=100)
    assert essence(resumed) == essence(straight)


def test_a_run_at_its_cap_still_says_how_many_outer_iterations_it_had(problem, tmp_path):
    first = mescal.minimize(problem, X0, checkpoint=tmp_path, max_outer=1, **SETTINGS)
    again = mescal.resume(tmp_path, problem)
    assert again.status is Status.OUTER_LIMIT and again.outer_iterations == first.outer_iterations == 1


def test_settings_may_be_numbers_of_numpy(problem, whole, tmp_path):
    settings = SETTINGS | {"seed": np.int64(3), "max_outer": np.int32(100), "outer": mescal.Outer(scale=np.bool_(True))}
    mescal.minimize(problem, X0, checkpoint=always(tmp_path), max_work=whole.work.total / 2, **settings)
    assert essence(mescal.resume(tmp_path, problem, max_work=1e12)) == essence(whole)


def test_a_good_checkpoint_outlives_a_damaged_newer_one(problem, whole, stopped):
    flip(checkpoints.files(stopped)[-1])
    mescal.resume(stopped, problem, max_work=0.7 * whole.work.total)
    for path in checkpoints.files(stopped):
        checkpoints.read_checkpoint(path)


def test_other_bounds_are_another_problem(tmp_path, short_chunks):
    def boxed(radius):
        return mescal.Problem(E(loss, over=ROWS), {"circle": E(circle) == 1.0}, mescal.sets.Box(-radius, radius))

    mescal.minimize(boxed(5.0), X0, checkpoint=tmp_path, max_outer=1, **SETTINGS)
    with pytest.raises(InputError, match="another problem: its domain"):
        mescal.resume(tmp_path, boxed(6.0))


def test_bad_settings(problem):
    with pytest.raises(InputError, match="checkpoint=3"):
        mescal.minimize(problem, X0, checkpoint=3)
    with pytest.raises(InputError, match="seconds between checkpoints=-1"):
        mescal.Checkpoint("run", seconds=-1)
    with pytest.raises(InputError, match="watchdog=0"):
        mescal.Outer(watchdog=0)


@pytest.mark.parametrize("path", ["", "a\0b", 3, b"bytes"])
def test_a_path_that_is_none(problem, path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="checkpoint="):
        mescal.minimize(problem, X0, checkpoint=path)
    with pytest.raises(InputError, match="path="):
        mescal.resume(path, problem)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("x0", [np.array([np.nan, 0, 0]), np.zeros(2, np.float32), "x"])
def test_a_refused_start_leaves_no_folder(problem, x0, tmp_path):
    with pytest.raises(InputError):
        mescal.minimize(problem, x0, checkpoint=tmp_path / "deep" / "er")
    assert not list(tmp_path.iterdir())


def test_what_fails_in_its_course_leaves_no_empty_folder_and_no_lock(problem, tmp_path):
    def fail(_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        mescal.minimize(problem, X0, checkpoint=tmp_path / "deep", callback=fail, **SETTINGS)
    assert not list(tmp_path.iterdir())
    (tmp_path / "mine").mkdir()
    mescal.minimize(problem, X0, checkpoint=tmp_path / "mine", **SETTINGS)
    assert (tmp_path / "mine").is_dir(), "a folder that was there stays, also where nothing had to be stored"


def test_a_file_of_somebody_else_named_ended_stays(problem, stopped, tmp_path):
    for folder in (tmp_path, stopped):
        (folder / "ended").write_text("mine")
        with pytest.raises(InputError, match=r"ended exists, and mescal did not write it|has not come to its end"):
            mescal.minimize(problem, X0, checkpoint=always(folder), **SETTINGS)
        assert (folder / "ended").read_text() == "mine"
    with pytest.raises(InputError, match="ended exists, and mescal did not write it"):
        mescal.resume(stopped, problem)
    assert (stopped / "ended").read_text() == "mine" and len(checkpoints.files(stopped)) == 2


def test_two_runs_do_not_share_a_folder(problem, whole, stopped, tmp_path):
    kept = [path.read_bytes() for path in checkpoints.files(stopped)]
    with Hold(stopped), pytest.raises(InputError, match="in use by another run"):
        mescal.resume(stopped, problem)
    with Hold(tmp_path), pytest.raises(InputError, match="in use by another run"):
        mescal.minimize(problem, X0, checkpoint=tmp_path, **SETTINGS)
    assert [path.read_bytes() for path in checkpoints.files(stopped)] == kept
    (stopped / LOCK).write_text("1")  # of a process that was killed
    assert essence(mescal.resume(stopped, problem, max_work=1e12)) == essence(whole)


def test_files_of_others_in_the_folder_stay(problem, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    names = ("my.checkpoint", "00000001.checkpoint", "00000007.checkpoint", ".00000001.checkpoint.old.part")
    for name in names:
        (tmp_path / name).write_text("mine too")
    for _ in range(2):  # the second takes the place of the first
        mescal.minimize(problem, X0, checkpoint=always(tmp_path), **SETTINGS)
        assert all((tmp_path / name).read_text() == "mine too" for name in names)
        assert len(checkpoints.files(tmp_path)) == 2
    assert (tmp_path / "notes.txt").read_text() == "mine"
    shutil.rmtree(tmp_path)


def test_every_part_of_a_state_is_stored_or_known_not_to_be():
    names = {field.name for field in fields(State)}
    assert names == {*NUMBERS, *TALLIES, *snapshot.ARRAYS, *snapshot.APART}

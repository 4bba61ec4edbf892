"""The benchmarks are found, run, and leave JSON that says on what machine and with what settings."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from benchmarks import _measure, ablation, cold, field, gpu, walks
from benchmarks.__main__ import names
from benchmarks.harness.functions import Functions
from benchmarks.peers import _fresh
from mescal import problems

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
NAMES = (
    "ablation",
    "auto",
    "certify_large",
    "curvature_dense",
    "estimators",
    "large_population",
    "oracle_gradient",
    "rates",
    "solvers",
    "steps",
    "surrogates",
)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)


def test_every_benchmark_is_listed_with_what_it_measures():
    done = run("--list")
    assert done.returncode == 0, done.stderr
    listed = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert set(NAMES) <= set(listed)
    assert all(len(sentence) > 20 for sentence in listed.values())


@pytest.mark.parametrize("part", ["3/2", "0/1", "half"])
def test_a_part_that_is_none_is_refused(part):
    done = run("curvature_dense", "--quick", "--part", part)
    assert done.returncode == 2
    assert f"--part {part}" in done.stderr


def test_an_unknown_name_is_refused():
    done = run("nothing")
    assert done.returncode == 2
    assert "no benchmark named nothing" in done.stderr


def test_a_quick_run_stores_what_is_needed_to_read_it(tmp_path):
    done = run("curvature_dense", "--quick", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "directions" in done.stdout
    result = json.loads((tmp_path / "curvature_dense.json").read_text())
    assert result["benchmark"] == "curvature_dense" and result["quick"] is True
    assert {"cores", "memory_gb", "processor"} <= set(result["machine"])
    assert {"python", "jax", "numpy", "mescal"} <= set(result["versions"])
    assert result["settings"]["cases"] and result["date"] and result["threads"] == 1
    assert all(row["ratio"] > 0 for rows in result["tables"].values() for row in rows)


def test_peers_answer_what_the_field_compares_on(tmp_path):
    """Three small classes, for ours and SLSQP: the judge's verdict stands in a row for each."""
    done = run("field", "--quick", "--out", str(tmp_path), "--only", "auto", "--only", "SLSQP")
    assert done.returncode == 0, done.stderr
    everything, rows = json.loads((tmp_path / "field.json").read_text())["tables"].values()
    assert [row["certified"] for row in everything] == ["1/1", "1/1"]
    assert min(row["median seconds over the least"] for row in everything) == 1
    assert [(row["method"], row["certified"], row["claims"]) for row in rows] == [
        ("auto", "yes", "yes"),
        ("SLSQP", "yes", "yes"),
    ]


def test_a_field_that_was_stopped_goes_on(tmp_path, monkeypatch):
    """No time: nothing is run. Then one peer is run and kept, and with no time again its row is all that is shown."""
    small = problems.get(field.PROBLEMS[-1], **field.SMALL)
    monkeypatch.setattr(field, "STORE", tmp_path / "field.jsonl")
    monkeypatch.setattr(field, "PROBLEMS", (small.name,))
    monkeypatch.setattr(field.problems, "get", lambda name: small)
    monkeypatch.setattr(_measure, "seconds_left", 0)
    assert field.run(quick=False).tables == {}
    monkeypatch.setattr(_measure, "only", ("SLSQP",))
    monkeypatch.setattr(_measure, "seconds_left", None)
    made = field.run(quick=False).tables
    assert [row["method"] for rows in made.values() for row in rows] == ["SLSQP", "SLSQP"]
    assert len(field.STORE.read_text().splitlines()) == 1
    monkeypatch.setattr(_measure, "only", ())
    monkeypatch.setattr(_measure, "seconds_left", 0)
    assert field.run(quick=False).tables.keys() == made.keys()
    assert len(field.STORE.read_text().splitlines()) == 1


@pytest.mark.parametrize("variant", ablation.VARIANTS)
def test_what_an_ablation_changes_is_there(variant):
    """A part that the solvers no longer have under its name cannot be changed, which would be an error here."""
    with ablation.VARIANTS[variant][1]():
        pass


def test_what_compares_with_peers_is_listed():
    assert {"paper", "growth", "noisy_cutest", "bias"} <= set(names())


@pytest.mark.parametrize("name", [name for name in names() if name in NAMES or (RESULTS / f"{name}.json").exists()])
def test_stored_results_are_of_full_runs(name):
    result = json.loads((RESULTS / f"{name}.json").read_text())
    assert result["benchmark"] == name and result["quick"] is False
    assert result["tables"] and result["settings"]


def test_targets_of_the_gpu_are_those_that_are_held_today():
    """No machine that tests runs on has one: stored figures are held to the targets of now."""
    stored = json.loads((RESULTS / "gpu.json").read_text())
    report = _measure.Report(tables=stored["tables"])
    gpu.hold(report)
    assert [target["what"] for target in stored["targets"]] == [target["what"] for target in report.targets]
    for old, new in zip(stored["targets"], report.targets, strict=True):
        assert old["met"] == new["met"] and old["value"] == pytest.approx(new["value"], rel=1e-4)


class TestCold:
    def test_seconds_are_those_of_the_process(self):
        busy = "import json, time\nwhile time.process_time() < 0.5: pass\ntime.sleep(0.3)\nprint(json.dumps({'x': 1}))"
        cpu, wall, printed = cold._process([sys.executable, "-c", busy], dict(os.environ))
        assert 0.5 <= cpu < 5 and wall >= cpu - 0.1 and wall >= 0.8 and printed == {"x": 1}

    def test_a_process_that_fails_is_an_error(self):
        with pytest.raises(RuntimeError, match="exit code 3"):
            cold._process([sys.executable, "-c", "raise SystemExit(3)"], dict(os.environ))

    def test_all_repetitions_are_kept_and_the_smallest_answers(self):
        measured = cold.Measured()
        for cpu in (2.0, 1.0, 3.0):
            measured.add(cpu, 2 * cpu, {"of": cpu})
        assert measured.cpu == [2.0, 1.0, 3.0] and measured.answer == {"of": 1.0}

    def test_children_have_one_thread_and_no_cache(self, monkeypatch, tmp_path):
        monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "somewhere")
        monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
        environment = cold._environment(tmp_path)
        assert environment["OMP_NUM_THREADS"] == "1" and "eigen=false" in environment["XLA_FLAGS"]
        assert not {"JAX_COMPILATION_CACHE_DIR", "PYTHONDONTWRITEBYTECODE"} & set(environment)

    @pytest.mark.parametrize("name", ["breast-cancer", "stream", "bank"])
    def test_the_peer_solves_the_same_problem(self, request, name):
        """Its functions are ours, in value and gradient, at the start and elsewhere; those of a stream within the noise."""
        if name == "bank":
            request.getfixturevalue("data_folder")
        case = cold.CASES[name]
        rows = cold._rows(case.problem)
        exact = problems.get(case.problem, **({"sigma": 0.0} if name == "stream" else {}))
        known = Functions(exact.problem, rows["x0"])
        ours, inequality = _fresh.PROBLEMS[case.problem.partition("/")[0]]
        with jax.enable_x64(True):
            given = {key: jnp.asarray(value, jnp.float64) for key, value in rows.items()}
            for x in (np.asarray(rows["x0"], float), np.asarray(rows["x0"], float) / 2 + 0.1):
                first = known.first(x)
                f, c = ours(x, given)
                slope = jax.jacobian(lambda y: jnp.stack(ours(y, given)))(x)
                noise = 5 * 0.1 / np.sqrt(cold.DRAWS) * (1 + np.linalg.norm(x))  # five deviations
                close = {"rtol": 1e-6, "atol": noise if name == "stream" else 1e-7}
                np.testing.assert_allclose([f, c], [first.objective, *first.constraint], **close)
                np.testing.assert_allclose(slope, [first.gradient, *first.jacobian], **close)
        assert list(known.inequality) == [inequality]

    @pytest.mark.parametrize("solve", [_fresh.slsqp, _fresh.al_lbfgsb])
    def test_the_peers_solve(self, solve):
        with jax.enable_x64(True):
            rows = {key: jnp.asarray(value) for key, value in cold._rows("hock-schittkowski/7").items()}
            x, success = solve(*_fresh.PROBLEMS["hock-schittkowski"], rows, np.array([2.0, 2.0]), 1e-2)
        assert success and cold._certified(cold.CASES["stream"], x)

    def test_rows_can_be_chosen(self, monkeypatch):
        assert _measure.chosen(["a", "b"]) == ["a", "b"]
        monkeypatch.setattr(_measure, "only", ("b",))
        assert _measure.chosen(["a", "b"]) == ["b"]
        with pytest.raises(SystemExit, match="--only b: there are a, c"):
            _measure.chosen(["a", "c"])

    @pytest.mark.slow
    def test_a_quick_run(self, tmp_path):
        done = run("cold", "--quick", "--only", "import jax", "--only", "breast-cancer", "--out", str(tmp_path))
        assert done.returncode == 0, done.stderr
        result = json.loads((tmp_path / "cold.json").read_text())
        rows = {row["what"]: row for row in result["tables"]["seconds of a process, the smallest of all"]}
        assert {"import jax", "import mescal", "breast-cancer: SLSQP", f"breast-cancer: {cold.KEPT}"} <= set(rows)
        assert rows[f"breast-cancer: {cold.KEPT}"]["cpu"] < rows[f"breast-cancer: {cold.EMPTY}"]["cpu"]
        assert {target["what"] for target in result["targets"]} >= {
            "import mescal",
            "breast-cancer, with kept programs",
        }


class TestWalks:
    def test_functions_and_lines_of_the_package_are_counted(self):
        box = mescal.sets.Box(0.0, 1.0)
        found = walks.Walk().follow(lambda: box.project(np.ones(2, np.float32)))
        assert "sets/box.py" in found and len(found["sets/box.py"]["lines"]) >= 1
        assert [name for name in found["sets/box.py"]["functions"] if name.endswith("Box.project")]
        assert all((walks.PACKAGE / file).is_file() for file in found)

    def test_what_is_imported_on_the_way_is_not_walked_through(self):
        code = "from benchmarks.walks import Walk; import importlib, json; "
        code += "print(json.dumps(Walk().follow(lambda: importlib.import_module('mescal.baselines'))))"
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
        assert json.loads(done.stdout) == {}

    @pytest.mark.slow
    def test_both_walks(self, tmp_path):
        done = run("walks", "--quick", "--out", str(tmp_path))
        assert done.returncode == 0, done.stderr
        rows = json.loads((tmp_path / "walks.json").read_text())["tables"]["one call"]
        assert [row["call"] for row in rows] == list(walks.TARGETS)
        assert all(0 < row["files"] < row["functions"] < row["lines"] < row["lines_of_these_files"] for row in rows)

    def test_rooms_hold_every_file(self):
        found = walks.rooms()
        assert sorted(found.pop("all")) == sorted(lines for sizes in found.values() for lines in sizes)
        assert {"certificate", "solvers", "beside the rooms"} < set(found)

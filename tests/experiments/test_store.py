"""A run folder holds what was asked and what came out, and is refused where it cannot be trusted."""

import json

import numpy as np
import pytest

import mescal
from mescal import E, InputError
from mescal.experiments import SCHEMA, load_run, load_runs, write_config, write_result
from mescal.files import read_json
from mescal.run.history import KINDS

pytestmark = pytest.mark.quick

REQUIRED = (
    "problem solver seed tol status converged objective certificate work outer_iterations seconds versions "
    "multipliers constraints parameters machine"
)


def test_the_files_of_a_run(stored):
    assert sorted(p.name for p in stored.path.iterdir()) == [
        "config.json",
        "history.csv",
        "result.json",
        "solution.npz",
    ]
    assert stored.finished and stored.converged
    assert stored.config["schema"] == read_json(stored.path / "result.json")["schema"] == SCHEMA
    with np.load(stored.path / "solution.npz") as file:
        assert set(file.files) - {"direction"} == {"multipliers", "schema", "slack", "x"} and file["schema"] == SCHEMA


def test_result_json_holds_what_is_promised(stored):
    result = read_json(stored.path / "result.json")
    assert set(REQUIRED.split()) <= set(result)
    assert {"stationarity", "feasibility", "curvature", "relative_stationarity"} <= set(result["certificate"])
    assert {"gradients", "hvps", "total", "certificate"} <= set(result["work"])
    assert {"total", "compile"} <= set(result["seconds"])
    work = result["work"]
    assert work["total"] == pytest.approx(work["gradients"] + 2 * work["hvps"])
    assert result["problem"] == "saddles/circle" and result["parameters"] == {"sigma": 0.0}
    assert result["tol"] == 0.05 and result["status"] == "certified" and result["seed"] == 0
    assert abs(result["constraints"]["circle"]) <= 0.05 and result["multipliers"].keys() == {"circle"}
    assert result["versions"]["mescal"] == mescal.__version__
    json.dumps(result, allow_nan=False)


def test_the_certificate_is_stored_whole(stored):
    certificate = stored.result.certificate
    assert set(certificate.curvatures) == {"whole", "paper", "critical"}
    assert certificate.objective.value == stored.result.objective and certificate.passes(0.05)


def test_history_columns(stored):
    columns = {name: np.asarray(values) for name, values in stored.result.history.table().items()}
    names = list(columns)
    assert names[: len(KINDS)] == list(KINDS) and "multiplier:circle" in names
    assert {f"exact:{m}" for m in ("stationarity", "feasibility", "curvature", "objective")} <= set(names)
    lengths = {len(column) for column in columns.values()}
    assert lengths == {1 + stored.result.outer_iterations}  # the start has a row of its own
    assert columns["outer"][0] == -1
    assert columns["work"][-1] <= stored.result.work.total
    assert columns["inner"].dtype.kind == "U"
    head = (stored.path / "history.csv").read_text(encoding="utf-8").partition("\n")[0]
    assert head.split(",") == names == list(stored.result.history.to_pandas().columns)


def test_vector_constraints_and_slacks_keep_their_order(tmp_path):
    target = np.array([1.0, 2.0, 3.0], np.float32)
    problem = mescal.Problem(
        E(lambda x: ((x["a"] - target) ** 2).sum() + x["b"] ** 2),
        {"cap": E(lambda x: x["a"]) <= np.array([0.5, 9.0, 9.0]), "tie": E(lambda x: x["a"][2] + x["b"]) == 2.0},
    )
    result = mescal.minimize(problem, {"a": np.zeros(3, np.float32), "b": np.float32(0)}, tol=0.01, solver="spider")
    write_config(tmp_path / "r", {"problem": "mine"})
    run = write_result(tmp_path / "r", result, problem="mine", about={})
    solution = run.solution()
    expected_x = np.concatenate([np.ravel(result.x["a"]), np.ravel(result.x["b"])])
    np.testing.assert_array_equal(solution["x"], expected_x)
    np.testing.assert_array_equal(solution["slack"], result.slack["cap"])
    np.testing.assert_array_equal(
        solution["multipliers"], [*result.multipliers["cap"], float(result.multipliers["tie"])]
    )
    table = run.result.history.table()
    columns = [name for name in table if name.startswith("multiplier:")]
    assert columns == ["multiplier:cap[0]", "multiplier:cap[1]", "multiplier:cap[2]", "multiplier:tie"]
    rows = np.stack([table[name] for name in columns], axis=1)
    np.testing.assert_array_equal(rows, [row.multipliers for row in result.history])


def test_a_run_that_has_not_ended(tmp_path):
    write_config(tmp_path, {"problem": "p"})
    run = load_run(tmp_path)
    assert run.result is None and run.about is None and not run.finished and not run.converged
    with pytest.raises(InputError, match="holds no solution"):
        run.solution()


def test_load_runs_finds_each_once_in_order(tmp_path):
    for name in ("b/2", "b/1", "a"):
        write_config(tmp_path / name, {"problem": name})
    found = load_runs([tmp_path / "b", tmp_path])
    assert [run.config["problem"] for run in found] == ["b/1", "b/2", "a"]
    assert [run.config["problem"] for run in load_runs(str(tmp_path / "a"))] == ["a"]


def test_a_folder_of_another_version_is_refused_by_name(tmp_path):
    write_config(tmp_path / "old", {"problem": "p"})
    content = json.loads((tmp_path / "old" / "config.json").read_text(encoding="utf-8"))
    (tmp_path / "old" / "config.json").write_text(json.dumps(content | {"schema": SCHEMA + 1}), encoding="utf-8")
    for load in (load_run, load_runs):
        with pytest.raises(InputError, match=f"old is a run folder of version {SCHEMA + 1}"):
            load(tmp_path / "old")


def test_folders_without_runs_are_refused(tmp_path):
    with pytest.raises(InputError, match="is not a folder"):
        load_run(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"no config\.json"):
        load_run(tmp_path)
    with pytest.raises(InputError, match="holds no runs"):
        load_runs(tmp_path)
    with pytest.raises(InputError, match="could not be read"):
        load_runs(tmp_path / "nowhere")


def without_digests(folder):
    """As if somebody had changed result.json along with the others."""
    content = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    del content["files"]
    (folder / "result.json").write_text(json.dumps(content), encoding="utf-8")


@pytest.mark.parametrize("text", ["a,b\n1\n", "work\nmany\n", ""])
def test_a_damaged_history_is_named(tmp_path, stored, text):
    for name in ("config.json", "result.json"):
        (tmp_path / name).write_bytes((stored.path / name).read_bytes())
    (tmp_path / "history.csv").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"history\.csv is not what was written"):
        load_run(tmp_path)
    without_digests(tmp_path)
    with pytest.raises(InputError, match=r"history\.csv is not a history"):
        load_run(tmp_path)


def test_a_damaged_solution_is_named(tmp_path, stored):
    for path in stored.path.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "solution.npz").write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(InputError, match=r"solution\.npz holds no solution"):
        load_run(tmp_path).solution()

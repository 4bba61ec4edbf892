"""The commands that list, compare and report; help texts; completion."""

import io
import json
import re
from pathlib import Path

import pytest
from rich.console import Console

from mescal import Tolerance, baselines as known_baselines, problems as known_problems, solvers as known_solvers
from mescal.cli.compare import show_comparison
from mescal.cli.options import solver_options
from mescal.errors import InputError
from mescal.experiments import product
from mescal.experiments.table import METRICS, ComparisonRow, Range

pytestmark = pytest.mark.quick

COMMANDS = (
    "solve",
    "certify",
    "resume",
    "report",
    "reproduce",
    "compare",
    "problems",
    "solvers",
    "datasets",
    "theory",
    "tune",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_teaches_with_examples(mescal, command):
    result = mescal(command, "--help")
    assert (
        result.exit_code == 0 and f"Usage: mescal {command}" in result.stdout and f"  mescal {command}" in result.stdout
    )


def test_without_a_command_there_is_help(mescal):
    result = mescal()
    assert all(command in result.output for command in COMMANDS)


def test_version(mescal):
    assert re.fullmatch(r"mescal \d+\.\d+\.\d+\n", mescal("--version").stdout)


def test_problems(mescal):
    listing = mescal("problems")
    assert listing.exit_code == 0
    assert all(name in listing.stdout for name in known_problems.names())
    assert [entry["name"] for entry in json.loads(mescal("problems", "--json").stdout)] == list(known_problems.names())
    entries = json.loads(mescal("problems", "--json").stdout)
    assert len({entry["description"] for entry in entries}) == len(entries)
    assert "With an active constraint (marital=married, tau 1)." in listing.stdout
    one = mescal("problems", "fairness/bank")
    assert "tau" in one.stdout and "0.4" in one.stdout and "a number >= 0" in one.stdout
    assert json.loads(mescal("problems", "fairness/bank", "--json").stdout)["parameters"]["tau"]["default"] == 0.4


def test_solvers(mescal):
    listing = mescal("solvers")
    assert all(name in listing.stdout for name in (*known_solvers.names(), *known_baselines.names()))
    one = mescal("solvers", "spider")
    assert "period" in one.stdout and "batch=0" in one.stdout and "0 is left to the solver" in one.stdout
    assert json.loads(mescal("solvers", "spider", "--json").stdout)["settings"]["batch"] == 0
    shown = mescal("solvers", "spider-paper", "--json").stdout
    assert "gamma" in shown and "Infinity" not in shown


def test_one_number_of_a_sequence_is_an_option():
    found = solver_options("spider-paper", ["gamma=0.5", "dual_batch=30", "search=oja"])
    assert found == {"gamma": 0.5, "dual_batch": 30, "search": "oja"}
    with pytest.raises(InputError, match="dual_batch=few"):
        solver_options("spider-paper", ["dual_batch=few"])


def test_datasets_say_where_they_are(mescal, monkeypatch, tmp_path):
    monkeypatch.delenv("MESCAL_DATA", raising=False)
    places = {entry["name"]: entry["where"] for entry in json.loads(mescal("datasets", "--json").stdout)}
    assert places["breast-cancer"] == "with scikit-learn" and places["spambase"] == "to be downloaded"
    assert places["loan"] == "needs MESCAL_DATA"
    (tmp_path / "spambase.data").touch()
    monkeypatch.setenv("MESCAL_DATA", str(tmp_path))
    assert json.loads(mescal("datasets", "spambase", "--json").stdout)["where"] == "in MESCAL_DATA"


def test_a_data_set_is_fetched_and_described(mescal):
    result = mescal("datasets", "breast-cancer", "--fetch")
    assert result.exit_code == 0 and "569 rows, 30 features" in result.stdout and "CC BY 4.0" in result.stdout


def test_theory(mescal):
    result = mescal("theory")
    assert "MESCAL-SPIDER" in result.stdout and "eps_g^-6 eps_H^-2" in result.stdout
    rows = {row["method"]: row for row in json.loads(mescal("theory", "--json").stdout)}
    assert rows["Stoch-SQP"]["first_order"] == "eps_g^-4" and rows["MESCAL-SPIDER"]["second_order"].startswith(
        "eps_g^-6"
    )


@pytest.mark.slow
def test_theory_of_a_problem(mescal):
    arguments = ["theory", "saddles/circle", "--set", "sigma=0", "--tol", "0.1"]
    text, content = mescal(*arguments), json.loads(mescal(*arguments, "--json").stdout)
    assert text.exit_code == 0 and "eps_g = 0.1" in text.stdout and f"K* = {content['iterations']}" in text.stdout
    assert {entry["solver"] for entry in content["solvers"]} == {"spider", "sg-hv-nc", "natasha2"}


def test_compare_sweeps_and_then_reads_what_it_stored(mescal):
    sweep = ["saddles/circle", "--set", "sigma=0", "--tol", "0.05", "--solver", "spider", "--seeds", "2", "--jobs", "1"]
    first = mescal("compare", *sweep, "--out", "store")
    assert first.exit_code == 0 and "2 of 2" in first.stdout and first.stderr.count("certified") == 2
    second = mescal("compare", *sweep, "--out", "store")
    assert second.exit_code == 0 and "2 stored already" in second.stderr
    (row,) = json.loads(mescal("compare", "store", "--json").stdout)
    assert row["certified"] == 2 and row["ratio"] == 1 and row["problem"] == "saddles/circle,sigma=0.0"
    assert mescal("compare", "store", "--markdown").stdout.startswith("| problem")
    lines = mescal("compare", "store", "--latex").stdout.splitlines()
    assert lines[:2] == [r"\begin{tabular}{llllrrrrrr}", r"\toprule"] and lines[-1] == r"\end{tabular}"
    assert all(line.count(" & ") == 9 for line in (lines[2], lines[4])) and lines[4].endswith(r" \\")


@pytest.mark.parametrize(("terminal", "ranges"), [(True, False), (False, True)])
def test_a_comparison_is_never_cut(terminal, ranges):
    """A terminal without room for the ranges shows medians; a pipe has lines as long as they need to be."""
    spread = Range(123_456.0, 12_345.0, 1_234_567.0)
    medians = dict.fromkeys((metric.name for metric in METRICS), spread)
    row = ComparisonRow("saddles/circle", Tolerance(0.1, 0.1), "sg-hv-nc,batch=16", 3, 3, medians, 1.0)
    console = Console(file=io.StringIO(), force_terminal=terminal, width=110, no_color=True)
    show_comparison(console, [row], "spider")
    text = console.file.getvalue()
    assert "…" not in text and "sg-hv-nc,batch=16" in text and "certified" in text and (" to 1" in text) is ranges


def test_compare_exits_with_1_where_a_run_has_no_certificate(mescal, stored_folder):
    hopeless = ["--set", "sigma=0", "--tol", "1e-12", "--seeds", "1", "--solver", "spider", "--max-seconds", "1e-9"]
    result = mescal("compare", "saddles/circle", *hopeless, "--jobs", "1", "--out", "store", "-q")
    assert result.exit_code == 1 and "0 of 1" in result.stdout
    assert mescal("compare", stored_folder, "--json").exit_code == 0


def test_report_writes_the_page_beside_the_runs(mescal, stored_folder):
    result = mescal("report", stored_folder)
    assert result.exit_code == 0 and "about 1 run." in result.stdout
    page = stored_folder / "report.html"
    assert page.stat().st_size > 0
    page.unlink()
    elsewhere = mescal("report", stored_folder, "--out", "page.html", "--figures", "figures")
    assert elsewhere.exit_code == 0 and Path("page.html").stat().st_size > 0
    assert {path.suffix for path in Path("figures").iterdir()} == {".png", ".svg"}
    told = json.loads(mescal("report", stored_folder, "--out", "page.html", "--json").stdout)
    assert told == {"report": "page.html", "figures": [], "runs": 1}


def test_reproduce_runs_its_tasks_and_writes_table_and_figures(mescal, monkeypatch):
    """On a tiny problem in the place of the paper's; `--quick` and the full set differ from it in names and numbers."""
    monkeypatch.setattr(
        "mescal.experiments.reproduce.product",
        lambda problems, solvers, **given: product(problems, ["spider"], **(given | {"parameters": {"sigma": 0.0}})),
    )
    arguments = ["--problem", "saddles/circle", "--seeds", "2", "--tol", "0.05", "--out", "paper", "--jobs", "1", "-q"]
    result = mescal("reproduce", *arguments)
    assert result.exit_code == 0 and "Wrote paper/table.md" in result.stdout
    assert "saddles/circle,sigma=0.0" in Path("paper/table.md").read_text(encoding="utf-8")
    assert json.loads(Path("paper/table.json").read_text(encoding="utf-8"))["rows"][0]["certified"] == 2
    assert list(Path("paper/figures").glob("*.svg")) and Path("paper/report.html").is_file()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("mescal so", ["solve", "solvers"]),
        ("mescal solve neyman-pearson/b", ["neyman-pearson/breast-cancer"]),
        ("mescal solve saddles/circle --solver sp", ["spider", "spider-paper", "spider-theory"]),
        ("mescal solve saddles/circle --cone c", ["critical"]),
        ("mescal datasets spam", ["spambase"]),
    ],
)
def test_completion(mescal, monkeypatch, words, expected):
    monkeypatch.setenv("_MESCAL_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    assert [line.partition("\t")[0] for line in mescal().stdout.split("\n") if line] == expected

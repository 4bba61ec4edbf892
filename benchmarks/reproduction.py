"""The paper's section 5 with its own algorithms: ratios of work, its sentences beside what was seen, searches and resets varied.

Four problems, three solvers in paper mode with settings from a grid on another seed, and the practical solvers of the same names.
Runs are kept in results/reproduction.jsonl: a second call goes on where the first was stopped.
"""

from pathlib import Path
from statistics import median
from typing import Any

from mescal.experiments.reproduce import PROBLEMS

from ._measure import Report
from ._paper_runs import (
    BATCHES,
    COINS,
    FREQUENCIES,
    KEYS,
    MOST,
    PAPER_MODES,
    PRACTICAL,
    REPORTED,
    RESETS,
    SHORT,
    TUNED,
    VARIED,
    Runs,
    between,
    shortened,
)
from ._paper_sentences import reasons, sentences
from .harness.store import Store

STORE = Path(__file__).parent / "results" / "reproduction.jsonl"
QUICK = ("neyman-pearson/breast-cancer",)

Rows = list[dict[str, Any]]


def run(quick: bool) -> Report:
    """Whatever is missing in the store, then the summary; `--quick` is one small problem, one seed, and keeps nothing."""
    store = Store(None if quick else STORE, KEYS)
    names, seeds, varied = (QUICK, range(1), range(1)) if quick else (PROBLEMS, REPORTED, VARIED)
    Runs(store).all_of(names, seeds, varied)
    return report(list(store.all()), names, len(seeds))


def report(rows: Rows, names: tuple[str, ...], seeds: int) -> Report:
    """Tables, sentences, and the curves of the first seed."""
    found = Report({"tol": 0.01, "most_work": MOST, "seeds": seeds, "tuning_seed": TUNED, "problems": list(names)})
    for mode, solvers in (("paper", PAPER_MODES), ("practical", PRACTICAL)):
        for name in names:
            least = _median(_of(rows, mode, name, solvers[0]), "work")
            for solver in solvers:
                if mine := _of(rows, mode, name, solver):
                    found.add(f"work to 0.01, {mode} modes", problem=name, solver=solver, **summary(mine, least))
    for row in _of(rows, "tuning"):
        chosen = {} if row["best"] is None else row["best"]["options"]
        cost = None if row["best"] is None else row["work"] / row["best"]["work"]
        certified = sum(trial["certified"] for trial in row["trials"])
        words = ", ".join(f"{key}={value:g}" for key, value in chosen.items()) or "none was certified"
        ends = [key for key, value in chosen.items() if value in edges(row["trials"], key)]
        trials = f"{certified}/{len(row['trials'])}"
        found.add(
            "settings by grid", problem=row["problem"], solver=row["solver"], choice=words, certified=trials,
            at_an_edge=", ".join(ends) or "none", work_of_the_grid=row["work"], over_the_chosen_run=cost,
        )  # fmt: skip
    for name in names:
        base = _median(_of(rows, "paper", name, PAPER_MODES[0]), "work")
        for solver, (setting, values) in FREQUENCIES.items():
            for value in values:
                if mine := _of(rows, "frequency", name, solver, f"{value:g}"):
                    steps = between(solver, value, mine[0]["options"])
                    shown = {"problem": name, "solver": solver, "setting": f"{setting} = {value:g}"}
                    found.add("search frequencies", **shown, steps_between_searches=steps, **summary(mine, base))
        for coin in COINS:
            if mine := _of(rows, "short steps", name, "sg-hv-nc-paper", f"{coin:g}"):
                told = ", ".join(f"{key} = {value:g}" for key, value in {"coin": coin, **SHORT}.items())
                found.add("sg-hv-nc-paper with short steps", problem=name, setting=told, **summary(mine, base))
        for value in BATCHES.get(name, ()):
            least = _median(_of(rows, "resets", name, PAPER_MODES[0], f"{value}"), "work")
            for solver, setting in RESETS.items():
                if mine := _of(rows, "resets", name, solver, f"{value}"):
                    told = f"{setting} = {value}"
                    found.add("resets from batches", problem=name, solver=solver, setting=told, **summary(mine, least))
    found.conclusions += sentences(rows, names) + reasons(rows, names)
    found.settings["curves"] = {
        f"{row['problem']}, {row['solver']}": row["curve"] for row in rows if row.get("curve")
    }  # fmt: skip
    varied = sum(len(values) for _, values in FREQUENCIES.values()) * len(names)
    varied += sum(len(BATCHES.get(name, ())) for name in names) * len(PAPER_MODES)
    for row in _of(rows, "tuning"):
        if row["solver"] == "sg-hv-nc-paper" and row["best"] is not None and shortened(row["best"]["options"]):
            varied += len(COINS)
    expected = len(names) * (len(PAPER_MODES) + 6 * seeds) + varied * (3 if seeds > 1 else 1)
    if len(rows) < expected:
        found.conclusions.append(f"{len(rows)} of {expected} runs are made; a second call makes the others.")
    return found


def summary(rows: Rows, base: float | None) -> dict[str, Any]:
    """Medians and ranges; work of runs without a certificate is what they spent, so that ratios are lower bounds there."""
    works = sorted(row["work"] for row in rows)
    return {
        "certified": f"{sum(row['certified'] for row in rows)}/{len(rows)}",
        "uncertified": ", ".join(sorted({row["status"] for row in rows if not row["certified"]})),
        "work": median(works),
        "range": f"{works[0]:.3g} to {works[-1]:.3g}",
        "over_spider": None if base is None else median(works) / base,
        "range_of_that": None if base is None else f"{works[0] / base:.2g} to {works[-1] / base:.2g}",
        "share_of_searches": median(row["searches"] / row["work"] for row in rows),
        "outer": median(row["outer"] for row in rows),
        "steps": median(row["steps"] for row in rows),
        "distance": median(row["distance"] for row in rows),
        "objective": median(row["objective"] for row in rows),
    }


def edges(trials: Rows, name: str) -> tuple[float, float]:
    """The least and the largest value of a setting that a grid has."""
    values = [trial["options"][name] for trial in trials]
    return min(values), max(values)


def _of(rows: Rows, study: str, *key: Any) -> Rows:
    """Rows of a study; of a problem, of a solver, of a setting."""
    names = ("problem", "solver", "setting")[: len(key)]
    return [row for row in rows if row["study"] == study and all(row[n] == k for n, k in zip(names, key, strict=True))]


def _median(rows: Rows, name: str) -> float | None:
    return median(row[name] for row in rows) if rows else None

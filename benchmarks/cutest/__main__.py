"""Runs or judges a method of somebody else on the noisy problems: `python -m benchmarks.cutest FILE.py:FUNCTION | ANSWERS.jsonl`.

One line of JSON is one run. Lines of answers have `REQUIRED` and `OPTIONAL`; judged ones have what the judge found besides, and are
those of `results/noisy_cutest.jsonl`. A judged run is not run again. At the end a table shows the method beside those of that file.
"""

import argparse
import importlib.util
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from .. import noisy_cutest
from ..harness import Answer, Task, judge
from ..harness.profiles import shares
from ..harness.store import Store, failed_row, row_of
from ..harness.task import Kind
from . import source
from .noisy import load, names
from .oracle import Exhausted, Oracle

# Of a line of answers: what it must have, and what it may have.
REQUIRED = {"method": str, "problem": str, "noise": (int, float), "seed": int, "x": list, "work": (int, float)}
OPTIONAL = {"claims": bool, "status": str, "seconds": (int, float), "multipliers": list, "tol": (int, float)}
SHOWN = ("method", "problems", "certified", "claimed by itself", "of these refused", "median work when certified")


@dataclass(frozen=True)
class Theirs:
    """A method by its name alone: what a row says of it."""

    name: str
    kind: Kind = "peer"


def run(solve: Callable[[Oracle], Any], task: Task, noise: float) -> Answer:
    """One run within the budget; beyond it, the last point that was asked for."""
    oracle = Oracle(load(task.name), noise, task.seed, task.tol, task.budget)
    start = time.perf_counter()
    try:
        given = solve(oracle)
    except Exhausted:
        given = {"x": oracle.last, "claims": False, "status": "budget spent"}
    seconds = time.perf_counter() - start
    line = dict(given) if isinstance(given, dict) else {"x": given}
    return answer_of(line | {"work": oracle.work, "seconds": seconds}, task)


def answer_of(line: dict[str, Any], task: Task) -> Answer:
    """The answer that a line holds."""
    x, m = np.asarray(line["x"], np.float64), load(task.name).m
    if x.shape != task.x0.shape:
        raise ValueError(
            f"{task.name}: x has the shape {x.shape}.\n  Expected: {task.x0.shape}.\n"
            "  What to do: give the variables in the order of CUTEst, as one flat list."
        )
    weights, seconds = line.get("multipliers"), line.get("seconds")
    if weights is not None and np.shape(weights) != (m,):
        raise ValueError(
            f"{task.name}: multipliers of the shape {np.shape(weights)}.\n  Expected: ({m},), one for each equation.\n"
            "  What to do: give them in the order of the equations, or leave them out."
        )
    return Answer(
        x=x,
        claims=line.get("claims"),
        status=str(line.get("status") or ""),
        work=float(line["work"]),
        seconds=float("nan") if seconds is None else float(seconds),
        multipliers={"equations": np.asarray(weights, np.float64)} if weights is not None and m else None,
    )


def judged(name: str, task: Task, noise: float, answer: Answer) -> dict[str, Any]:
    """The row of a run: the answer, whole, and what the judge says of it."""
    row = row_of(Theirs(name), task, noise, answer, judge(task, answer))
    weights = answer.multipliers and answer.multipliers["equations"].tolist()
    return row | ({"multipliers": weights} if weights else {})


def lines_of(path: Path) -> Iterator[dict[str, Any]]:
    """The answers of a file, each checked."""
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            line = json.loads(text)
        except json.JSONDecodeError as error:
            line, found = {}, f"is not JSON: {error.msg}"
        else:
            found = complaint(line)
        if found:
            raise ValueError(
                f"{path.name}, line {number}: {found}.\n  Expected: one object a line, with {', '.join(REQUIRED)}, and, "
                f'if known, {", ".join(OPTIONAL)}.\n  What to do: see the page "CUTEst with noise" of the documentation.'
            )
        yield line


def complaint(line: Any) -> str:
    """What is wrong with a line; empty where it can be judged."""
    if not isinstance(line, dict):
        return "it is no object"
    for name, kind in (REQUIRED | OPTIONAL).items():
        value = line.get(name)
        if value is None and name in REQUIRED:
            return f"{name} is missing"
        if value is not None and not _is(value, kind):
            return f"{name} is {value!r}"
        if isinstance(value, list) and not all(entry is None or _is(entry, (int, float)) for entry in value):
            return f"{name} holds what is no number"
    if line["problem"] not in names():
        return f"no problem is called {line['problem']}"
    if line["noise"] < 0 or line["work"] < 0 or line["seed"] < 0:
        return "noise, work or seed is below zero"
    if line.get("tol") not in (None, noisy_cutest.TOL):
        return f"tol is {line['tol']}, where the judge's is {noisy_cutest.TOL}"
    return ""


def _is(value: Any, kind: type | tuple[type, ...]) -> bool:
    """Whether it is of that kind; True is no number."""
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def method_of(text: str) -> tuple[str, Callable[[Oracle], Any]]:
    """The name and the function that `FILE.py:FUNCTION` means."""
    path, _, name = text.rpartition(":")
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    if not path.endswith(".py") or not Path(path).is_file() or spec is None or spec.loader is None:
        raise ValueError(
            f"there is no file {path or text}.\n  Expected: FILE.py:FUNCTION, or a file of answers that ends with .jsonl.\n"
            "  What to do: name the file that holds your method, and the function in it."
        )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not callable(solve := getattr(module, name, None)):
        raise ValueError(
            f"{path} has no function {name}.\n  Expected: a function of an oracle that returns a point.\n"
            "  What to do: name a function of that file behind the colon."
        )
    return Path(path).stem, solve


def beside(rows: list[dict[str, Any]], stored: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Shares of these rows, and of the stored ones on the same problems, noise and seeds."""
    keys = {(row["problem"], row["noise"], row["seed"]) for row in rows}
    mine = {row["method"] for row in rows}
    others = [
        row for row in stored if (row["problem"], row["noise"], row["seed"]) in keys and row["method"] not in mine
    ]
    lines = shares([noisy_cutest.within_budget(row) for row in rows + others])
    lines = [line for line in lines if line["problems"] == len(keys)]  # a method that was run on fewer is no comparison
    return sorted(lines, key=lambda line: -line["certified"])


def written(lines: list[dict[str, Any]]) -> str:
    """A Markdown table."""
    cells = [
        [f"{line[name]:.3g}" if isinstance(line[name], float) else str(line[name]) for name in SHOWN] for line in lines
    ]
    return "\n".join("| " + " | ".join(row) + " |" for row in [list(SHOWN), ["---"] * len(SHOWN), *cells])


def main(arguments: list[str] | None = None) -> int:
    """Run what is missing, judge it, keep it, and print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cutest", description="Your method on CUTEst with noise."
    )
    parser.add_argument("what", metavar="FILE.py:FUNCTION | ANSWERS.jsonl", help="a method to run, or answers to judge")
    parser.add_argument("--out", type=Path, help="where judged runs are kept; default: NAME.judged.jsonl here")
    parser.add_argument("--noise", type=float, default=noisy_cutest.MAIN, help="standard deviation; default: 0.01")
    parser.add_argument("--seed", type=int, default=noisy_cutest.SEED, help="of the draws; default: 0")
    parser.add_argument(
        "--problem", action="append", metavar="NAME", help="one of the problems; may be repeated; default: all"
    )
    options = parser.parse_args(arguments)
    if not source.available():
        parser.error("the problems come with the package sif2jax: pip install sif2jax")
    warnings.filterwarnings("ignore", "Explicitly requested dtype")  # of the collection's own files
    if unknown := sorted(set(options.problem or ()) - set(names())):
        parser.error(f"no problem is called {', '.join(unknown)}; there are {', '.join(sorted(names()))}")
    try:
        rows = _rows(options)
    except ValueError as error:
        parser.exit(1, f"{error}\n")
    print("\n" + written(beside(rows, list(Store(noisy_cutest.STORE).all()))))
    return 0


def _rows(options: argparse.Namespace) -> list[dict[str, Any]]:
    """The judged runs that were asked for, those that were kept before among them."""
    if options.what.endswith(".jsonl"):
        path, solve = Path(options.what), None
        if not path.is_file():
            raise ValueError(
                f"there is no file {path}.\n  Expected: a file of answers.\n  What to do: look at its name."
            )
        name, lines = path.stem, [line for line in lines_of(path) if line["problem"] in (options.problem or names())]
    else:
        name, solve = method_of(options.what)
        chosen = options.problem or noisy_cutest.order()[: noisy_cutest.COUNTS[noisy_cutest.MAIN]]
        lines = [{"method": name, "problem": p, "noise": options.noise, "seed": options.seed} for p in chosen]
    store, found = Store(options.out or Path(f"{name}.judged.jsonl")), []
    for line in lines:
        key = line["method"], line["problem"], float(line["noise"]), line["seed"], noisy_cutest.TOL
        if not store.has(*key):
            store.add(_row(line, solve))
            print(f"{line['problem']:12} {store.rows[key]['certified']!s:5} {store.rows[key]['why']}", flush=True)
            jax.clear_caches()  # a process can hold only so many programs
        found.append(store.rows[key])
    return found


def _row(line: dict[str, Any], solve: Callable[[Oracle], Any] | None) -> dict[str, Any]:
    """A run, if there is a method to run, and its judgement; a method that breaks has failed, and says how."""
    noise = float(line["noise"])
    task = noisy_cutest.task_of(line["problem"], noise, {}, line["seed"])
    if solve is None:
        return judged(line["method"], task, noise, answer_of(line, task))
    try:
        answer = run(solve, task, noise)
    except Exception as error:
        why = f"broke: {type(error).__name__}: {(str(error).splitlines() or [''])[0][:100]}"
        return failed_row(Theirs(line["method"]), task, noise, why)
    return judged(line["method"], task, noise, answer)


if __name__ == "__main__":
    sys.exit(main())

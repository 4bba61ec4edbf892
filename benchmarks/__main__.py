"""The command line: finds the benchmarks of this folder, runs them on a fixed number of threads, prints and stores."""

import argparse
import ast
import importlib
import os
import re
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
APART = (
    "coverage",
    "field",
    "fuzz",
    "gpu",
    "judged_runs",
    "many_gpus",
    "noisy_cutest",
    "reproduction",
)  # run only when named: they need another machine, all cores of this one, or hours


def names() -> list[str]:
    """All benchmarks, by file name."""
    return sorted(path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("_"))


def describe(name: str) -> str:
    """The first line of a benchmark's file, without importing it."""
    return (ast.get_docstring(ast.parse((FOLDER / f"{name}.py").read_text())) or "").splitlines()[0]


def hold_to(threads: int, part: int = 1) -> int:
    """Restrict this process to that many cores; parts of one benchmark to different ones.

    Must come before numpy and jax are imported, which look at it once.
    """
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NPROC"):
        os.environ[variable] = str(threads)
    if hasattr(os, "sched_setaffinity"):
        allowed = sorted(os.sched_getaffinity(0))
        last = len(allowed) - (part - 1) * threads % len(allowed)
        os.sched_setaffinity(0, allowed[max(0, last - threads) : last])
        return min(threads, len(allowed))
    return threads


def main(arguments: list[str] | None = None) -> int:
    """Run what was asked for; 1 when a target was missed in a full run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure, print, store as JSON.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which to run; default: all but {', '.join(APART)}")
    parser.add_argument("--list", action="store_true", help="name the benchmarks and say what they measure")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs; stored only with --out")
    parser.add_argument("--out", type=Path, help="folder for the results; default: benchmarks/results")
    parser.add_argument("--threads", type=int, default=1, help="of numpy and of mescal alike; default: 1")
    parser.add_argument(
        "--workers", type=int, default=1, help="processes of benchmarks that spread their work; default: 1"
    )
    parser.add_argument("--seconds", type=float, help="start no new run of a store after that; call again to go on")
    parser.add_argument(
        "--part", default="1/1", help="of a store's runs, for several processes: 1/2 and 2/2; default: 1/1"
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="ROW", help="of a benchmark's rows; stored only with --out"
    )
    options = parser.parse_args(arguments)
    if options.list:
        width = max(map(len, names()))
        for name in names():
            print(f"{name:{width}}  {describe(name)}")
        return 0
    unknown = sorted(set(options.names) - set(names()))
    if unknown:
        parser.error(f"no benchmark named {', '.join(unknown)}; there are {', '.join(names())}")
    if options.threads < 1 or options.workers < 1:
        parser.error("--threads and --workers must be at least 1")
    part = re.fullmatch(r"(\d+)/(\d+)", options.part)
    if part is None or not 1 <= int(part[1]) <= int(part[2]):
        parser.error(f"--part {options.part} is not of the form 1/2, 2/2")
    if options.seconds is not None and options.seconds < 0:
        parser.error("--seconds must be at least 0")
    threads = hold_to(max(options.threads, options.workers), int(part[1]))
    record = importlib.import_module("benchmarks._record")
    limits: Any = importlib.import_module("benchmarks._measure")
    limits.seconds_left = options.seconds
    limits.part = int(part[1]), int(part[2])
    limits.only, limits.workers = tuple(options.only), options.workers
    out = options.out or (None if options.quick or options.only else FOLDER / "results")
    met = True
    for name in options.names or [name for name in names() if name not in APART]:
        print(f"\n== {name}: {describe(name)}", flush=True)
        result = record.measure(name, quick=options.quick, threads=threads)
        print(record.readable(result), flush=True)
        met = met and all(target["met"] for target in result["targets"])
        if out is not None and part[2] == "1":  # a part sums up nothing
            print(f"stored in {record.store(result, out).name}")
    return 0 if met or options.quick else 1


if __name__ == "__main__":
    sys.exit(main())

"""A whole process, from `python script.py` to its end: imports, data, compiling, solving and the certificate, in CPU seconds.

Every process runs on one core and one thread, with JAX's compilation cache empty, or filled by a process before it
(`mescal.keep_compiled`). Python's bytecode is there, as it is for an installed package. The peers are what somebody without
mescal would write (`peers/_fresh.py`): they read their rows as arrays, where ours reads the original files, and certify nothing.
Processes take turns; the smallest of three is shown, and all are stored. The seconds of tracing, lowering and compiling are
those of JAX's own clock, which others on the machine slow down: they are multiplied by the share of the core that the process had.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import mescal
from mescal import datasets, problems

from ._measure import Report, chosen

PEER = Path(__file__).parent / "peers" / "_fresh.py"
PEERS = {"SLSQP": "slsqp", "AL + L-BFGS-B": "al-lbfgsb"}
EMPTY, KEPT = "auto, empty cache", "auto, kept programs"
DRAWS = 40_000  # of a stream's average for the peers: its noise is then a twentieth of the tolerance
LIMIT = 600  # seconds after which a process is given up
FROM_CACHE = 1.8  # seconds, target
IMPORTS = {"import jax": None, "import mescal": 1.0}  # with targets in seconds


@dataclass(frozen=True)
class Case:
    """A problem, its tolerance, and its target in seconds."""

    problem: str
    tol: float
    target: float


CASES = {
    "breast-cancer": Case("neyman-pearson/breast-cancer", 1e-3, 2.5),
    "spambase": Case("neyman-pearson/spambase", 1e-3, 3.0),
    "madelon": Case("neyman-pearson/madelon", 1e-3, 4.0),
    "bank": Case("fairness/bank", 1e-3, 4.5),
    "stream": Case("hock-schittkowski/7", 1e-2, 4.5),
}

OURS = """
import json, sys, time
import numpy
import mescal
cpu, wall = [time.process_time()], [time.perf_counter()]
import jax
stages = {"jaxpr_trace_duration": 0.0, "jaxpr_to_mlir_module_duration": 0.0, "backend_compile_duration": 0.0}
programs = []
def listen(event, seconds, **_):
    stage = event.rsplit("/", 1)[-1]
    if stage in stages:
        stages[stage] += seconds
        programs.append(stage)
jax.monitoring.register_event_duration_secs_listener(listen)
name, tol, folder = sys.argv[1:]
if folder:
    mescal.keep_compiled(folder)
named = mescal.problems.get(name)
cpu.append(time.process_time())
before = sum(stages.values())
result = mescal.minimize(named.problem, named.x0, solver="auto", tol=float(tol))
cpu.append(time.process_time())
wall.append(time.perf_counter())
share = (cpu[-1] - cpu[0]) / (wall[-1] - wall[0])  # of the core, which others may use, too
tracing, lowering, compiling = (share * seconds for seconds in stages.values())
print(json.dumps({
    "x": numpy.asarray(result.x, float).tolist(),  # its entries one by one would be a program of their own
    "success": result.converged,
    "import": cpu[0],
    "problem": cpu[1] - cpu[0] - share * before,
    "tracing": tracing, "lowering": lowering, "compiling": compiling,
    "programs": programs.count("backend_compile_duration"),
}))
"""


@dataclass
class Measured:
    """The processes of one row: seconds of each, and what the one with the least CPU seconds printed."""

    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    answer: dict[str, Any] = field(default_factory=dict)

    def add(self, cpu: float, wall: float, answer: dict[str, Any]):
        """One more process."""
        if not self.cpu or cpu < min(self.cpu):
            self.answer = answer
        self.cpu.append(cpu)
        self.wall.append(wall)


def run(quick: bool) -> Report:
    """All rows, or those that `--only` names; in a quick run once, and unless told otherwise the imports and one problem."""
    names = chosen([*IMPORTS, *CASES])
    if quick and set(names) >= set(CASES):
        names = [*IMPORTS, "breast-cancer"]
    repetitions, peers = (1, ["SLSQP"]) if quick else (3, list(PEERS))
    report = Report({"repetitions": repetitions, "cases": {name: vars(case) for name, case in CASES.items()}})
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        environment = _environment(folder)
        for group in _groups(names):
            commands = _commands(group, peers, folder)
            for command in commands.values():  # writes bytecode, and fills what is to be filled
                _process(command, environment)
            found = {way: Measured() for way in commands}
            for _ in range(repetitions):
                for way, command in commands.items():
                    found[way].add(*_process(command, environment))
            _write(report, group, found)
    return report


def _groups(names: list[str]) -> Iterator[str]:
    """The imports are measured in turns, and so are the ways to solve one problem."""
    if any(name in IMPORTS for name in names):
        yield "imports"
    yield from (name for name in names if name in CASES)


def _environment(folder: Path) -> dict[str, str]:
    """One thread, nothing compiled before, bytecode in a folder of this benchmark."""
    dropped = ("JAX_COMPILATION_CACHE_DIR", "JAX_ENABLE_COMPILATION_CACHE", "PYTHONDONTWRITEBYTECODE")
    return {name: value for name, value in os.environ.items() if name not in dropped} | {
        "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
    }


def _commands(group: str, peers: list[str], folder: Path) -> dict[str, list[str]]:
    """By row, the command of its process."""
    if group == "imports":
        scripts = {way: _script(folder, way.replace(" ", "_"), f"{way}\n") for way in IMPORTS}
        return {way: [sys.executable, script] for way, script in scripts.items()}
    case, script = CASES[group], _script(folder, "ours", OURS)
    rows = folder / f"{group}.npz"
    np.savez(rows, **_rows(case.problem))
    ours = [sys.executable, script, case.problem, str(case.tol)]
    others = {way: [sys.executable, str(PEER), PEERS[way], case.problem, str(rows), str(case.tol)] for way in peers}
    return {EMPTY: [*ours, ""], KEPT: [*ours, str(folder / "kept")], **others}


def _script(folder: Path, name: str, text: str) -> str:
    path = folder / f"{name}.py"
    path.write_text(text)
    return str(path)


def _rows(problem: str) -> dict[str, Any]:
    """What a peer is given of a problem: its arrays, its numbers and its start."""
    kind, _, name = problem.partition("/")
    named = problems.get(problem)
    given: dict[str, Any] = {"x0": named.x0}
    if kind == "hock-schittkowski":
        draw, sigma = np.random.default_rng(0), named.parameters["sigma"]
        shapes = {"xi": (DRAWS, 2), "zeta": (DRAWS,), "z": (DRAWS, 2)}
        return given | {part: sigma * draw.standard_normal(shape) for part, shape in shapes.items()}
    data = datasets.load(name)
    if kind == "neyman-pearson":
        return given | {"positives": data.positives, "negatives": data.negatives, "tau": named.parameters["tau"]}
    population = data.features[data.population]
    return given | {
        "labelled": data.features[data.labelled],
        "labels": data.labels[data.labelled],
        "population": population,
        "target": population[data.in_group(str(named.parameters["group"]))[data.population]],
        "tau": named.parameters["tau"],
        "rho": named.parameters["rho"],
    }


def _process(command: list[str], environment: dict[str, str]) -> tuple[float, float, dict[str, Any]]:
    """CPU seconds, wall-clock seconds, and what the process printed last; user and system time of the process alone."""
    started = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    given_up = threading.Timer(LIMIT, process.kill)
    given_up.start()
    assert process.stdout is not None
    with process.stdout as output:
        printed = output.read().splitlines()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    given_up.cancel()
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with exit code {process.returncode}")
    seconds = time.perf_counter() - started
    return used.ru_utime + used.ru_stime, seconds, json.loads(printed[-1]) if printed else {}


def _certified(case: Case, x: list[float]) -> bool:
    """Whether an answer is what was asked for; that of a stream on the problem without noise."""
    kind = case.problem.partition("/")[0]
    named = problems.get(case.problem, **({"sigma": 0.0} if kind == "hock-schittkowski" else {}))
    point = np.asarray(x, named.x0.dtype)
    return mescal.certify(named.problem, point, tol=case.tol, cone=named.cone).passes(case.tol)


def _write(report: Report, group: str, found: dict[str, Measured]):
    """Rows, every process, the split of ours, and targets."""
    case = CASES.get(group)
    for way, one in found.items():
        kind = {"what": way, "tol": None} if case is None else {"what": f"{group}: {way}", "tol": case.tol}
        certified = None if case is None else _certified(case, one.answer["x"])
        report.add(
            "seconds of a process, the smallest of all",
            **kind,
            cpu=min(one.cpu),
            wall=min(one.wall),
            certified=certified,
        )
        for number, (cpu, wall) in enumerate(zip(one.cpu, one.wall, strict=True)):
            report.add("every process", what=kind["what"], repetition=number, cpu=cpu, wall=wall)
        if way in (EMPTY, KEPT):
            parts = {name: one.answer[name] for name in ("import", "problem", "tracing", "lowering", "compiling")}
            rest = min(one.cpu) - sum(parts.values())
            programs = one.answer["programs"]
            report.add("CPU seconds by part", what=kind["what"], **parts, rest=rest, programs=programs)
    if case is None:
        jax, ours = (min(found[way].cpu) for way in IMPORTS)
        report.hold("import mescal", ours, IMPORTS["import mescal"])
        report.conclusions.append(f"Importing mescal takes {ours / jax:.2f} times the CPU seconds of importing jax.")
        return
    report.hold(f"{group}, with an empty cache", min(found[EMPTY].cpu), case.target)
    report.hold(f"{group}, with kept programs", min(found[KEPT].cpu), FROM_CACHE)
    fastest = min((way for way in found if way in PEERS), key=lambda way: min(found[way].cpu))
    empty, kept = (min(found[way].cpu) / min(found[fastest].cpu) for way in (EMPTY, KEPT))
    report.conclusions.append(
        f"On {group} auto takes {empty:.2f} times the CPU seconds of {fastest} with an empty cache, {kept:.2f} with kept programs."
    )

"""10^9 rows on 64 GPUs: a plan, from what one GPU was measured to do and a simulation of what passes between them.

Measured: full passes, SPIDER steps, evaluations and certificates on one GPU (results/gpu.json), and all-reduces between processes
of this machine. Assumed: the links between GPUs, `INSIDE` and `BETWEEN`, and that devices' times for a step vary by `SPREAD`.
Reckoned: everything that is said of 64 GPUs; no such machine was used. The simulation is held to what can be measured here: the
link that two processes show predicts what four take.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from ._measure import Report
from ._network import Link, Network, fitted

FOLDER = Path(__file__).parent
ROWS, DEVICES, PER_NODE = 10**9, 64, 8
INSIDE, BETWEEN = Link(5e-6, 300e9), Link(15e-6, 40e9)  # a fast switch in a node; 400 Gb/s a GPU between nodes
SPREAD = 0.05  # mean of an exponential delay, relative to the time of a step's own work
SEED, STEPS = 0, 400
HERE = "all-reduces between processes of this machine, wall-clock microseconds, the least of many"


def run(quick: bool) -> Report:
    """Measured, assumed and reckoned figures, in this order."""
    gpu = json.loads((FOLDER / "results" / "gpu.json").read_text())
    report = Report({"rows": ROWS, "columns": gpu["settings"]["d"], "devices": DEVICES, "per_node": PER_NODE})
    report.settings |= {"gpu": gpu["settings"]["device"], "gpu_measured": gpu["date"], "steps_simulated": STEPS}
    given(report, gpu)
    network = Network(DEVICES, PER_NODE, INSIDE, BETWEEN)
    plan(report, gpu, network)
    loopback(report, 3 if quick else 300)
    return report


def given(report: Report, gpu: dict[str, Any]):
    """What goes in, with where it is from."""
    title, one = "what goes in", measured(gpu)
    for what, value in (("rows", ROWS), ("numbers in a row", gpu["settings"]["d"]), ("GPUs", DEVICES)):
        report.add(title, what=what, value=value, how="chosen")
    report.add(title, what="gigabytes per second of a full pass on one GPU", value=one["rate"] / 1e9, how="measured")
    for batch, seconds in one["steps"].items():
        report.add(
            title, what=f"microseconds of a SPIDER step of {batch}, one GPU", value=1e6 * seconds, how="measured"
        )
    report.add(
        title, what="evaluations per row of a solve by spider, one GPU", value=one["evaluations"], how="measured"
    )
    report.add(title, what="nanoseconds of a certificate per row, one GPU", value=1e9 * one["judge"], how="measured")
    for where, link in (("inside a node", INSIDE), ("between nodes", BETWEEN)):
        report.add(title, what=f"microseconds of latency {where}", value=1e6 * link.latency, how="assumed")
        report.add(title, what=f"gigabytes per second {where}", value=link.bandwidth / 1e9, how="assumed")
    report.add(title, what="mean delay of a device, relative to its work", value=SPREAD, how="assumed")


def measured(gpu: dict[str, Any]) -> dict[str, Any]:
    """The figures of one GPU that the plan uses, in bytes and seconds."""
    tables = gpu["tables"]
    (default,) = next(rows for title, rows in tables.items() if "as it is by default" in title)
    title, runs = next((title, rows) for title, rows in tables.items() if title.startswith("whole runs"))
    rows = int(title.split()[-2].replace(",", ""))
    spider = next(row for row in runs if row["solver"] == "spider")
    return {
        "rate": 1e9 * default["gigabytes_per_s"],
        "steps": {row["batch"]: 1e-6 * row["microseconds_per_step"] for row in tables["SPIDER steps"]},
        "evaluations": spider["evaluations"] / rows,
        "judge": spider["of_which_certificate"] / rows,
    }


def plan(report: Report, gpu: dict[str, Any], network: Network):
    """A pass, a step by batch, a certificate and a whole solve, each on 64 GPUs."""
    one, columns = measured(gpu), gpu["settings"]["d"]
    per_device, row, sums = ROWS / DEVICES, 4 * columns, 4 * (columns + 2)
    report.add("memory", what="gigabytes of rows on a GPU", value=per_device * row / 1e9, how="reckoned")
    alone = per_device * row / one["rate"]
    seconds = network.step(delayed(alone), 0, sums)
    title, how = "a full pass", "reckoned, simulated"
    report.add(title, what="milliseconds on 64 GPUs", value=1e3 * seconds, how=how)
    report.add(title, what="share of them that is waiting and communication", value=1 - alone / seconds, how=how)
    steps, per_sample = "SPIDER steps on 64 GPUs, reckoned and simulated", {}
    for batch in one["steps"]:
        own = np.interp(batch / DEVICES, list(one["steps"]), list(one["steps"].values()))
        parts = [network.step(delayed(time), size, sums) for time, size in ((own, batch * row), (own, 0))]
        quiet = network.step(np.zeros((1, DEVICES)), batch * row, sums)
        per_sample[batch] = parts[0] / (2 * batch)
        report.add(steps, batch=batch, microseconds=1e6 * parts[0], of_which_the_rows=1e6 * (parts[0] - parts[1]),
                   communication_alone=1e6 * quiet, one_GPU_measured=1e6 * one["steps"][batch])  # fmt: skip
    title, judge = "a solve to 0.01 by spider, reckoned", one["judge"] * per_device
    passes = one["evaluations"] * seconds
    fastest = min(per_sample, key=lambda batch: per_sample[batch])
    stepping = one["evaluations"] * ROWS * per_sample[fastest]
    report.add(title, what="all evaluations in full passes, seconds", value=passes)
    report.add(title, what=f"all evaluations in steps of {fastest}, seconds", value=stepping)
    report.add(title, what="a certificate, no cheaper per row than on 262,144 of them, seconds", value=judge)
    slower = [row["microseconds"] / row["one_GPU_measured"] for row in report.tables[steps]]
    low, high = (judge + of(passes, stepping) for of in (min, max))
    report.conclusions += [
        f"Reckoned: a full pass takes 1/{DEVICES * alone / seconds:.0f} of what one GPU would take for as many rows, "
        f"and a step of SPIDER {min(slower):.2g} to {max(slower):.2g} times what it takes on one, "
        "since the rows of its batch go from device to device.",
        f"Reckoned: a solve takes between {low:.3g} and {high:.3g} s with its last certificate, compiling and reading rows apart, "
        "if a billion rows take as many evaluations per row as 262,144 did.",
    ]


def delayed(seconds: float) -> np.ndarray:
    """Times of a step's own work by step and device, each late by an exponential delay of mean `SPREAD`."""
    rng = np.random.default_rng(SEED)
    return seconds * (1 + SPREAD * rng.exponential(size=(STEPS, DEVICES)))


def loopback(report: Report, repetitions: int):
    """All-reduces between two and four processes here; the link fitted to two predicts four."""
    two, four = (_sums(processes, repetitions) for processes in (2, 4))
    link = fitted(two, rounds=1)
    here = Network(4, 4, link, link)
    for size, seconds in four.items():
        predicted = float(here.all_reduce(np.zeros(4), size).max())
        measured_here = {"two_measured": two[size], "four_measured": seconds, "four_reckoned_from_two": predicted}
        rounded = {what: 1e6 * value for what, value in measured_here.items()}
        report.add(HERE, bytes=size, **rounded, measured_over_reckoned=seconds / predicted)
    short = [row["measured_over_reckoned"] for row in report.tables[HERE]]
    report.conclusions.append(
        f"Four processes took {min(short):.2g} to {max(short):.2g} times as long as two let expect, on {_cores()} cores: "
        "so far may the figures of communication be off, besides what was assumed."
    )


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _sums(processes: int, repetitions: int) -> dict[int, float]:
    command = [
        sys.executable,
        "-m",
        "mescal.launch",
        "-n",
        str(processes),
        str(FOLDER / "_loopback.py"),
        str(repetitions),
    ]
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=True)
    return {int(size): seconds for size, seconds in json.loads(done.stdout.splitlines()[-1]).items()}

"""The plan for a billion rows: its network by closed forms, and the stored figures from the stored measurements of one GPU."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import many_gpus
from benchmarks._measure import Report
from benchmarks._network import Link, Network, fitted

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
INSIDE, BETWEEN = Link(1e-6, 1e9), Link(1e-5, 1e8)
NETWORK = Network(64, 8, INSIDE, BETWEEN)


def test_an_undisturbed_all_reduce_takes_three_rounds_inside_and_three_between():
    done = NETWORK.all_reduce(np.zeros(64), 1000)
    assert done == pytest.approx(np.full(64, 3 * INSIDE.seconds(1000) + 3 * BETWEEN.seconds(1000)))


def test_a_reduce_scatter_halves_what_it_sends_farthest_first():
    expected = sum(BETWEEN.seconds(size) for size in (500, 250, 125))
    expected += sum(INSIDE.seconds(size) for size in (62.5, 31.25, 15.625))
    assert NETWORK.reduce_scatter(np.zeros(64), 1000) == pytest.approx(np.full(64, expected))


def test_everybody_waits_for_the_last():
    late = np.zeros(64)
    late[17] = 1.0
    assert NETWORK.all_reduce(late, 1000) == pytest.approx(1 + NETWORK.all_reduce(np.zeros(64), 1000))


def test_a_step_is_its_collectives_and_the_slowest_device():
    compute = np.full((3, 64), 0.5)
    compute[:, 5] = 0.75
    quiet = np.zeros(64)
    expected = NETWORK.reduce_scatter(quiet, 4000.0)[0] + 0.75 + NETWORK.all_reduce(quiet, 80.0)[0]
    assert NETWORK.step(compute, 4000.0, 80.0) == pytest.approx(expected)


def test_a_link_is_found_again_from_what_it_takes():
    link = fitted({size: 2 * INSIDE.seconds(size) for size in (64, 4096, 1 << 20)}, rounds=2)
    assert (link.latency, link.bandwidth) == pytest.approx((INSIDE.latency, INSIDE.bandwidth))


def test_what_is_stored_follows_from_the_stored_measurements():
    """All but what was measured between processes of one machine."""
    stored = json.loads((RESULTS / "many_gpus.json").read_text())
    gpu, report = json.loads((RESULTS / "gpu.json").read_text()), Report()
    many_gpus.given(report, gpu)
    many_gpus.plan(report, gpu, Network(many_gpus.DEVICES, many_gpus.PER_NODE, many_gpus.INSIDE, many_gpus.BETWEEN))
    assert set(stored["tables"]) - set(report.tables) == {many_gpus.HERE}
    for title, rows in report.tables.items():
        assert [list(row) for row in rows] == [list(row) for row in stored["tables"][title]]
        for row, kept in zip(rows, stored["tables"][title], strict=True):
            assert kept == {
                key: pytest.approx(value, rel=1e-4) if isinstance(value, float) else value for key, value in row.items()
            }
    assert stored["conclusions"][:-1] == report.conclusions
    assert stored["settings"]["gpu_measured"] == gpu["date"]

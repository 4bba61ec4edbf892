"""What a person sees while a run goes on: live gauges on a terminal, lines elsewhere, and a guess at the time left."""

import dataclasses
import io

import pytest
from rich.console import Console

from mescal.cli.progress import Progress, bar, line
from mescal.experiments import task
from mescal.report.bar import TimeLeft, about, gone
from mescal.run import Row

ROW = Row(
    0, 1500.0, 900.0, 300.0, 0.0, 2.0, 0.5, 0.004, 0.4, float("nan"), 1.1, (), 1.0, 64, 1, 10, 0, "verified", 0, 0
)


def row(outer, seconds, feasibility, **changes):
    return dataclasses.replace(ROW, outer=outer, seconds=seconds, feasibility=feasibility, **changes)


def test_time_left_follows_the_fall_of_the_violation():
    """0.4, 0.2, 0.1 halve in 3 s each; from 0.1 to 0.0125 it takes three more iterations, 9 s."""
    left = TimeLeft(0.0125)
    for outer, violation in enumerate((0.4, 0.2, 0.1)):
        left.add(row(outer, 10 + 3.0 * outer, violation))
    assert left.seconds == pytest.approx(9.0)


def test_time_left_says_nothing_without_evidence():
    left = TimeLeft(0.01)
    assert left.seconds is None
    left.add(row(0, 1.0, 0.4))
    assert left.seconds is None
    left.add(row(1, 2.0, 0.5))
    assert left.seconds is None


def test_time_left_knows_the_budget_and_the_end():
    left = TimeLeft(0.01, limit=5.0)
    left.add(row(0, 1.0, 0.4))
    left.add(row(1, 2.0, 0.5))
    assert left.seconds == pytest.approx(3.0)
    left.add(row(2, 3.0, 0.001))
    assert left.seconds == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "under a second left"), (42.4, "about 42 s left"), (300, "about 5 min left"), (9000, "about 2.5 h left")],
)
def test_durations(seconds, text):
    assert about(seconds) == text


def test_bars_fill_as_a_measure_nears_its_tolerance():
    filled = [bar(gone(share, 100.0)).plain.count("━") for share in (100.0, 10.0, 2.0, 1.0, 0.0)]
    assert filled == sorted(filled) and filled[0] == 0 and filled[1] == 12 and filled[-2:] == [24, 24]


def test_a_line_holds_the_measures_and_their_tolerances():
    text = line(ROW, task("saddles/circle").tolerance, 3.0)
    for part in (
        "outer   1",
        "1,500",
        "4.00e-03 (<= 0.01)",
        "4.00e-01 (<= 0.01)",
        "curvature not yet",
        "about 3 s left",
    ):
        assert part in text


def test_a_terminal_shows_gauges_and_cleans_up():
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=110)
    with Progress(task("saddles/circle"), console=console) as progress:
        assert progress.live is not None
        console.print(progress)
        progress(ROW)
        progress(row(1, 4.0, 0.005, curvature=-0.5))
        console.print(progress)
    text = screen.getvalue()
    assert "first subproblem" in text and "outer iteration 2" in text and "met" in text and "-5.00e-01" in text


def test_elsewhere_there_is_one_line_per_outer_iteration():
    screen = io.StringIO()
    with Progress(task("saddles/circle"), console=Console(file=screen, width=80)) as progress:
        progress(ROW)
        progress(row(1, 4.0, 0.3))
    assert screen.getvalue().count("\n") == 2 and "\x1b" not in screen.getvalue()

"""`progress=True`: a line on a terminal, lines in a log, a card in a notebook; how far a run is."""

import io
import math
import sys
import types

import numpy as np
import pytest

import mescal
from mescal import E, Tolerance
from mescal.report.bar import Bar, Way, gone
from tests.cli.test_progress import ROW, row


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("share", "worst", "expected"),
    [
        (1.0, 100.0, 1.0),
        (10.0, 100.0, 0.5),
        (100.0, 100.0, 0.0),
        (0.0, 1.0, 1.0),
        (math.inf, 9.0, 0.0),
        (math.nan, 9.0, 0.0),
    ],
)
def test_the_way_is_logarithmic(share, worst, expected):
    assert gone(share, worst) == pytest.approx(expected)


def test_a_run_is_as_far_as_its_worst_measure():
    """0.4 is the worst violation seen, and 0.04 half of its way in decades to 0.004."""
    way = Way(Tolerance(0.004, 0.01))
    first, second = way.add(row(0, 1.0, 0.4)), way.add(row(1, 2.0, 0.04))
    assert first["feasibility"] == 0.0 and second["feasibility"] == pytest.approx(0.5)
    assert second["stationarity"] == 1.0 and second["curvature"] == 1.0  # met, and not yet searched for


def test_a_terminal_has_one_line_and_a_log_has_one_per_row():
    shown, logged = Terminal(), io.StringIO()
    for screen in (shown, logged):
        bar = Bar(Tolerance(0.01, 0.01), None, screen)
        bar(ROW)
        bar(row(1, 4.0, 0.005))
        bar.ended()
    assert shown.getvalue().count("\n") == 1 and shown.getvalue().count("\r") == 2
    assert "━" * 24 in shown.getvalue() and shown.getvalue().endswith("\n")
    assert logged.getvalue().count("\n") == 2 and "\x1b" not in logged.getvalue()
    assert "outer iteration 2" in logged.getvalue() and "✓" in logged.getvalue() and "100 %" in logged.getvalue()


def test_a_notebook_has_one_display_that_changes(monkeypatch):
    updates = []
    display = types.ModuleType("IPython.display")
    handle = types.SimpleNamespace(update=updates.append)
    display.HTML = str
    display.display = lambda markup, display_id: updates.append(markup) or handle
    kernel = types.ModuleType("IPython")
    kernel.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", kernel)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    bar = Bar(Tolerance(0.01, 0.01))
    bar.begin("<b>start 1</b>")
    bar(ROW)
    bar(row(1, 4.0, 0.005))
    bar.ended()
    assert len(updates) == 2 and 'class="bar"' in updates[0] and "&lt;b&gt;start 1" in updates[1]


def test_minimize_shows_a_bar_for_every_start(capsys):
    problem = mescal.Problem(E(lambda x: x @ x))
    mescal.minimize(problem, np.ones(2), solver="newton-cg", progress=True, starts=2)
    told = capsys.readouterr().err
    assert "start 1 of 2, outer iteration 1" in told and "start 2 of 2" in told and told.endswith("\n")
    mescal.minimize(problem, np.ones(2), solver="newton-cg", progress=False)
    assert capsys.readouterr().err == ""

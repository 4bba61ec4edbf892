"""The figures: rows of problems, three columns, labelled axes with the tolerance, small files that are the same each time."""

import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from PIL import Image

from mescal import InputError
from mescal.report import write_figures
from mescal.report.colours import LOOKS
from mescal.report.figures import caption, draw
from mescal.report.grouping import arrange
from mescal.report.page import render

SVG = "{http://www.w3.org/2000/svg}"


def test_panels_and_what_they_say(sweep):
    figure = draw(arrange(sweep))
    assert len(figure.axes) == 6
    titles = [ax.get_title().strip() for ax in figure.axes[:3]]
    assert titles == ["Minimum eigenvalue", "Stationarity", "Feasibility"]
    assert [figure.axes[i].get_ylabel() for i in (0, 3)] == ["one", "two"]
    assert all(ax.get_xscale() == "log" for ax in figure.axes)
    assert [ax.get_xlabel() for ax in figure.axes[3:]] == ["total work"] * 3
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["spider", "sg-hv-nc", "natasha2"]
    (words,) = (text.get_text() for text in figure.texts)
    words = " ".join(words.split())
    assert "3 seeds, measured by the judge" in words and "tolerance 0.01" in words and "median" in words


def test_lines_and_markers_are_the_stores(make_run):
    runs = [make_run(seed=seed) for seed in range(3)]
    figure = draw(arrange(runs))
    for ax, name in zip(figure.axes, ("curvature", "stationarity", "feasibility"), strict=True):
        line, markers, limit = ax.get_lines()
        assert line.get_drawstyle() == "steps-post" and np.size(markers.get_xdata()) == 3 * 8
        works = np.concatenate([run.result.history.column("work") for run in runs])
        np.testing.assert_allclose(np.sort(np.asarray(markers.get_xdata(), float)), np.sort(works))
        heights = np.asarray(markers.get_ydata(), float)
        measured = np.concatenate([run.result.history.column(f"exact:{name}") for run in runs])
        assert (np.diff(heights[np.argsort(measured)]) >= 0).all()
        level = float(np.asarray(limit.get_ydata(), float)[0])
        passing = measured >= -0.01 if name == "curvature" else measured <= 0.01
        above = heights > level
        assert (above == passing).all() if name == "curvature" else (above == ~passing).all()


def test_lines_are_explained_where_there_are_lines(make_run):
    """Runs of one outer iteration are markers alone."""
    for rows, explained in ((1, False), (3, True)):
        runs = [make_run(seed=seed, rows=rows) for seed in range(2)]
        assert ("Line: median" in caption(arrange(runs))) is explained
        assert ("Lines are medians" in render(runs)) is explained


def test_solver_estimates_are_said_to_be_such(make_run):
    figure = draw(arrange([make_run(exact=False)]))
    assert figure.axes[0].get_title().strip() == "Smallest curvature"
    assert "the solver's own estimates" in " ".join(figure.texts[0].get_text().split())


def test_files(sweep, make_run, tmp_path):
    paths = write_figures([*sweep, make_run("other", tol=0.1), make_run("other", tol=0.2)], tmp_path)
    names = ["toy.png", "toy.svg", *(f"other-tol-{t}.{e}" for t in ("0.1", "0.2") for e in ("png", "svg"))]
    assert [path.name for path in paths] == names
    assert paths[0].read_bytes().startswith(b"\x89PNG") and paths[0].stat().st_size < 100_000
    pixels = np.asarray(Image.open(paths[0]).convert("RGB")).reshape(-1, 3).astype(int)
    for look in LOOKS[:3]:
        colour = [int(look.colour[i : i + 2], 16) for i in (1, 3, 5)]
        assert np.abs(pixels - colour).max(axis=1).min() <= 6, f"the palette lost {look.colour}"
    root = ET.parse(paths[1]).getroot()
    assert paths[1].stat().st_size < 250_000
    said = " ".join("".join(text.itertext()) for text in root.iter(f"{SVG}text"))
    for word in ("Minimum eigenvalue", "Stationarity", "Feasibility", "spider", "natasha2", "one", "two"):
        assert word in said
    again = write_figures(sweep, tmp_path / "again")
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in paths[:2]]


def test_names_of_files_are_harmless(make_run, tmp_path):
    (path,) = write_figures([make_run("../../a b$<c>")], tmp_path, formats=["svg"], prefix="fig-")
    assert path.parent == tmp_path and path.exists() and path.name == "fig.svg"


def test_runs_without_a_history_are_left_out(make_run, tmp_path):
    with pytest.raises(InputError, match="history"):
        write_figures([make_run(ended=False)], tmp_path)
    write_figures([make_run(ended=False), make_run(seed=1)], tmp_path, formats=["svg"])


def test_importing_the_report_does_not_import_matplotlib():
    code = "import mescal.report, sys; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0

"""The page without a browser: it parses, asks for nothing, holds every run and the store's numbers, and trusts no name."""

import html.parser
import itertools
import json
import re

import numpy as np
import pytest

from mescal import InputError, Status
from mescal.certificate.certificate import MEASURES
from mescal.experiments import compare
from mescal.experiments.table import METRICS
from mescal.report import write_report
from mescal.report.page import render
from tests.report.stored import measured

VOID = {"meta", "link", "br", "hr", "img", "input", "wbr"}


class Reader(html.parser.HTMLParser):
    """Reads a page strictly: every element closed in order; keeps attributes, text, tables and embedded data."""

    def __init__(self, page: str):
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self.data: list[dict] = []
        self.rows: list[list[str]] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        attributes = {name: value or "" for name, value in attrs}
        assert len(attributes) == len(attrs), f"an attribute is given twice: {attrs}"
        self.elements.append((tag, attributes))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th") and self.rows:
            self.rows[-1].append(attributes.get("data-value", ""))
        if tag not in VOID and not self.self_closing:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.self_closing = True
        self.handle_starttag(tag, attrs)
        self.self_closing = False

    self_closing = False

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> inside {self.open}"
        self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] == "script" and self.elements[-1][1].get("type") == "application/json":
            self.data.append(json.loads(data))
        elif self.open and self.open[-1] not in ("script", "style"):
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


def values(page: str) -> set[str]:
    return {attributes["data-value"] for _, attributes in Reader(page).elements if "data-value" in attributes}


def test_page_parses_and_asks_for_nothing(sweep, tmp_path):
    path = write_report(sweep, tmp_path / "deep" / "report.html")
    page = path.read_text(encoding="utf-8")
    reader = Reader(page)
    assert path.stat().st_size < 400_000
    for tag, attributes in reader.elements:
        for name in ("src", "href", "xlink:href", "action", "data", "poster"):
            if name in attributes:
                assert attributes[name].startswith(("#", "data:,")), (tag, attributes)
    assert not re.search(r"https?:|//[a-z]|@import|url\(|fetch\(|XMLHttp|import\(", page)
    targets = {
        attributes["href"][1:] for _, attributes in reader.elements if attributes.get("href", "").startswith("#")
    }
    ids = [attributes["id"] for _, attributes in reader.elements if "id" in attributes]
    assert len(ids) == len(set(ids)) and targets <= set(ids)


def test_accessible_by_its_markup(sweep):
    reader = Reader(render(sweep))
    assert ("html", {"lang": "en"}) in reader.elements
    for tag, attributes in reader.elements:
        if tag == "svg":
            assert attributes.get("aria-hidden") == "true" or (attributes["role"] == "img" and attributes["aria-label"])
        if tag == "th":
            assert attributes["scope"] in ("col", "row")
        if tag == "button":
            assert attributes["type"] == "button"
    tags = [tag for tag, _ in reader.elements]
    assert tags.count("h1") == 1 and tags.count("table") == tags.count("caption") == 4
    levels = [int(tag[1]) for tag in tags if re.fullmatch(r"h[1-6]", tag)]
    assert all(b <= a + 1 for a, b in itertools.pairwise(levels))


def test_every_run_is_there_with_the_numbers_of_the_store(sweep):
    page = render(sweep)
    found = values(page)
    for run in sweep:
        result = run.result
        assert result is not None
        assert run.path.as_posix() in found
        for number in (result.objective, result.work.total, result.seconds.total):
            assert repr(float(number)) in found
        for name in MEASURES:
            assert repr(getattr(result.certificate, name).value) in found


def test_comparison_agrees_with_the_command_line(make_run):
    name = "neyman-pearson/breast-cancer"
    runs = [make_run(name, solver, seed) for solver in ("spider", "natasha2") for seed in range(3)]
    runs.append(make_run(name, "natasha2", 3, status="work_limit"))
    rows = {row[0]: row for row in Reader(render(runs)).rows if len(row) == 3 + len(METRICS) and row[0]}
    compared = compare(runs)
    assert [row.solver for row in compared] == list(rows) == ["spider", "natasha2"]
    for row in compared:
        first, *others = (spread.median for spread in row.medians.values() if spread is not None)
        assert row.ratio and len(others) == len(METRICS) - 1
        assert [float(cell) for cell in rows[row.solver][2:]] == pytest.approx([first, row.ratio, *others])
    assert [row[1] for row in rows.values()] == ["certified", "3 certified, 1 work limit"]


def test_medians_of_counts_are_not_rounded(make_run):
    """Four and five outer iterations have the median 4.5, here as in the table of the command line."""
    runs = [make_run("saddles/circle", seed=seed, rows=4 + seed) for seed in (0, 1)]
    assert compare(runs)[0].medians["outer"].median == 4.5
    assert re.search(r'data-value="4.5">4.5<small>4 to 5</small>', render(runs))


def test_settings_list_what_runs_have(make_run):
    """A parameter that only one of two problems has is not said to be none in the other."""
    runs = [make_run("toy/one", config={"parameters": {"tau": 0.2}}), make_run("toy/two")]
    assert re.search(r"<dt>parameters.tau</dt>\s*<dd>0.2</dd>", render(runs))


def test_curves_hold_the_judges_numbers(make_run):
    for exact in (True, False):
        run = make_run(exact=exact)
        panels = Reader(render([run])).data
        titles = ["Stationarity", "Feasibility", "Objective", "Multipliers"]
        assert [panel["title"] for panel in panels if panel["unit"] == "work"][1:] == titles
        for panel in panels[5:]:
            assert panel["unit"] == "seconds" and panel["title"] in (
                "Minimum eigenvalue",
                "Smallest curvature",
                *titles,
            )
            seconds = np.asarray(panel["series"][0]["points"])[:, 0]
            np.testing.assert_allclose(seconds, run.result.history.column("seconds"), rtol=1e-4)
        for panel, name in zip(panels, ("curvature", "stationarity", "feasibility"), strict=False):
            (series,) = panel["series"]
            points = np.asarray(series["points"])
            np.testing.assert_allclose(points[:, 0], run.result.history.column("work"), rtol=1e-4)
            column = run.result.history.column(f"exact:{name}" if exact else name)
            np.testing.assert_allclose(points[:, 1], column, rtol=1e-4)
        assert ("measured by the judge" in render([run])) == exact


def test_pixels_are_where_the_numbers_are(make_run):
    page = render([make_run()])
    panel = Reader(page).data[1]
    box, (low, high) = panel["box"], panel["work"]
    points = np.asarray(panel["series"][0]["points"])
    x = box["left"] + (box["right"] - box["left"]) * (np.log(points[:, 0]) - low) / (high - low)
    marks = re.findall(r'<use href="#m0" x="([\d.]+)" y="([\d.]+)"', page.split("Stationarity against total work")[1])
    drawn = np.asarray(marks[: len(points)], float)
    np.testing.assert_allclose(drawn[:, 0], x, atol=0.1)
    np.testing.assert_allclose(drawn[:, 1], points[:, 4], atol=0.1)
    order = np.argsort(points[:, 1])
    assert (np.diff(points[order, 4]) <= 0).all()


HOSTILE = '</script><script>alert("x")</script><img src=x onerror=alert(1)>&amp;\u2028"\'`${1}$title'


def test_hostile_names_stay_text(make_run):
    run = make_run(
        HOSTILE,
        HOSTILE,
        constraints={HOSTILE: 0.5},
        config={"parameters": {HOSTILE: HOSTILE}, "options": {HOSTILE: HOSTILE}},
        certificate={"warnings": (HOSTILE,), "curvature": measured(0.1, how=HOSTILE)},
    )
    for runs in ([run], [run, make_run(HOSTILE, "spider")]):
        page = render(runs)
        reader = Reader(page)
        tags = [tag for tag, _ in reader.elements]
        assert "img" not in tags and page.count("<script") == tags.count("script")
        assert tags.count("script") == 1 + len(reader.data)
        assert not any(name.startswith("on") for _, attributes in reader.elements for name in attributes)
        assert " ".join(HOSTILE.split()) in reader.text
        assert reader.data[0]["series"][0]["name"].startswith(HOSTILE)


@pytest.mark.parametrize("status", list(Status))
def test_verdict_comes_first_with_its_advice(make_run, status):
    text = Reader(render([make_run(status=status.name.lower())])).text
    if status.converged:
        assert "✓ Certified to the tolerance 0.01." in text and "What to do" not in text
    else:
        assert f"✗ Not certified. {status.sentence}" in text and f"What to do: {status.advice}" in text
    assert text.index("ertified") < text.index("Stationarity")


def test_verdict_of_a_sweep(make_run, sweep):
    assert "✓ All 18 runs are certified." in Reader(render(sweep)).text
    text = Reader(render([*sweep, make_run(seed=7, ended=False), make_run(seed=8, status="time_limit")])).text
    assert "✗ 18 of 20 runs are certified." in text
    assert (
        "toy/one at 0.01, spider, seed 7: It has no result" in text
        and "mescal resume runs/toy-one/spider/seed=7" in text
    )
    assert f"seed 8: {Status.TIME_LIMIT.sentence}" in text
    assert "✗ None of the 2 runs" in Reader(render([make_run(ended=False), make_run(seed=1, ended=False)])).text
    assert "✗ Not finished. It has no result" in Reader(render([make_run(ended=False)])).text


def test_gauges_judge_by_the_bound_that_decides(make_run):
    near = {"stationarity": measured(0.0095, 0.001), "curvature": measured(-0.0095, 0.001)}
    reader = Reader(render([make_run(status="work_limit", certificate=near)]))
    assert reader.text.count("✗ fails") == 2 and reader.text.count("✓ passes") == 1
    assert "between 0.0085 and 0.0105" in reader.text
    assert "Stationarity 0.0105 is above 0.01. Curvature −0.0105 is below −0.01." in reader.text


def test_an_empty_cone_passes_and_a_missing_number_does_not(make_run):
    text = Reader(render([make_run(certificate={"curvature": measured(np.inf, how="the cone is {0}")})])).text
    assert "nothing to test" in text and text.count("✓ passes") == 3
    text = Reader(render([make_run(status="not_finite", certificate={"stationarity": measured(np.nan)})])).text
    assert text.count("✗ fails") == 1


def test_relative_tolerance_has_a_gauge_of_its_own(make_run):
    text = Reader(render([make_run(tol={"gradient": 0.01, "curvature": 0.01, "relative": 0.2})])).text
    assert text.count("✓ passes") == 4


def test_warnings_are_said_once(make_run):
    runs = [make_run(seed=i, certificate={"warnings": (f"The region is flat: {i / 7}.",)}) for i in range(4)]
    text = Reader(render(runs)).text
    assert text.count("The region is flat") == 1 and "Likewise 3 other runs." in text


def test_constraints_of_every_shape(make_run):
    assert "no constraints" in Reader(render([make_run(constraints={})])).text
    many = np.linspace(-1, 1, 40)
    reader = Reader(render([make_run(constraints={"rates": many.tolist(), "budget": -0.25})]))
    assert "29 rows with smaller multipliers are not listed." in reader.text
    found = [row for row in reader.rows if row and row[0].startswith("rates[")]
    assert len(found) == 12 and {row[0] for row in found} >= {"rates[28]", "rates[39]"}
    few = Reader(render([make_run(constraints={"budget": -0.25})]))
    assert ["budget", "spider", "-0.25", "0.0", "0.25", "75.0"] in few.rows


def test_curvature_that_nobody_searched_is_said_to_be_missing(make_run):
    run = make_run(exact=False, history={"curvature": np.full(8, np.nan)})
    assert "Not recorded." in Reader(render([run])).text


def test_histories_of_one_row_are_points(make_run):
    page = render([make_run(rows=1, seed=i) for i in range(3)])
    assert 'class="line"' not in page and 'class="band"' not in page
    assert 'class="line"' in render([make_run(rows=2)])


def test_long_histories_are_thinned_and_said_to_be(make_run):
    page = render([make_run(rows=4096, seed=i) for i in range(3)])
    assert len(page) < 600_000
    assert "at some outer iterations of each seed" in page
    assert "at each outer iteration." in render([make_run()])


def test_multipliers_that_vanish_have_an_axis(make_run):
    for value in (0.0, 3e-9):
        page = render([make_run(history={"multiplier:rate": np.full(8, value)})])
        axis = page.split("Multipliers against total work")[1].split("</svg>")[0]
        labels = re.findall(r'<text class="y"[^>]*>([^<]*)<', axis)
        assert labels[0] == "0" and len(set(labels)) == len(labels) >= 3


def test_real_runs(real_runs, tmp_path):
    path = write_report(real_runs, tmp_path / "report.html")
    reader = Reader(path.read_text(encoding="utf-8"))
    assert "✗ 3 of 4 runs are certified." in reader.text and Status.WORK_LIMIT.advice in reader.text
    found = values(path.read_text(encoding="utf-8"))
    for run in real_runs:
        assert run.result is not None
        assert {repr(run.result.objective), repr(run.result.work.total)} <= found
    assert len(reader.data) == 20  # of each problem five against work, five against seconds


def test_a_page_that_cannot_be_written(make_run, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="could not be written"):
        write_report([make_run()], tmp_path / "file" / "report.html")

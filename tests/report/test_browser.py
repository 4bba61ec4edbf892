"""The page in a real browser: it complains of nothing, asks for nothing, shows values, hides, sorts, fits a phone, prints."""

import io
import zlib
from pathlib import Path

import pytest
from PIL import Image

from mescal.report import write_report
from tests.report.browser import Page, start_or_skip
from tests.report.stored import made_up_sweep

PHONES = (390, 320)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with start_or_skip(tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    return write_report(made_up_sweep(), tmp_path_factory.mktemp("page") / "report.html")


def middle(page: Page, selector: str, index: int = 0, across: float = 0.5) -> tuple[float, float]:
    """Scroll an element into view; a point in it."""
    found = f"document.querySelectorAll({selector!r})[{index}]"
    page.evaluate(f"{found}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
    box = f"(() => {{ const b = {found}.getBoundingClientRect(); return [b.left, b.top, b.width, b.height] }})()"
    left, top, width, height = page.evaluate(box)
    return left + across * width, top + height / 2


@pytest.mark.parametrize("dark", [False, True])
def test_no_complaints_no_requests_and_curves(browser, report, dark):
    page = Page(browser, report, dark=dark)
    assert page.complaints() == []
    assert page.requests() == [report.resolve().as_uri()]
    assert page.evaluate("document.querySelectorAll('figure.panel svg').length") == 20
    assert page.evaluate("document.querySelectorAll('figure.panel .series .line').length") == 60
    lengths = "[...document.querySelectorAll('figure.panel .series .line')].map(line => line.getTotalLength())"
    assert min(page.evaluate(lengths)) > 50
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(20, 23, 27)" if dark else "rgb(246, 247, 249)")


def test_hover_shows_the_values_of_the_store(browser, report):
    """The values under the pointer are those of the step curves at that work, in all panels of the problem."""
    page = Page(browser, report)
    shown = "[...document.querySelectorAll('.tip')].filter(tip => !tip.hidden).map(tip => tip.innerText)"
    assert page.evaluate(shown) == []
    page.move(*middle(page, "figure.panel svg", 1, across=0.7))
    (tip,) = page.evaluate(shown)
    assert tip.startswith("work ")
    expected = page.evaluate("""(() => {
      const figure = document.querySelectorAll('figure.panel')[1];
      const data = JSON.parse(figure.querySelector('script.points').textContent);
      const x = Number(figure.querySelector('.hover line').getAttribute('x1')), box = data.box;
      const work = Math.exp(data.work[0] + (x - box.left) / (box.right - box.left) * (data.work[1] - data.work[0]));
      return data.series.map(one => [one.name, one.points.filter(p => p[0] <= work * (1 + 1e-9)).pop()[1]]);
    })()""")
    lines = dict(line.removeprefix("● ").split(": ") for line in tip.splitlines() if ": " in line)
    assert list(lines) == [name for name, _ in expected] == ["spider", "sg-hv-nc", "natasha2"]
    for name, value in expected:
        assert float(lines[name].split()[0].replace("−", "-")) == pytest.approx(value, rel=6e-3)
    values = (
        "[...document.querySelectorAll('figure.panel .values')].map(one => !one.hidden && one.innerText.length > 5)"
    )
    assert page.evaluate(values) == [True] * 5 + [False] * 15
    page.move(5, 5)
    assert page.evaluate(shown) == [] and not any(page.evaluate(values))
    assert page.complaints() == []


def test_arrow_keys_do_what_the_pointer_does(browser, report):
    page = Page(browser, report)
    page.evaluate("document.querySelector('figure.panel svg').focus()")
    works = []
    for _ in range(3):
        for kind in ("keyDown", "keyUp"):
            page.call("Input.dispatchKeyEvent", type=kind, key="ArrowRight", code="ArrowRight")
        works.append(page.evaluate("document.querySelector('.tip:not([hidden]) b').innerText"))
    assert len(set(works)) == 3
    page.evaluate("document.activeElement.blur()")
    assert page.evaluate("document.querySelectorAll('.tip:not([hidden])').length") == 0


def test_a_solver_can_be_hidden(browser, report):
    page = Page(browser, report)
    visible = "[...document.querySelectorAll('g.series')].filter(g => getComputedStyle(g).display !== 'none').length"
    every = page.evaluate(visible)
    page.click(*middle(page, ".legend button", 1))
    assert page.evaluate("document.querySelectorAll('.legend button')[1].getAttribute('aria-pressed')") == "false"
    assert page.evaluate(visible) == every * 2 // 3
    page.move(*middle(page, "figure.panel svg", 0, across=0.8))
    tip = page.evaluate("document.querySelector('.tip:not([hidden])').innerText")
    assert "spider" in tip and "sg-hv-nc" not in tip
    page.click(*middle(page, ".legend button", 1))
    assert page.evaluate(visible) == every


def test_tables_sort_by_their_numbers(browser, report):
    page = Page(browser, report)
    column = "[...document.querySelector('table').tBodies[0].rows].map(row => Number(row.cells[3].dataset.value))"
    before = page.evaluate(column)
    for direction, expected in (("ascending", sorted(before)), ("descending", sorted(before, reverse=True))):
        page.click(*middle(page, "thead button", 3))
        assert page.evaluate(column) == expected
        assert page.evaluate("document.querySelectorAll('thead th')[3].getAttribute('aria-sort')") == direction


@pytest.mark.parametrize("width", PHONES)
def test_a_phone_does_not_scroll_sideways(browser, report, width):
    page = Page(browser, report, width=width, height=844)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.evaluate("innerWidth") == width
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    sizes = "[...document.querySelectorAll('figure.panel svg text')].map(t => t.getBoundingClientRect().height)"
    assert min(page.evaluate(sizes)) >= 9  # CSS pixels: a label that can still be read
    page.move(*middle(page, "figure.panel svg", 0, across=0.95))
    box = "document.querySelector('.tip:not([hidden])').getBoundingClientRect()"
    left, right = page.evaluate(f"[{box}.left, {box}.right]")
    assert left >= 0 and right <= width
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.complaints() == []


def test_without_a_script_everything_but_the_hover_is_there(browser, report):
    page = Page(browser, report, script=False)
    drawn = page.call("DOM.getDocument", depth=-1)["root"]["nodeId"]
    found = page.call("DOM.querySelectorAll", nodeId=drawn, selector="figure.panel .series .line")
    assert len(found["nodeIds"]) == 60


def test_it_prints_on_a_few_pages(browser, report):
    page = Page(browser, report)
    printed = page.pdf()
    assert printed.startswith(b"%PDF")
    pages = printed.count(b"/Type /Page\n") + printed.count(b"/Type /Page/") or _pages(printed)
    assert 3 <= pages <= 14
    assert page.evaluate("[...document.querySelectorAll('details')].every(one => one.open)")


def _pages(printed: bytes) -> int:
    """Pages of a PDF whose objects are compressed."""
    count = 0
    for part in printed.split(b"stream\n")[1:]:
        try:
            count += zlib.decompressobj().decompress(part).count(b"/Type /Page\n")
        except zlib.error:
            continue
    return count


def test_a_table_that_goes_on_says_so(browser, report):
    """On a phone the first table is wider than the screen: its right edge is shaded until it is scrolled to its end."""
    page = Page(browser, report, width=390)
    edge = """(() => { const b = document.querySelector('.scroll').getBoundingClientRect();
      return [Math.round(b.right - 4 + scrollX), Math.round(b.bottom - 6 + scrollY)] })()"""

    def shade() -> int:
        x, y = page.evaluate(edge)
        picture = Image.open(io.BytesIO(page.screenshot())).convert("L")
        return int(picture.getpixel((x, y)))  # pyright: ignore[reportArgumentType]

    assert page.evaluate(
        "document.querySelector('.scroll').scrollWidth > document.querySelector('.scroll').clientWidth"
    )
    assert shade() < 240
    page.evaluate("document.querySelector('.scroll').scrollLeft = 1e6")
    assert shade() > 250

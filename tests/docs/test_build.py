"""The documentation as it is built: no warning, no link that leads nowhere, pages that fit a phone, notebooks that are programs."""

import ast
import json
import re
import runpy
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.report.browser import Page, start_or_skip

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SCRIPTS = sorted(path.stem for path in (ROOT / "examples").glob("*.py") if path.stem != "style")


class Links(HTMLParser):
    """What a page can be linked to by, and what it links to."""

    def __init__(self, text: str):
        super().__init__()
        self.names: set[str] = set()
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        """Names are ids and names; links are of anchors, pictures, scripts and styles."""
        given = dict(attrs)
        self.names |= {name for key in ("id", "name") if (name := given.get(key))}
        self.links += [link for key in ("href", "src") if (link := given.get(key))]


def loads(page: str) -> list[str]:
    """Addresses elsewhere from which a page loads scripts, pictures and styles: it would need a network."""
    return re.findall(r"""<(?:script|img|link rel="stylesheet")[^>]*(?:src|href)=["'](https?://[^"']*)""", page)


def broken(folder: Path) -> list[str]:
    """Page and link, for every link of the pages of a folder that leads nowhere; addresses elsewhere must only be whole."""
    pages = {path: Links(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        for link in page.links:
            to = urlsplit(link)
            if to.scheme in ("http", "https"):
                good = "." in to.netloc and to.scheme == "https"
            elif to.scheme:
                good = to.scheme in ("data", "mailto")
            else:
                target = (path.parent / unquote(to.path)).resolve() if to.path else path
                good = target.is_file() and (
                    not to.fragment or target not in pages or unquote(to.fragment) in pages[target].names
                )
            if not good:
                found.append(f"{path.relative_to(folder)}: {link}")
    return found


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """The pages; a warning is an error."""
    pytest.importorskip("furo")
    folder = tmp_path_factory.mktemp("html").resolve()
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "-b", "html"]
    run = subprocess.run([*command, str(DOCS), str(folder)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return folder


@pytest.mark.slow
def test_the_documentation_builds_and_no_link_leads_nowhere(built):
    assert (built / "llms.txt").is_file() and (built / "_static" / "copy.js").is_file()
    assert sorted(path.stem for path in (built / "notebooks").iterdir()) == SCRIPTS
    assert [line for line in broken(built) if not line.startswith("genindex")] == []
    assert "<math" in (built / "index.html").read_text(encoding="utf-8")
    assert [path.name for path in built.glob("*.html") if loads(path.read_text(encoding="utf-8"))] == []


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with start_or_skip(tmp_path_factory.mktemp("profile")) as running:
        yield running


# Pictures that reach beyond the text; tables and code may, since they scroll by themselves.
BEYOND = """(() => { const edge = document.querySelector("article").getBoundingClientRect().right + 1;
    return [...document.querySelectorAll("article img, article svg")].filter(
        (it) => it.getBoundingClientRect().right > edge).map((it) => it.outerHTML.slice(0, 60)) })()"""


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
def test_every_page_fits_a_desk_and_a_phone(built, browser, width):
    for path in sorted(built.glob("*.html")):
        page = Page(browser, path, width)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path.name
        assert page.evaluate(BEYOND) == [], path.name
        page.close()


@pytest.mark.slow
def test_a_question_is_folded_until_it_is_asked_for(built, browser):
    page = Page(browser, built / "faq.html")
    opened = "[...document.querySelectorAll('section > details')].map((it) => it.open)"
    folded = page.evaluate(opened)
    assert len(folded) > 10 and not any(folded)
    page.evaluate("location.hash = 'can-it-stop-at-a-saddle-point'; new Promise((done) => setTimeout(done, 200))")
    assert page.evaluate(opened).count(True) == 1
    assert page.evaluate("document.querySelector('section > details[open] h2').textContent").startswith("Can it stop")


def test_links_that_lead_nowhere_are_found(tmp_path):
    (tmp_path / "a.html").write_text(
        '<h1 id="top">A</h1><a href="b.html#here">b</a><a href="https://example.org/x">x</a>'
    )
    (tmp_path / "b.html").write_text(
        '<p id="there"><a href="#gone">1</a><a href="c.html">2</a><img src="http://x"></p>'
    )
    assert broken(tmp_path) == ["a.html: b.html#here", "b.html: #gone", "b.html: c.html", "b.html: http://x"]


def test_a_table_has_numbers_as_people_read_them_and_values_as_they_are():
    book = runpy.run_path(str(DOCS / "benchmark_tables.py"))
    shown = [book["cell"](value) for value in (0.01234, 0.5, 2324.7, 106496, 3281408.0, 33_000_000, None, True, "a_b")]
    assert shown == ["0.0123", "0.5", "2,325", "106,496", "3.28e+06", "3.3e+07", "", "True", "a_b"]
    assert book["table"]([{"its_name": "a_b.whl"}]) == ["| its name |", "| --- |", "| a_b.whl |"]
    assert book["table"]([{"n": 1, "s": 0.5, "b": True}, {"n": 2}])[1] == "| ---: | ---: | --- |"


@pytest.fixture(scope="module")
def llms() -> dict:
    return runpy.run_path(str(DOCS / "llms.py"))


def test_every_page_is_in_one_group_of_the_menu(llms):
    listed = [
        page for pages in llms["groups"]((DOCS / "index.md").read_text(encoding="utf-8")).values() for page in pages
    ]
    assert sorted(listed) == sorted(path.stem for path in DOCS.glob("*.md") if path.stem != "index")


def test_the_list_of_pages_says_what_each_is_about(llms):
    lines = [line for line in llms["llms"](DOCS).splitlines() if line.startswith("- ")]
    assert len(lines) > 25
    assert [line for line in lines if ": " not in line and "CHANGELOG" not in line] == []


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_notebook_is_the_script_in_cells(name):
    """Each cell is a program, and together they are the script but for its style, which they bring along."""
    book = runpy.run_path(str(DOCS / "notebooks.py"))
    cells = book["notebook"](name)["cells"]
    assert (
        json.dumps(cells) and cells[0]["cell_type"] == "markdown" and len({cell["id"] for cell in cells}) == len(cells)
    )
    codes = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    script = book["STYLE"].sub("", book["split"]((ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8"))[1])
    together = ast.dump(ast.parse("\n".join(codes[1:])))
    assert together == ast.dump(ast.parse(script)) and "from style" not in together
    ast.parse(codes[0])
    assert "style" not in codes[0] and "sys" not in codes[0] and "def save(figure, name)" in codes[0]


def test_a_formula_is_part_of_the_page_and_what_tex_makes_of_it():
    """TeX takes one digit for an argument without braces; what is not known is an error, and so fails the build."""
    book = runpy.run_path(str(DOCS / "formulas.py"))
    mathml = book["mathml"]
    assert mathml(r"\tfrac12d+x^12+3_10", False) == mathml(r"\tfrac{1}{2}d+x^{1}2+3_{1}0", False)
    assert mathml(r"10^{12}", False).count("<mn>12</mn>") == 1
    with pytest.raises(book["MathError"]):
        mathml(r"\nothing{x}", False)

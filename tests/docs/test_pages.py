"""What the pages of the documentation say in Python runs, page by page, each in a fresh namespace."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```(?:python|\{cell\})\n(.*?)^```$", re.S | re.M)
SLOW = pytest.mark.slow


def run_page(name: str) -> int:
    """Executes the Python blocks of a page in order, in one session; the number of them."""
    page = DOCS / f"{name}.md"
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    session: dict[str, object] = {"__name__": f"docs_{name}"}
    for number, code in enumerate(blocks):
        exec(compile(code, f"{page.name}, block {number}", "exec"), session)
    return len(blocks)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("start", marks=SLOW),
        pytest.param("notebook", marks=SLOW),
        "choosing",
        "certificates",
        "statements",
        pytest.param("extending", marks=SLOW),
        pytest.param("faq", marks=SLOW),
        pytest.param("estimators", marks=SLOW),
    ],
)
def test_the_python_of_a_page_runs(name, capsys):
    assert run_page(name) >= 1
    assert capsys.readouterr().out


@pytest.mark.slow
def test_the_port_from_pytorch_runs(capsys):
    pytest.importorskip(
        "torch", reason="torch is not installed; no extra brings it, since the page is for those who have it"
    )
    assert run_page("pytorch") == 3
    assert "CERTIFIED" in capsys.readouterr().out


def test_pages_that_name_files_name_files_that_exist():
    """The table of the mathematics points into the package."""
    named = set(re.findall(r"`((?:\w+/)+(?:\w+\.py)?)`", (DOCS / "mathematics.md").read_text(encoding="utf-8")))
    assert len(named) > 20
    assert [path for path in sorted(named) if not (DOCS.parent / "src" / "mescal" / path).exists()] == []


def test_the_page_of_promises_names_tests_that_exist():
    """Files, and functions in them."""
    named = re.findall(r"`(tests/[\w/]+?)(?:\.py)?(?:::(\w+))?`", (DOCS / "promises.md").read_text(encoding="utf-8"))
    assert len(named) > 30
    for path, function in named:
        file = DOCS.parent / f"{path}.py"
        assert file.is_file() or (DOCS.parent / path).is_dir(), path
        assert not function or f"def {function}(" in file.read_text(encoding="utf-8"), (path, function)

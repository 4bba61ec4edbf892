"""Every row of the page that maps symbols to files: names are defined where it says, and what it cites is cited there.

Nothing is imported: files are read as syntax.
"""

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "mathematics.md"
CITED = re.compile(r"\(\d\.\d+\)|Algorithms? \d|Definition \d\.\d|Lemma \d\.\d|Theorem \d\.\d")
NAME, QUOTED, FILE = re.compile(r"`(\w+)`"), re.compile(r'"([\w-]+)"'), re.compile(r"`((?:\w+/)+\w+\.py)`")


class Row(NamedTuple):
    """Names that a row gives, what it cites, and its files."""

    names: tuple[str, ...]
    cited: tuple[str, ...]
    files: tuple[str, ...]


def rows(text: str) -> list[Row]:
    """The rows of all tables with a column `file`."""
    found, inside = [], False
    for line in text.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) != 4:
            inside = False
        elif cells[-1] == "file":
            inside = True
        elif inside and not set(cells[0]) <= {"-"}:
            names = (*NAME.findall(cells[1]), *QUOTED.findall(cells[1]))
            found.append(Row(names, tuple(CITED.findall(cells[2])), tuple(FILE.findall(cells[3]))))
    return found


@cache
def defined(file: str) -> frozenset[str]:
    """Names that a file defines: classes, functions, arguments, fields, attributes that are set; and its short strings."""
    names: set[str] = set()
    for node in ast.walk(ast.parse((ROOT / "src" / "mescal" / file).read_text(encoding="utf-8"))):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            names.add(node.name)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.keyword) and node.arg:
            names.add(node.arg)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 32:
            names.add(node.value)
    return frozenset(names)


def docstrings(file: str) -> str:
    """All docstrings of a file."""
    tree = ast.parse((ROOT / "src" / "mescal" / file).read_text(encoding="utf-8"))
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    return "\n".join(ast.get_docstring(node) or "" for node in ast.walk(tree) if isinstance(node, kinds))


def wrong(row: Row) -> list[str]:
    """What does not hold of a row."""
    missing = [file for file in row.files if not (ROOT / "src" / "mescal" / file).is_file()]
    if missing or not row.files or not row.names:
        return [f"files {missing or row.files}, names {row.names}"]
    found = [f"{name} in {row.files}" for name in row.names if not any(name in defined(file) for file in row.files)]
    found += [f"nothing of {row.names} in {file}" for file in row.files if not defined(file) & set(row.names)]
    text = "\n".join(docstrings(file) for file in row.files)
    return found + [f"{cite} in {row.files}" for cite in row.cited if cite not in text and not _in_plural(cite, text)]


def _in_plural(cite: str, text: str) -> bool:
    """Algorithm 3 is cited by "Algorithms 2 and 3", and (3.2) by "(3.1)-(3.2)", which holds it anyway."""
    number = cite.split()[-1]
    return cite.startswith("Algorithm") and bool(re.search(rf"Algorithms? (\d(, | and ))*{number}\b", text))


ROWS = rows(PAGE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: "-".join(row.names[:1]))
def test_a_row_holds(row):
    assert wrong(row) == []


def test_all_tables_are_read():
    """Every file on the page is one of a row, and what the paper has by number is cited."""
    text = PAGE.read_text(encoding="utf-8")
    assert set(FILE.findall(text)) == {file for row in ROWS for file in row.files}
    cited = {cite for row in ROWS for cite in row.cited}
    assert {"(1.1)", "(3.1)", "(5.1)", "Definition 1.1", "Definition 1.2", "Definition 1.3", "Definition 4.2"} <= cited
    assert {number for cite in cited if cite.startswith("Algorithm") for number in cite[-1]} >= set("12456")
    assert len(ROWS) > 50


def test_a_wrong_row_is_told():
    """The test can fail: a name in another file, an equation that is cited elsewhere, a file that is not there, no name."""
    right = Row(("Spider",), ("Algorithm 6",), ("solvers/spider.py",))
    assert wrong(right) == []
    assert wrong(right._replace(names=("Natasha2",)))
    assert wrong(right._replace(cited=("(5.1)",)))
    assert wrong(right._replace(files=("solvers/spyder.py",)))
    assert wrong(right._replace(names=()))
    assert wrong(Row(("natasha2", "Natasha2"), (), ("solvers/natasha2.py", "solvers/paper/natasha15.py")))

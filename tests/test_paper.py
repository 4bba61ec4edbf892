"""The paper says what the stored results say: text and figure are those that its generator makes, and every source is there."""

import re
import runpy
from pathlib import Path

import pytest

PAPER = Path(__file__).parents[1] / "paper"
write = runpy.run_path(str(PAPER / "write.py"))


def test_the_stored_paper_is_what_the_stored_results_say():
    assert (PAPER / "paper.md").read_text(encoding="utf-8") == write["text"](), "python paper/write.py"


def test_the_stored_figure_is_what_the_stored_results_say():
    pytest.importorskip("matplotlib", reason="matplotlib, which draws the figure, is not installed")
    pytest.importorskip("docutils", reason="docutils, of the extra docs, is not installed")
    assert (PAPER / "profiles.svg").read_text(encoding="utf-8") == write["figure"](), "python paper/write.py"


def test_a_number_that_is_typed_is_found():
    """In sentences; what the template may hold is the version of SciPy's paper and the like, which are in the bibliography."""
    template = (PAPER / "template.md").read_text(encoding="utf-8").split("# Summary")[1]
    prose = re.sub(r"\{\{\w+\}\}|\$\$.*?\$\$|`[^`]*`|float64", "", template, flags=re.S)
    assert re.findall(r"\d[\d.,]*", prose) == ["0.01"]  # the level of noise, by which the table is found
    assert write["NOISE"] == "noise 0.01"


def test_every_source_is_cited_and_every_citation_has_one():
    known = re.findall(r"^@\w+\{([\w-]+),", (PAPER / "paper.bib").read_text(encoding="utf-8"), re.M)
    cited = re.findall(r"(?<![\w.])@([\w-]+)", (PAPER / "template.md").read_text(encoding="utf-8"))
    assert sorted(known) == sorted(set(cited)) and len(known) == len(set(known))
    assert all(f"# {section}" in write["text"]() for section in ("Summary", "Statement of need", "State of the field"))

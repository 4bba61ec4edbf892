"""The scripts of the gallery as notebooks for download: `{notebook} NAME` is a link to notebooks/NAME.ipynb, made by the build.

The docstring becomes text, lines `# --- title ---` become headings, and what stands between them cells. The style of the pictures,
a file beside the scripts, becomes the first cell, without the folder for pictures: a notebook shows them.
"""

import ast
import json
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive

EXAMPLES = Path(__file__).parents[1] / "examples"
HEADING = re.compile(r"^# --- (.+?) -+$", re.M)
STYLE = re.compile(r"^from style import .*\n", re.M)
SHOWN = '''def save(figure, name):
    """The picture, in the notebook."""
    plt.show()
'''


def split(source: str) -> tuple[str, str]:
    """The docstring of a script, and its code."""
    first = ast.parse(source).body[0]
    assert isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    return first.value.value, "\n".join(source.splitlines()[first.end_lineno :]).strip() + "\n"


def style() -> str:
    """The look of the pictures, as a cell that needs no other file."""
    _, code = split((EXAMPLES / "style.py").read_text(encoding="utf-8"))
    dropped = r"^import sys\n|^from pathlib .*\n|^matplotlib\.use.*\n|^import matplotlib\n|^FOLDER = .*\n"
    return (
        re.sub(r"\n{3,}", "\n\n", re.sub(dropped, "", code[: code.index("def save")], flags=re.M)).strip()
        + "\n\n\n"
        + SHOWN
    )


def notebook(name: str) -> dict[str, Any]:
    """A script of the gallery in the notebook format 4.5."""
    text, code = split((EXAMPLES / f"{name}.py").read_text(encoding="utf-8"))
    title, _, rest = text.strip().partition("\n")
    first, *parts = HEADING.split(STYLE.sub("", code))
    cells = [("markdown", f"# {title}\n{rest}"), ("code", style()), ("code", first)]
    for heading, part in zip(parts[::2], parts[1::2], strict=True):
        cells += [("markdown", f"## {heading[0].upper()}{heading[1:]}"), ("code", part)]
    return {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"language_info": {"name": "python"}},
        "cells": [_cell(f"{name}-{k}", kind, body.strip()) for k, (kind, body) in enumerate(cells) if body.strip()],
    }


def _cell(identity: str, kind: str, body: str) -> dict[str, Any]:
    cell = {"id": identity, "cell_type": kind, "metadata": {}, "source": body.splitlines(keepends=True)}
    return cell | ({"outputs": [], "execution_count": None} if kind == "code" else {})


class Notebook(Directive):
    """`{notebook} NAME`: a link to the notebook made of examples/NAME.py."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """A paragraph with the link."""
        name = self.arguments[0]
        link = f'<p><a class="notebook" href="notebooks/{name}.ipynb" download>as a notebook: {name}.ipynb</a></p>'
        return [nodes.raw("", link, format="html")]


def write_all(app, error) -> None:
    """Write the notebooks beside the pages."""
    if error is None and app.builder.format == "html":
        folder = Path(app.outdir) / "notebooks"
        folder.mkdir(exist_ok=True)
        for path in sorted(EXAMPLES.glob("*.py")):
            if path.stem != "style":
                (folder / f"{path.stem}.ipynb").write_text(
                    json.dumps(notebook(path.stem), indent=1) + "\n", encoding="utf-8"
                )


def setup(app) -> dict[str, bool]:
    """Register the directive and the hook."""
    app.add_directive("notebook", Notebook)
    app.connect("build-finished", write_all)
    return {"parallel_read_safe": True}

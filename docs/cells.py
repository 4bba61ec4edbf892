"""A directive that runs code when the page is built, and shows what a notebook would: what it prints, and its last value.

The cells of a page share one namespace, in their order. A value that has `_repr_html_` is shown by it, a figure as a picture,
anything else as text; a cell that fails fails the build.
"""

import ast
import base64
import contextlib
import io
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive, directives

SESSIONS = "mescal_cells"


def run_cell(code: str, session: dict[str, Any]) -> tuple[str, Any]:
    """What a cell prints, and the value of its last line where that is an expression."""
    tree, value = ast.parse(code), None
    last = ast.Expression(tree.body.pop().value) if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), session)
        if last is not None:
            value = eval(compile(last, "cell", "eval"), session)
    return printed.getvalue(), value


def picture(figure: Any) -> str:
    """A matplotlib figure as an image inside of the page."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=110, facecolor="white")
    data = base64.b64encode(file.getvalue()).decode()
    return f'<img alt="the figure that the code above draws" style="max-width:100%" src="data:image/png;base64,{data}">'


def shown(value: Any) -> list[nodes.Node]:
    """A value as a notebook shows it."""
    if value is None:
        return []
    if hasattr(value, "_repr_html_"):
        return [nodes.raw("", value._repr_html_(), format="html")]
    if hasattr(value, "savefig"):
        return [nodes.raw("", picture(value), format="html")]
    return [nodes.literal_block(str(value), str(value), language="text")]


class Cell(Directive):
    """`{cell}` around Python code; with `:hide:` the code runs and is not shown."""

    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {"hide": directives.flag}

    def run(self) -> list[nodes.Node]:
        """Run the code in the session of its page."""
        env = self.state.document.settings.env
        session = env.temp_data.setdefault(SESSIONS, {"__name__": "cells"})
        code = "\n".join(self.content)
        printed, value = run_cell(code, session)
        found = [] if "hide" in self.options else [nodes.literal_block(code, code, language="python")]
        if printed:
            found.append(nodes.literal_block(printed, printed, language="text"))
        return [*found, *shown(value)]


def setup(app) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("cell", Cell)
    return {"parallel_read_safe": True}

"""Formulas as MathML, made by docutils when the pages are built: they need no script and no network, on a phone as on a desk.

What the converter does not know is a warning, and so fails the build.
"""

import re

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

# TeX takes one digit for an argument without braces, the converter the whole number.
DIGITS = re.compile(r"(\\[dt]?frac)(\d)(\d)|([_^])(\d)(?=\d)")


def mathml(tex: str, block: bool) -> str:
    """A formula as a MathML element."""
    return tex2mathml(DIGITS.sub(braced, tex), as_block=block)


def braced(found: re.Match[str]) -> str:
    """The digits with the braces that TeX thinks of."""
    fraction, above, below, sign, digit = found.groups()
    return f"{fraction}{{{above}}}{{{below}}}" if fraction else f"{sign}{{{digit}}}"


def written(translator, node: nodes.Element, block: bool) -> None:
    """The element in the page, in a place of its own that scrolls where it is wider than the page."""
    tag, tex = "div" if block else "span", node.astext()
    try:
        translator.body.append(f'<{tag} class="formula">{mathml(tex, block)}</{tag}>')
    except MathError as error:
        logging.getLogger(__name__).warning("the formula %s is not known to docutils: %s", tex, error, location=node)
    raise nodes.SkipNode


def inline(translator, node: nodes.math) -> None:
    """A formula in a line."""
    written(translator, node, block=False)


def display(translator, node: nodes.math_block) -> None:
    """A formula by itself."""
    written(translator, node, block=True)


def setup(app) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", inline_renderers=(inline, None), block_renderers=(display, None))
    return {"parallel_read_safe": True}

"""How the documentation is built: Sphinx, pages and docstrings in Markdown (MyST), the Furo theme.

Docstrings are Markdown, while autodoc hands them on as reStructuredText, where |x|, x* and lam_ are markup. So each
docstring is wrapped in a directive that lets MyST parse it. What a module exports is documented by itself.
"""

import importlib
import inspect
import logging as standard
import os
import sys
import tomllib
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.utils import new_document
from myst_parser.parsers.sphinx_ import MystParser
from sphinx.util import logging

import mescal

sys.path.insert(0, str(Path(__file__).parent))

# A style of code that the theme brings would have the root logger print whatever is told.
standard.basicConfig(level=standard.WARNING)

project = "mescal"
author = "The mescal developers"
copyright = author
release = version = mescal.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "benchmark_tables",
    "benchmark_profiles",
    "benchmark_curves",
    "cells",
    "folded",
    "formulas",
    "notebooks",
    "llms",
]
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_dmath_double_inline = True
myst_heading_anchors = 3
exclude_patterns = ["_build"]
suppress_warnings = ["myst.header"]  # a heading inside a docstring does not start at the first level

html_math_renderer = "mathml"
html_theme = "furo"
pygments_dark_style = "github-dark"  # the default underlines the names of modules, which look like links
html_title = f"mescal {release}"
html_static_path = ["_static"]
html_css_files = ["house.css"]
html_js_files = ["copy.js", "folded.js"]

# Addresses of the project stand in pyproject.toml and nowhere else.
URLS = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
html_baseurl = URLS.get("Documentation", "")
html_theme_options = (
    {"source_repository": URLS["Repository"], "source_branch": "main", "source_directory": "docs/"}
    if "Repository" in URLS
    else {}
)

# Types in signatures link into the pages of other packages where their inventories can be had. The build needs no network, so
# that is asked for: MESCAL_DOCS_INVENTORIES=online fetches them, =FOLDER reads FOLDER/jax.inv and so on, as far as they are there.
OTHERS = {
    "python": "https://docs.python.org/3",
    "jax": "https://docs.jax.dev/en/latest",
    "numpy": "https://numpy.org/doc/stable",
    "scipy": "https://docs.scipy.org/doc/scipy",
    "sklearn": "https://scikit-learn.org/stable",
    "equinox": "https://docs.kidger.site/equinox",
}
INVENTORIES = os.environ.get("MESCAL_DOCS_INVENTORIES", "")
intersphinx_mapping = {
    name: (address, None if INVENTORIES == "online" else str(Path(INVENTORIES, f"{name}.inv")))
    for name, address in OTHERS.items()
    if INVENTORIES and (INVENTORIES == "online" or Path(INVENTORIES, f"{name}.inv").is_file())
}

autodoc_member_order = "bysource"
# `minimize` shows settings that stand nowhere in its source, so that defaults cannot be read from there.
autodoc_preserve_defaults = False
autodoc_default_options = {"members": True, "imported-members": True}


class MarkdownDocstring(Directive):
    """Parse the content as MyST Markdown and put the result where the directive stands."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        parent = self.state.document
        document = new_document(parent["source"], parent.settings)
        document.reporter = parent.reporter
        MystParser().parse("\n".join(self.content), document)
        return document.children


def wrap_docstring(app, what, name, obj, options, lines: list[str]) -> None:
    """Turn the lines of one docstring into the content of a `markdown-docstring` directive."""
    if any(lines):
        lines[:] = [".. markdown-docstring::", "", *("   " + line for line in lines), ""]


def readable_signature(app, what, name, obj, options, signature: str | None, returns: str | None):
    """A default that a dataclass makes is `...`: as `<factory>` it is no Python, and nothing in the signature would be a link."""
    return signature and signature.replace("<factory>", "..."), returns


def skip_foreign(app, what, name, obj, skip, options) -> bool | None:
    """Leave out what a module merely imports from elsewhere; None leaves the decision to autodoc."""
    if name.startswith("set_") and name.endswith("_request"):  # scikit-learn's, with its own docstring
        return True
    module = app.env.temp_data.get("autodoc:module") or "mescal"
    home = getattr(obj, "__module__", None) or module
    return True if what == "module" and not f"{home}.".startswith(f"{module}.") else None


PUBLIC = (
    "mescal",
    *(f"mescal.{name}" for name in ("sets", "solvers", "curvature", "problems", "datasets", "testing")),
    *(f"mescal.{name}" for name in ("baselines", "estimators", "theory", "experiments")),
    "mescal.report",
)


def require_public_names(app, env) -> None:
    """Warn, and so fail, for every public function or class of a public module that no page documents."""
    documented = {name for name, *_ in env.get_domain("py").get_objects()}
    for module in PUBLIC:
        home = importlib.import_module(module)
        for name in dir(home):  # and not `vars`: some names are imported on first use
            thing = getattr(home, name)
            ours = (inspect.isclass(thing) or inspect.isfunction(thing)) and thing.__module__.startswith("mescal.")
            if ours and not name.startswith("_") and f"{module}.{name}" not in documented:
                logging.getLogger(__name__).warning("the public name %s.%s is not documented", module, name)


def one_home(app, env) -> None:
    """A page of source links back to one module for all that it holds: one that documents all of it, where there is one."""
    documented = {name for name, *_ in env.get_domain("py").get_objects()}
    for source, entry in getattr(env, "_viewcode_modules", {}).items():
        if entry:
            code, tags, used, home = entry
            homes = (home, *PUBLIC)
            home = next((each for each in homes if all(f"{each}.{name}" in documented for name in used)), home)
            env._viewcode_modules[source] = code, tags, used, home


def setup(app) -> None:
    """Register the directive and the hooks."""
    app.connect("env-check-consistency", require_public_names)
    app.connect("env-check-consistency", one_home)
    app.add_directive("markdown-docstring", MarkdownDocstring)
    app.connect("autodoc-process-docstring", wrap_docstring)
    app.connect("autodoc-process-signature", readable_signature)
    app.connect("autodoc-skip-member", skip_foreign)

"""A directive that shows a stored benchmark: its tables, targets, conclusions, machine and versions, straight from the JSON."""

import json
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive, directives
from docutils.utils import new_document
from myst_parser.parsers.sphinx_ import MystParser

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
LONG = 30  # rows from which on a table is folded, and comes after the others


def cell(value: Any) -> str:
    """A number as people read it."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if 1e3 <= abs(value) < 1e6 else f"{value:.3g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}" if abs(value) < 1e7 else f"{value:.3g}"
    return str(value)


def number(value: Any) -> bool:
    """Whether it is one, or is missing."""
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))


def table(rows: list[dict[str, Any]]) -> list[str]:
    """A Markdown table; columns in the order in which they first appear, those of numbers alone set to the right."""
    head = list(dict.fromkeys(key for row in rows for key in row))
    names = [name.replace("_", " ") for name in head]
    sides = ["---:" if all(number(row.get(key)) for row in rows) else "---" for key in head]
    lines = [names, sides, *([cell(row.get(key)) for key in head] for row in rows)]
    return ["| " + " | ".join(line) + " |" for line in lines]


def page(result: dict[str, Any], only: str | None) -> str:
    """Tables, targets and conclusions of one stored result, or only the table whose title starts with `only`."""
    lines: list[str] = []
    shown = {title: rows for title, rows in result["tables"].items() if only is None or title.startswith(only)}
    for title, rows in sorted(shown.items(), key=lambda item: len(item[1]) > LONG):  # the order is kept otherwise
        name = f"{title[0].upper()}{title[1:]}"
        if len(rows) > LONG and len(shown) > 1:
            lines += [
                "<details>",
                f"<summary>{name}: {len(rows)} rows</summary>",
                "",
                *table(rows),
                "",
                "</details>",
                "",
            ]
        else:
            lines += [f"**{name}.**", "", *table(rows), ""]
    if only is None:
        for target in result["targets"]:
            verdict = "met" if target["met"] else "**missed**"
            lines.append(f"- {target['what']}: {cell(target['value'])}, target {cell(target['at_most'])}: {verdict}")
        said = result["conclusions"]
        lines += ["", *(f"- {sentence}" if len(said) > 3 else sentence for sentence in said), ""]
    machine, versions = result["machine"], result["versions"]
    lines.append(
        f"*{result['date'][:10]}, {machine['processor']}, {result['threads']} of {machine['cores']} cores, {result['clock']}; "
        + ", ".join(f"{name} {number}" for name, number in (versions | result["settings"].get("peers", {})).items())
        + f"; `python -m benchmarks {result['benchmark']}`.*"
    )
    return "\n".join(lines)


class Benchmark(Directive):
    """`{benchmark} NAME` shows benchmarks/results/NAME.json; `:table:` picks one of its tables by the start of its title."""

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {"table": directives.unchanged}

    def run(self) -> list[nodes.Node]:
        """Parse the page as MyST Markdown."""
        path = RESULTS / f"{self.arguments[0]}.json"
        self.state.document.settings.record_dependencies.add(str(path))
        if path.exists():
            text = page(json.loads(path.read_text()), self.options.get("table"))
        else:
            text = f"*Not measured yet: `python -m benchmarks {self.arguments[0]}` stores it.*"
        parent = self.state.document
        document = new_document(parent["source"], parent.settings)
        document.reporter = parent.reporter
        MystParser().parse(text, document)
        return document.children


def setup(app) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("benchmark", Benchmark)
    return {"parallel_read_safe": True}

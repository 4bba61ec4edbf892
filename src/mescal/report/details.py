"""The small print that makes a run repeatable: key figures, settings, versions, machine."""

from collections.abc import Mapping, Sequence
from typing import Any

from .arrange import Group
from .markup import definitions, tag, text
from .numbers import count, number, seconds, short
from .view import View

HIDDEN = ("schema",)


def facts(group: Group) -> str:
    """The key figures of a single run."""
    (view,) = group.views
    if not view.ended:
        return ""
    pairs = [
        ("Objective", _optimum(view), number(view.number("objective"), 6), ("objective",)),
        ("Work", "gradients + 2 HVPs", count(view.number("work", "total")), ("work", "total")),
        ("Outer iterations", "", count(view.number("outer_iterations")), ("outer_iterations",)),
        ("Seconds", f"of which {seconds(view.number('seconds', 'compile'))} compiling",
         seconds(view.number("seconds", "total")), ("seconds", "total")),
        ("Relative stationarity", "stationarity × max(1, |x|)",
         number(view.number("certificate", "relative_stationarity")), ("certificate", "relative_stationarity")),
    ]  # fmt: skip
    marked = (
        (
            text(title),
            tag("span", shown, data_value=repr(view.number(*path))) + (f"<small>{text(note)}</small>" if note else ""),
        )
        for title, note, shown, path in pairs
    )
    return definitions(marked, class_="facts")


def _optimum(view: View) -> str:
    """The best objective known, where one is."""
    return "" if view.result.get("optimum") is None else f"best known: {number(view.number('optimum'), 6)}"


def size(view: View) -> str:
    """The size of the problem, as an addition to its description."""
    statement = view.result.get("statement")
    if not isinstance(statement, Mapping):
        return ""
    rows = statement.get("population")
    data = "a stream of samples" if rows is None else f"{rows:,} samples"
    return f" ({statement.get('dimension', 0):,} parameters, {data})"


def settings(groups: Sequence[Group]) -> str:
    """What was asked and where it ran; what differs between runs is listed with all its values."""
    views = [view for group in groups for view in group.views]
    asked = _merged([_flat(view.config) for view in views])
    versions = _merged([_flat(view.result.get("versions", {})) for view in views if view.ended])
    machine = _merged([_flat(view.result.get("machine", {})) for view in views if view.ended])
    lists = [("Settings", asked), ("Versions", versions), ("Machine", machine)]
    columns = (f"<div><h3>{title}</h3>{definitions(pairs)}</div>" for title, pairs in lists if pairs)
    return tag("div", "".join(columns), class_="settings")


def _merged(contents: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    names = dict.fromkeys(name for content in contents for name in content if name not in HIDDEN)
    merged = []
    for name in names:
        values = list(dict.fromkeys(short(content[name]) for content in contents if name in content))
        shown = ", ".join(values[:8]) + (f" and {len(values) - 8} more" if len(values) > 8 else "")
        merged.append((text(name), text(shown)))
    return merged


def _flat(content: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings as `outer.inner`; an empty one is a dash."""
    flat: dict[str, Any] = {}
    for name, value in content.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{name}.") if value else {f"{prefix}{name}": "–"}
        else:
            flat[prefix + name] = value
    return flat

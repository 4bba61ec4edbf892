"""The small print that makes a run repeatable: key figures, settings, versions, machine."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .grouping import Group
from .markup import definitions, tag, text
from .numbers import count, number, seconds, short
from .run_view import RunView

HIDDEN = ("schema",)


def facts(group: Group) -> str:
    """The key figures of a single run."""
    (view,) = group.views
    result, about = view.result, view.about
    if result is None or about is None:
        return ""
    optimum = "" if about.optimum is None else f"best known: {number(about.optimum, 6)}"
    flat = result.certificate.relative_stationarity
    pairs: list[tuple[str, str, float, Callable[[float], str]]] = [
        ("Objective", optimum, result.objective, lambda v: number(v, 6)),
        ("Work", "gradients + 2 HVPs", result.work.total, count),
        ("Outer iterations", "", result.outer_iterations, count),
        ("Seconds", f"of which {seconds(result.seconds.compile)} compiling", result.seconds.total, seconds),
        ("Relative stationarity", "stationarity × max(1, |x|)", flat.value, number),
    ]
    marked = (
        (
            text(title),
            tag("span", shown(value), data_value=repr(float(value))) + (f"<small>{text(note)}</small>" if note else ""),
        )
        for title, note, value, shown in pairs
    )
    return definitions(marked, class_="facts")


def size(view: RunView) -> str:
    """The size of the problem: parameters, rows, constraints."""
    statement = None if view.about is None else view.about.statement
    if statement is None:
        return ""
    data = "a stream" if statement.population is None else f"means over at most {statement.population:,} rows"
    rows = sum(part.rows for part in statement.constraints)
    held = f"{rows:,} constraint{'' if rows == 1 else 's'}" if rows else "no constraints"
    return f"{statement.dimension:,} parameters, {data}, {held}"


def settings(groups: Sequence[Group]) -> str:
    """What was asked and where it ran; what differs between runs is listed with all its values."""
    views = [view for group in groups for view in group.views]
    asked = _merged([_flat(view.config) for view in views])
    versions = _merged([_flat(view.about.versions) for view in views if view.about is not None])
    machine = _merged([_flat(view.about.machine) for view in views if view.about is not None])
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

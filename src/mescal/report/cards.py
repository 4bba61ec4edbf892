"""Records as a notebook shows them: a card of HTML that needs nothing else, follows the colours around it, and trusts no name.

A notebook's theme is not the reader's system's, so text and lines take the colour that is there; what is green or red has a mark.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from ..certificate import Certificate, Check, Measured, Tolerance
from ..problem import Problem
from ..problem.constraint import Held, held
from ..run import History, Result, Row
from .markup import tag, text
from .numbers import count, counted, number, seconds
from .page import asset
from .tables import SIGNS
from .words import explain, promise

ROWS = 12  # of a history or of constraints; more are left out, and that is said
SHOWN = "outer", "work", "seconds", "objective", "stationarity", "feasibility", "curvature", "penalty"
CONES = {"whole": "the whole space", "paper": "the paper's cone", "critical": "the critical cone"}


def card(parts: Iterable[str], state: str = "") -> str:
    """The card around its parts."""
    return tag("div", tag("style", asset("card.css")) + "".join(parts), class_=f"mescal {state}".strip())


def result_card(result: Result) -> str:
    """A result: verdict, what it means, measures, constraints, cost; the explanation folds out."""
    found, tol = result.certificate, result.tolerance
    state = "good" if result.converged else "bad"
    verdict = f"Certified to the tolerance {tol}" if result.converged else f"Not certified: {result.status.word}"
    parts = [
        tag("p", mark(result.converged) + text(verdict), class_="head"),
        "" if result.converged else tag("p", text(result.status)),
        "" if result.ray is None else tag("p", text(result.ray), class_="soft"),
        tag("p", f"Objective <b>{number(result.objective, 6)}</b>. {text(promise(found))}"),
        measures(found, tol),
        constraints([row for row, _ in result.held], [price for _, price in result.held], tol),
        "" if result.spread is None else tag("p", text(f"The {result.spread}.")),
        tag("p", text(_cost(result)), class_="soft"),
        _warnings((*result.warnings, *found.warnings)),
        _folded("For a reviewer", "".join(tag("p", text(part)) for part in explain(result).split("\n\n"))),
        _folded(f"{counted(len(result.history), 'row')} of history", history_table(result.history))
        if len(result.history)
        else "",
    ]
    return card(parts, state)


def certificate_card(found: Certificate) -> str:
    """A certificate by itself, which knows no tolerance."""
    rows = [
        ("stationarity", found.stationarity),
        ("violation", found.violation),
        ("complementarity", found.complementarity),
    ]
    rows += [(f"curvature on {CONES.get(name, name)}", m) for name, m in found.curvatures.items()]
    told = (
        tag(
            "tr",
            tag("th", text(name), scope="row")
            + tag("td", _bounded(m.value), class_="n")
            + _interval(m)
            + _small(m.how),
        )
        for name, m in rows
    )
    prices = [float(v) for name in found.constraints for v in found.multipliers[name].ravel()]
    parts = [
        tag("p", f"Certificate: objective {number(found.objective.value, 6)}", class_="head"),
        tag("p", text(promise(found))),
        tag("div", tag("table", f"<tbody>{''.join(told)}</tbody>"), class_="scroll"),
        constraints(list(held(found.constraints, found.terms)), prices, None),
        tag("p", "Whether that is enough: <code>certificate.passes(tol)</code>.", class_="soft"),
        _warnings(found.warnings),
    ]
    return card(parts)


def problem_card(problem: Problem) -> str:
    """A problem: what is minimised, subject to what, over how many rows."""
    sizes = [source.size for source in problem.sources]
    data = ", ".join("a stream" if size is None else f"{size:,} rows" for size in sizes) or "no data"
    objective, constraints = problem.stated
    rows = [("minimise", str(objective)), *((name, str(c)) for name, c in constraints.items())]
    rows.append(("domain", str(problem.stated_domain)))
    told = (tag("tr", tag("th", text(name), scope="row") + tag("td", tag("code", text(what)))) for name, what in rows)
    added = len(problem.constraints), 0 if problem.lifting is None else len(problem.lifting.starts)
    plain = added == (len(constraints), 0)
    lowered = (
        ""
        if plain
        else f"; what is stated becomes {counted(added[0], 'constraint')} and adds {counted(added[1], 'scalar')}"
    )
    parts = [
        tag("p", "Problem", class_="head"),
        tag("div", tag("table", f"<tbody>{''.join(told)}</tbody>"), class_="scroll"),
        tag("p", text(f"{counted(len(constraints), 'constraint')}; over {data}{lowered}."), class_="soft"),
    ]
    return card(parts)


def history_card(history: History) -> str:
    """A history, its first and its last rows."""
    title = f"History: {counted(len(history), 'row')}"
    return card([tag("p", title, class_="head"), history_table(history)])


def measures(found: Certificate, tol: Tolerance) -> str:
    """The measures against the tolerance."""
    head = _heads(["", "", "asked", "of the tolerance"])
    rows = []
    for check in found.checks(tol):
        extra = f"<br><small>{text(found.parts)}</small>" if check.name == "feasibility" else ""
        extra = (
            f"<br><small>on {text(CONES.get(found.cone, found.cone))}</small>" if check.name == "curvature" else extra
        )
        limit = f"{'≥' if check.sign == '>=' else '≤'} {number(check.limit)}"
        name = tag("th", mark(check.met) + text(check.name) + extra, scope="row")
        cells = [name, tag("td", _bounded(check.bound), class_="n"), tag("td", limit), tag("td", bar(check))]
        rows.append(tag("tr", "".join(cells), class_=None if check.met else "bad"))
    return tag("div", tag("table", head + tag("tbody", "".join(rows))), class_="scroll")


def bar(check: Check) -> str:
    """How much of the limit is used up, as a bar and in words."""
    full = 1.0 if math.isnan(check.share) else min(check.share, 1.0)
    inside = f'<i style="width:{100 * full:.0f}%"></i>'
    if check.met:
        words = f"{100 * check.share:.0f} %"
    else:
        words = f"{check.share:.3g} times" if math.isfinite(check.share) else "not met"
    return tag("span", inside, class_="bar" if check.met else "bar over") + f" <small>{words}</small>"


def constraints(rows: Sequence[Held], prices: Sequence[float], tol: Tolerance | None) -> str:
    """Constraints as they were stated; what violates a tolerance comes first, and marks say what does."""
    if not rows:
        return ""
    allowed = math.inf if tol is None else tol.violation
    order = sorted(range(len(rows)), key=lambda i: (-rows[i].violated(allowed), -abs(prices[i])))[:ROWS]
    body = []
    for i in order:
        row, broken = rows[i], rows[i].violated(allowed)
        cells = [
            tag("th", ("" if tol is None else mark(not broken)) + text(row.name), scope="row"),
            tag("td", text(row.shown), class_="n"),
            tag("td", f"{SIGNS[row.sign]} {row.bound:.6g}"),
            tag("td", text(row.gap)),
            tag("td", number(prices[i]), class_="n"),
        ]
        body.append(tag("tr", "".join(cells), class_="bad" if broken else None))
    head = _heads(["", "value", "bound", "", "multiplier"])
    more = len(rows) - len(order)
    left_out = tag("p", f"{counted(more, 'row')} more, which cost less.", class_="soft") if more else ""
    return tag("div", tag("table", head + tag("tbody", "".join(body))), class_="scroll") + left_out


def history_table(history: History) -> str:
    """Its rows, without the middle where they are many."""
    chosen: list[Row | None] = list(history)
    if len(chosen) > ROWS:
        chosen = [*chosen[: ROWS // 3], None, *chosen[-(ROWS - ROWS // 3) :]]
    body = "".join(_history_row(row, len(history)) for row in chosen)
    return tag("div", tag("table", _heads(SHOWN, "n") + tag("tbody", body)), class_="scroll")


def _history_row(row: Row | None, rows: int) -> str:
    if row is None:
        return f'<tr><td colspan="{len(SHOWN)}">… {rows - ROWS} rows …</td></tr>'
    shown = {
        "outer": "start" if row.outer < 0 else str(row.outer + 1),
        "work": count(row.work),
        "seconds": seconds(row.seconds),
    }
    cells = (shown.get(name) or number(getattr(row, name)) for name in SHOWN)
    return f"<tr>{''.join(tag('td', cell, class_='n') for cell in cells)}</tr>"


def mark(good: bool) -> str:
    """A tick or a cross."""
    return tag("span", "✓" if good else "✗", class_=f"mark {'good' if good else 'bad'}")


def _interval(measured: Measured) -> str:
    low, high = number(measured.lower), number(measured.upper)
    return tag("td", "" if low == high else text(f"between {low} and {high}"))


def _small(words: str) -> str:
    return tag("td", text(words), class_="soft")


def _heads(names: Sequence[str], class_: str | None = None) -> str:
    return f"<thead><tr>{''.join(tag('th', text(name), class_=class_) for name in names)}</tr></thead>"


def _bounded(value: float) -> str:
    return "nothing to test" if value == math.inf else number(value)


def _cost(result: Result) -> str:
    return (
        f"{result.solver}, seed {result.seed}: {counted(result.outer_iterations, 'outer iteration')}, "
        f"{count(result.work.total)} evaluations, "
        f"{seconds(result.seconds.total)} s of which {seconds(result.seconds.compile)} s compiling. {_how(result.certificate)}"
    )


def _how(found: Certificate) -> str:
    confidence = "" if found.confidence is None else f", with confidence {found.confidence:.4g}"
    return f"Measures: {found.stationarity.how}{confidence}."


def _warnings(sentences: Sequence[Any]) -> str:
    if not sentences:
        return ""
    return f"<p><b>Warnings</b></p>{tag('ul', ''.join(tag('li', text(sentence)) for sentence in sentences))}"


def _folded(title: str, content: str) -> str:
    return tag("details", tag("summary", text(title)) + content)

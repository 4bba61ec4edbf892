"""The verdict: certified or not, in a sentence, with advice for what is not, and the judge's warnings."""

import re
from collections.abc import Sequence

from .grouping import Group, Series
from .markup import tag, text
from .numbers import number
from .run_view import RunView


def verdict(groups: Sequence[Group]) -> str:
    """The first thing on the page."""
    views = [view for group in groups for view in group.views]
    good = all(view.certified for view in views)
    heading = headline(groups)
    said = tag("p", f'<span aria-hidden="true">{"✓" if good else "✗"}</span> {text(heading)}', class_="headline")
    if len(views) == 1:
        listed = "" if good else f"<p>{_story(views)}</p>"
    else:
        items = [item for group in groups for series in group.series for item in _not_certified(group, series)]
        listed = tag("ul", "".join(tag("li", item) for item in items)) if items else ""
    return tag(
        "section",
        said + f"<p>{_explanation(groups)}</p>" + listed + warnings(groups),
        class_=f"verdict {'good' if good else 'bad'}",
        aria_label="Verdict",
    )


def headline(groups: Sequence[Group]) -> str:
    """One sentence."""
    views = [view for group in groups for view in group.views]
    done = sum(view.certified for view in views)
    if len(views) == 1:
        (view,), (group,) = views, groups
        if view.certified:
            return f"Certified to the tolerance {group.tolerance_text}."
        return f"Not {'certified' if view.ended else 'finished'}. {_reason(view)[0]}"
    if done == len(views):
        return f"All {done} runs are certified."
    return f"{done} of {len(views)} runs are certified." if done else f"None of the {len(views)} runs is certified."


def _explanation(groups: Sequence[Group]) -> str:
    certified = [view for group in groups for view in group.views if view.certified]
    if not certified:
        return "Nothing is claimed about a point without a certificate."
    every = len(certified) == sum(len(group.views) for group in groups)
    what = "The certified points are" if not every else "The point is" if len(certified) == 1 else "Each point is"
    of = (group.tolerance_text for group in groups if any(view.certified for view in group.views))
    tolerances = " or ".join(dict.fromkeys(of))
    return (
        f"{what} stationary, feasible and without negative curvature to the tolerance {tolerances}, "
        "measured afresh in double precision, independently of the solver."
    )


def _not_certified(group: Group, series: Series) -> list[str]:
    """A sentence for every status without a certificate: whose, what happened, what to do."""
    reasons: dict[tuple[str, str], list[RunView]] = {}
    for view in series.views:
        if not view.certified:
            reasons.setdefault(_reason(view), []).append(view)
    items = []
    for (sentence, _), views in reasons.items():
        seeds = ", ".join(str(view.seed) for view in views)
        who = f"{group.label} at {group.tolerance_text}, {series.label}, seed{'s' if len(views) > 1 else ''} {seeds}"
        items.append(f"<b>{text(who)}:</b> {text(sentence)} {_story(views)}")
    return items


def _story(views: Sequence[RunView]) -> str:
    """Which measures are missed, if the run is one, and what to do."""
    failing = _failing(views[0]) if len(views) == 1 else ""
    return f"{text(failing)} <em>What to do:</em> {text(_reason(views[0])[1])}"


def _reason(view: RunView) -> tuple[str, str]:
    if view.result is None:
        return (
            "It has no result: it is still running, or was stopped.",
            f"Wait for it, or carry it on: mescal resume {view.place}",
        )
    return view.result.status.sentence, view.result.status.advice


def _failing(view: RunView) -> str:
    """The measures that miss their tolerance, in words."""
    return " ".join(
        f"{check.name.capitalize()} {number(check.bound)} is {'below' if check.sign == '>=' else 'above'} {number(check.limit)}."
        for check in view.checks.values()
        if not check.met
    )


def warnings(groups: Sequence[Group]) -> str:
    """The judge's warnings: those that differ in their numbers alone are said once, with how many runs they concern."""
    concerned: dict[str, list[str]] = {}
    several = sum(len(group.views) for group in groups) > 1
    for group in groups:
        for series in group.series:
            for view in series.ended:
                where = f"{group.label}, " if len(groups) > 1 else ""
                who = f"{where}{series.label}, seed {view.seed}: " if several else ""
                for sentence in dict.fromkeys(view.result.certificate.warnings if view.result else ()):
                    concerned.setdefault(re.sub(r"\d[\d.e+-]*", "", sentence), []).append(who + sentence)
    if not concerned:
        return ""
    items = "".join(f"<li>{text(said[0])}{_likewise(len(said) - 1)}</li>" for said in concerned.values())
    return f'<div class="warnings"><p><b>The judge warns:</b></p><ul>{items}</ul></div>'


def _likewise(others: int) -> str:
    return f" Likewise {others} other run{'s' if others > 1 else ''}." if others else ""

"""A certificate in plain words: what it says of the point, how that was measured, and what it does not say.

With L = f + lam'c, lam_j >= 0, and lam_j = 0 beside slacks, a direction d of unit length in x that stays in X and meets active
constraints to first order (J_j d <= 0, J_j d = 0 for equalities) changes f at the rate

    f'd = (grad f + J'lam)'d - lam'J d  >=  -|P_T(-grad L)|  =  -stationarity

so no such direction improves f faster. Along those of the cone, f changes by half the curvature of L times the length squared
beside that, to second order.
"""

import math
from collections.abc import Iterable

import numpy as np

from ..certificate import Certificate, Measured, Tolerance
from ..problem.constraint import held
from ..run import Result
from .numbers import counted

CONES = {
    "whole": "in all directions of x and slacks, of the augmented Lagrangian: the paper's computable test, which asks for more "
    "than a minimiser has",
    "paper": "along the tangent directions that keep every constraint to first order: the paper's definition",
    "critical": "on the critical cone: directions that stay feasible and do not change the objective, both to first order. A local "
    "minimiser has no negative curvature there, and a stationary point with positive curvature on it is a strict local minimiser",
}
LISTED = 12  # rows of constraints in an explanation


def size(value: float) -> str:
    """A number in three digits."""
    return f"{value:.3g}"


def promise(found: Certificate) -> str:
    """What it means that the point is stationary and without negative curvature, in one sentence."""
    steep, bent = found.stationarity.upper, found.curvature.lower
    further = " further" if found.violation.value > 0 else ""
    without = f"without breaking a constraint{further}" if found.constraints else "within the domain"
    if not math.isfinite(steep):
        return f"Nothing bounds how fast some direction improves the objective {without}."
    first = (
        f"No direction improves the objective by more than {size(steep)} per unit of length {without}, to first order"
    )
    if found.curvature.value == math.inf:
        return f"{first}, and none is left open for the second."
    if not math.isfinite(bent):
        return f"{first}; of the second nothing is known."
    where = "anywhere" if found.cone == "whole" else "where the first order leaves one open"
    if bent >= 0:
        return f"{first}, and {where} it curves upwards."
    return f"{first}; {where}, a step of length t gains at most {size(-bent / 2)} t² more, to second order."


def explain(result: Result) -> str:
    """A few paragraphs for a reviewer about a result."""
    found, tol = result.certificate, result.tolerance
    size_of = sum(np.size(leaf) for leaf in _leaves(result.x))
    verdict = "is certified" if result.converged else "is NOT certified"
    claim = f"A point of {size_of} parameters {verdict} to the tolerance {tol}. {result.status}"
    claim += "" if result.ray is None else f" It is {result.ray}."
    parts = [claim, *_about(found, tol, result.converged), _run(result), _limits(found, result)]
    return "\n\n".join(parts)


def explain_certificate(found: Certificate, tol: float | Tolerance | None = None) -> str:
    """The same about a certificate alone; with a tolerance, what meets it."""
    tolerance = None if tol is None else tol if isinstance(tol, Tolerance) else Tolerance(tol, tol)
    claim = "What was measured at a point"
    if tolerance is not None:
        passes = found.passes(tolerance)
        claim = f"The certificate {'meets' if passes else 'does NOT meet'} the tolerance {tolerance}"
        if not passes:
            claim += f": {'; '.join(found.missing(tolerance))}"
    return "\n\n".join([f"{claim}.", *_about(found, tolerance, False), _limits(found, None)])


def _about(found: Certificate, tol: Tolerance | None, certified: bool) -> Iterable[str]:
    yield (
        f"What it means. {promise(found)} Lengths of directions are those of x{_of_slacks(found)}."
        + (
            ""
            if certified or tol is None
            else " Where a measure misses its tolerance, this sentence holds with the number it names."
        )
    )
    yield (
        "How it was measured. f, c and their derivatives were computed afresh in double precision from the problem and the point, "
        "by code that knows no solver; nothing was taken from the run but the point and, where they serve it, multipliers. "
        f"{_errors(found)}"
    )
    steep, bent = _measure(found.stationarity), f"{_measure(found.curvature)} ({found.curvature.how.partition(';')[0]})"
    yield (
        f"First order. Stationarity |P_T(-(grad f + J'lam))| is {steep}{_held_to(tol, 'stationarity', found)}. Times max(1, |x|), "
        f"which a flat region far out cannot fool, it is {size(found.relative_stationarity.value)}. "
        f"The multipliers have the norm {size(found.multiplier_norm)}{_signs(found)}."
    )
    yield f"Feasibility. {_constraints(found, tol)}"
    others = ", ".join(f"{name} {_number(m)}" for name, m in found.curvatures.items() if name != found.cone)
    yield (
        f"Second order. The smallest curvature is {bent}{_held_to(tol, 'curvature', found)}, {CONES[found.cone]}."
        + (f" On the other cones: {others}." if others else "")
    )


def _of_slacks(found: Certificate) -> str:
    return "" if found.cone == "critical" else ", and to second order those of x and slacks together"


def _errors(found: Certificate) -> str:
    if found.confidence is None:
        return (
            "Expectations are means over all rows, without sampling error; intervals hold what rounding can have done. "
            f"({found.objective.how.capitalize()}.)"
        )
    return (
        f"Expectations were estimated from samples, drawn anew: the intervals hold together with confidence {found.confidence:.4g} "
        f"({found.stationarity.how}); a run that asks several times spends its failure probability over all of its questions. What "
        "is compared with the tolerance is the end of an interval, never its middle."
    )


def _measure(measured: Measured) -> str:
    if not math.isfinite(measured.value):
        return _number(measured)
    low, high = size(measured.lower), size(measured.upper)
    interval = "" if low == high else f", between {low} and {high}"
    return f"{size(measured.value)}{interval}"


def _number(measured: Measured) -> str:
    if measured.value == math.inf:
        return "none: the cone is empty"
    return "unknown" if math.isnan(measured.value) else size(measured.value)


def _held_to(tol: Tolerance | None, name: str, found: Certificate) -> str:
    if tol is None:
        return ""
    check = next(check for check in found.checks(tol) if check.name == name)
    word = "within" if check.met else "outside of" if check.refuted else "not shown to be within"
    return f", {word} what was asked for ({'at least' if check.sign == '>=' else 'at most'} {check.limit:g})"


def _signs(found: Certificate) -> str:
    if not found.slack or found.dual_sign >= 0:
        return ", and those of inequalities have the right sign" if found.slack else ""
    return f", and the most negative one of an inequality is {size(found.dual_sign)}, which stationarity counts"


def _constraints(found: Certificate, tol: Tolerance | None) -> str:
    allowed = 0.0 if tol is None else tol.violation
    rows = list(held(found.constraints, found.terms))
    if not rows:
        return "There are no constraints beside the domain."
    worst = sorted(rows, key=lambda row: -row.excess)[:LISTED]
    told = "; ".join(f"{row.name}: {row.words(allowed)}" for row in rows if row in worst)
    more = f" (and {len(rows) - len(worst)} rows that are violated less)" if len(rows) > len(worst) else ""
    beyond = f"Together they are violated by {_measure(found.violation)}."
    if found.violation.upper == 0:
        beyond = "None is violated."
    return (
        f"{told}{more}. {beyond} Complementarity, how far inequalities with a "
        f"multiplier lie from their bounds, is {size(found.complementarity.value)}."
    )


def _run(result: Result) -> str:
    sentences = [
        f"How it was found. {result.solver}, seed {result.seed}, took {counted(result.outer_iterations, 'outer iteration')} and "
        f"{result.work.total:,.0f} evaluations (gradients and twice the Hessian-vector products, per sample) in "
        f"{result.seconds.total:.1f} s; the certificate took {result.work.certificate:,.0f} more."
    ]
    if result.spread is not None:
        sentences.append(f"It is the {result.spread}; work and seconds are those of all.")
    if result.auxiliary:
        added = ", ".join(f"{name} {float(value):.4g}" for name, value in result.auxiliary.items())
        sentences.append(f"Scalars that statements added: {added}.")
    return " ".join(sentences)


def _limits(found: Certificate, result: Result | None) -> str:
    sentences = ["What is not promised. That no better point exists elsewhere: the claim is local."]
    if found.confidence is None:
        sentences.append("That it holds for unseen data: it is about the rows given.")
    sentences.append("That the functions are smooth away from the point.")
    if found.constraints and found.jacobian_singular < math.inf:
        sentences.append(
            f"That multipliers are unique: the smallest singular value of the Jacobian is {size(found.jacobian_singular)}."
        )
    warned = (*(result.warnings if result is not None else ()), *found.warnings)
    sentences += [f"Warning: {sentence}" for sentence in warned]
    return " ".join(sentences)


def _leaves(x: object) -> list:
    import jax

    return [leaf for leaf in jax.tree.leaves(x) if hasattr(leaf, "shape")]

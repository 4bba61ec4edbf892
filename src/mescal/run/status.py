"""Why a run ended: a closed list of sentences, each with advice, each saying whether it means convergence."""

from enum import Enum


class Status(Enum):
    """How a run ended. `converged` is true for one member alone: the point was certified."""

    CERTIFIED = (
        "Stationary, feasible and without negative curvature, to the tolerance.",
        "Nothing to do; look at the certificate's warnings.",
    )
    OUTER_LIMIT = (
        "Stopped at the cap on outer iterations without a certificate.",
        "Raise max_outer, or continue with mescal.minimize(..., start=result); look at which measure is still too large.",
    )
    WORK_LIMIT = (
        "Stopped at the work budget without a certificate.",
        "Raise max_work, or continue with mescal.minimize(..., start=result).",
    )
    TIME_LIMIT = (
        "Stopped at the time budget without a certificate.",
        "Raise max_seconds, or continue with mescal.minimize(..., start=result).",
    )
    INFEASIBLE = (
        "Locally infeasible: the constraints are violated and, to first order, cannot be violated less from here.",
        "Check that the constraints are consistent, loosen a bound, or start elsewhere.",
    )
    UNBOUNDED = (
        "Unbounded: from the returned point the objective falls without end along a feasible ray, `result.ray`.",
        "Bound x by a domain, or check the sign of the objective and the direction of the constraints.",
    )
    UNDECIDED = (
        "Stopped where everything is met but the curvature, of which the judge cannot tell whether it is negative.",
        "Look at the certificate's interval. It stays open where many rows touch without pushing, where a set is known by its "
        "projection alone, or within rounding: leave out rows that others imply, state the set by its rows, or start elsewhere.",
    )
    KINK = (
        "Stopped beside a kink, where gradients jump: no condition on gradients and Hessians says whether it is a minimum.",
        "State the problem smoothly: |u| as a variable t with -t <= u <= t, a maximum as one above all its parts, or softplus and "
        "sqrt(u^2 + e^2) for small e.",
    )
    NOT_FINITE = (
        "A function or a derivative was NaN or infinite; the last good point was kept.",
        "Check the functions near the returned x, bound x by a domain, or scale the problem.",
    )
    INTERRUPTED = (
        "Interrupted; the last good point was kept.",
        "Continue with mescal.minimize(..., start=result).",
    )
    STOPPED = (
        "Stopped by the callback.",
        "Continue with mescal.minimize(..., start=result).",
    )

    @property
    def word(self) -> str:
        """Its name in words."""
        return self.name.lower().replace("_", " ")

    @property
    def sentence(self) -> str:
        """What happened."""
        return self.value[0]

    @property
    def advice(self) -> str:
        """What to do about it."""
        return self.value[1]

    @property
    def converged(self) -> bool:
        """Whether the point is certified."""
        return self is Status.CERTIFIED

    @property
    def final(self) -> bool:
        """Whether a larger budget would change nothing."""
        return self in (Status.CERTIFIED, Status.INFEASIBLE, Status.UNBOUNDED, Status.UNDECIDED, Status.NOT_FINITE)

    def __str__(self) -> str:
        return self.sentence if self.converged else f"{self.sentence} {self.advice}"

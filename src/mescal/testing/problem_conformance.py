"""The conformance suite of named problems: it binds, starts in its domain, has derivatives, and knows itself.

```python
from mescal import testing
testing.check_problem(problems.get("recipes/robust-fit"))   # an AssertionError names the property that does not hold
```
"""

from collections.abc import Callable

from ..errors import InputError
from ..problems import NamedProblem
from .taylor import check_derivatives


def check_problem(named: NamedProblem) -> None:
    """Checks a named problem: see `PROBLEM_CHECKS` for what is checked, and for one check at a time.

    **Arguments:**

    - `named`: what `mescal.problems.get` returns, or `Entry.make`.

    **Raises:** `AssertionError`, which names the property that does not hold.
    """
    for check in PROBLEM_CHECKS.values():
        check(named)


def builds(named: NamedProblem) -> None:
    """It binds to its start, which is looked at by then: functions of the right shapes on numbers; the start lies in the domain."""
    try:
        named.problem.bind(named.x0)
    except InputError as error:
        raise AssertionError(f"{named.name}: it binds to its start: {error}") from error
    _require(named, bool(named.problem.domain.contains(named.x0)), f"x0 lies in the domain: {named.x0}")


def is_described(named: NamedProblem) -> None:
    """It says what it is; a solution that it knows has the start's shape, lies in the domain, and has an objective."""
    _require(named, bool(named.description.strip()), "it has a description")
    _require(
        named, named.cone in ("paper", "critical"), f"its cone is that of a certificate at minimisers: {named.cone!r}"
    )
    if named.solution is None:
        return
    fits = named.solution.shape == named.x0.shape
    _require(named, fits, f"the solution has the shape of x0: {named.solution.shape}, {named.x0.shape}")
    inside = bool(named.problem.domain.contains(named.solution.astype(named.x0.dtype)))
    _require(named, inside, f"the solution lies in the domain: {named.solution}")
    _require(named, named.optimum is not None, "a problem that knows its solution knows the optimum")


def has_derivatives(named: NamedProblem) -> None:
    """Objective and constraints are twice differentiable at the start, by Taylor's theorem (`check_derivatives`)."""
    check_derivatives(named.problem, named.x0)


PROBLEM_CHECKS: dict[str, Callable[[NamedProblem], None]] = {
    check.__name__: check for check in (builds, is_described, has_derivatives)
}


def _require(named: NamedProblem, holds: bool, statement: str) -> None:
    if not holds:
        raise AssertionError(f"{named.name}: {statement}")

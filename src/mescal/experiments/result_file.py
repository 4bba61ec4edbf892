"""result.json: what came out of a run, for people and machines, and back as a `Result`.

The file is the form of a `Result` (see `mescal.forms`) beside the form of an `About`, flat, and what follows from the two: sums of
work, the verdict. A file whose parts contradict each other is damaged.
"""

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jax
import numpy as np

from ..errors import InputError
from ..forms import NOT_FINITE, Unfit, difference, plain, typed
from ..run import History, Result
from ..version import __version__

PACKAGES = ("jax", "jaxlib", "equinox", "numpy", "scipy")


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that the numbers depend on."""
    found = {"python": platform.python_version(), "mescal": __version__}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def machine() -> dict[str, Any]:
    """The kind of machine: system, architecture, cores, and the device that JAX computes on; nothing that names it or its owner."""
    device = jax.devices()[0]
    return {
        "system": platform.system(),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "backend": device.platform,
        "device": device.device_kind,
    }


@dataclass(frozen=True)
class Part:
    """A constraint of a problem."""

    name: str
    kind: str
    rows: int


@dataclass(frozen=True)
class Size:
    """The size of a problem: parameters, rows of its largest population (None: a stream), constraints, domain."""

    dimension: int
    population: int | None
    constraints: tuple[Part, ...]
    domain: str


@dataclass(frozen=True)
class About:
    """What result.json says beside the result: what the problem was, and where and when it was solved."""

    problem: str
    parameters: dict[str, Any] = field(default_factory=dict)
    description: str = ""
    optimum: float | None = None
    options: dict[str, Any] = field(default_factory=dict)
    statement: Size | None = None
    versions: dict[str, Any] = field(default_factory=versions)
    machine: dict[str, Any] = field(default_factory=machine)
    finished: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    files: dict[str, str] = field(default_factory=dict)  # digests


def result_content(result: Result, about: About) -> dict[str, Any]:
    """Everything about a result but its point, its history, and the direction of its certificate."""
    came, told = plain(result), plain(about)
    words = came.get(NOT_FINITE, {}) | told.get(NOT_FINITE, {})
    follows = derived(result)
    content = {"problem": about.problem, **came, **told, "verdict": str(result.status), **follows}
    content["work"] = came["work"] | follows["work"]
    return content | ({NOT_FINITE: words} if words else {})


def derived(result: Result) -> dict[str, Any]:
    """What follows from the parts of a result: said for those who read the file."""
    work = result.work
    return {
        "converged": result.converged,
        "constraints": plain(result.certificate.constraints),
        "work": {name: float(getattr(work, name)) for name in ("gradients", "hvps", "total", "certificate")},
    }


def read_result(
    file: Path, content: Mapping[str, Any], x: np.ndarray, direction: np.ndarray | None, history: History
) -> tuple[Result, About]:
    """The result that a file's content holds, with what is stored apart, and what is said beside it."""
    try:
        result, about = typed(Result, content, x=x, history=history), typed(About, content)
        if not isinstance(content.get("verdict"), str):
            raise Unfit(f"its verdict is {content.get('verdict')!r}", "a text")
        again = result_content(result, about)
        if wrong := difference(content, again | {"verdict": content["verdict"]}):
            raise wrong
        sizes = {name: np.shape(rows) for name, rows in result.certificate.constraints.items()}
        if sizes != {name: np.shape(rows) for name, rows in result.multipliers.items()}:
            raise Unfit("its multipliers do not fit its constraints", "one for each")
        if result.converged and not result.certificate.passes(result.tolerance):
            lacks = "; ".join(result.missing)
            raise Unfit(
                f"its status is 'certified', and its certificate has {lacks}", "a certificate that bears it out"
            )
    except Unfit as error:
        raise damaged(file, error) from None
    return replace(result, certificate=replace(result.certificate, direction=direction)), about


def damaged(file: Path, error: Unfit) -> InputError:
    """The error for a file that does not hold what it should."""
    return InputError(
        f"{file} is damaged: {error.found}", error.expected, "restore it from a copy, or run it again with --force"
    )

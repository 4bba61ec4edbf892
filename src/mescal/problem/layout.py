"""How constraints lie in one flat vector: names, shapes, which rows are inequalities, and where their slacks are."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..errors import InputError
from .row_checks import real_array


@dataclass(frozen=True)
class Layout:
    """The rows of c(x): one block per named constraint, in the order in which they were given."""

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    kinds: tuple[str, ...]

    @cached_property
    def size(self) -> int:
        """m, the number of scalar constraints."""
        return sum(prod(shape) for shape in self.shapes)

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """The rows of each named constraint."""
        stops = np.cumsum([0, *(prod(shape) for shape in self.shapes)])
        return tuple(slice(int(a), int(b)) for a, b in pairwise(stops))

    @cached_property
    def inequality(self) -> np.ndarray:
        """bool (m,): the rows that are inequalities."""
        flags = [np.full(prod(shape), kind == "<=") for shape, kind in zip(self.shapes, self.kinds, strict=True)]
        rows = np.concatenate([np.zeros(0, bool), *flags])
        rows.flags.writeable = False
        return rows

    @cached_property
    def slack_size(self) -> int:
        """The number of slack variables: one per inequality row."""
        return int(self.inequality.sum())

    def by_name(self, rows: Any) -> dict[str, np.ndarray]:
        """A vector of m rows as a dict by constraint name, each in its own shape."""
        rows = np.asarray(rows)
        return {
            name: rows[rows_of].reshape(shape)
            for name, rows_of, shape in zip(self.names, self.slices, self.shapes, strict=True)
        }

    def rows(self, values: Any, what: str) -> np.ndarray:
        """The vector of m rows of a dict by constraint name (or of a flat array), checked."""
        if not isinstance(values, dict):
            flat = real_array(values, what).ravel()
            if flat.shape != (self.size,):
                raise InputError(
                    f"{what} has {flat.size} numbers",
                    f"{self.size}, one per constraint row, or a dict by constraint name",
                    f"pass {what}={{{', '.join(repr(n) + ': ...' for n in self.names)}}}",
                )
        else:
            unknown, missing = set(values) - set(self.names), set(self.names) - set(values)
            if unknown or missing:
                raise InputError(
                    f"{what} names {sorted(values)}",
                    f"the constraints {list(self.names)}",
                    "name every constraint of the problem once",
                )
            flat = np.zeros(self.size)
            for name, rows_of, shape in zip(self.names, self.slices, self.shapes, strict=True):
                given = real_array(values[name], f"{what}[{name!r}]")
                if given.size != prod(shape):
                    raise InputError(f"{what}[{name!r}] has shape {given.shape}", f"shape {shape}", "check its length")
                flat[rows_of] = given.ravel()
        if not np.isfinite(flat).all():
            raise InputError(f"{what} holds NaN or infinity", "finite numbers", "check where they come from")
        return flat

    def slack_rows(self, values: Any) -> np.ndarray:
        """Slacks given by the names of inequalities (or flat, one per inequality) as a vector of m rows, checked."""
        flags = self.inequality
        if isinstance(values, dict):
            named = {name for name, kind in zip(self.names, self.kinds, strict=True) if kind == "<="}
            if set(values) != named:
                raise InputError(
                    f"slack names {sorted(values)}", f"the inequalities {sorted(named)}", "name every inequality once"
                )
            zero = {name: np.zeros(shape) for name, shape in zip(self.names, self.shapes, strict=True)}
            rows = self.rows(zero | values, "slack")
        else:
            flat = real_array(values, "slack").ravel()
            if flat.shape != (self.slack_size,):
                raise InputError(
                    f"slack has {flat.size} numbers", f"{self.slack_size}, one per inequality", "or pass a dict by name"
                )
            rows = np.zeros(self.size)
            rows[flags] = flat
        if not np.isfinite(rows).all() or (rows < 0).any():
            raise InputError(
                f"slack holds {rows.min():.3g}", "finite numbers >= 0", "an inequality is c(x) + s = 0 with s >= 0"
            )
        return rows

    def spread_slack(self, slack: Any) -> Any:
        """Slacks (one per inequality) as a vector of m rows, zero on equalities; traceable."""
        if self.slack_size == self.size:
            return slack
        if self.slack_size == 0:
            return jnp.zeros(self.size, slack.dtype)
        flags = self.inequality
        position = np.where(flags, np.cumsum(flags) - 1, self.slack_size)
        return jnp.concatenate([slack, jnp.zeros(1, slack.dtype)])[position]

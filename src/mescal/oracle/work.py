"""What an estimate cost: samples looked at, and the five evaluation counts of Definition 1.3.

One theta is one draw from every source. A gradient on n thetas counts n, a Hessian-vector product n, a value a third
of a gradient; the total is gradients + 2 hvps. Beside these, five raw counters say how often the functions of the
problem were really evaluated, per sample and per constraint row: gradients of F, HVPs of F, values of C, gradients
of C, HVPs of C. Counters are pairs of 32-bit words, so they hold 2^64 on devices without 64-bit integers.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

FIELDS = (
    "value_samples",
    "gradient_samples",
    "hvp_samples",
    "objective_gradients",
    "objective_hvps",
    "constraint_values",
    "constraint_gradients",
    "constraint_hvps",
)


def price(program: Any, kind: str, n: Any, values: Any = 0, gradients: Any = 0, hvps: Any = 0) -> dict[str, Any]:
    """Counts of one call of a kind (value, gradient, hvp) on n thetas, or, where n is None, on all rows.

    C was evaluated, differentiated, ... that many times per sample; rows of c without samples cost nothing.
    """
    families, rows = program.families, program.fed
    of_objective = of_constraints = thetas = n
    if n is None:  # rows of the populations that feed each
        thetas = program.population
        of_objective = max((family.largest for family in families if family.feeds_objective), default=0)
        of_constraints = max((family.largest for family in families if family.fed[0]), default=0)
    sampled = any(family.feeds_objective for family in families)
    return {
        f"{kind}_samples": thetas,
        "objective_gradients": of_objective * int(sampled and kind == "gradient"),
        "objective_hvps": of_objective * int(sampled and kind == "hvp"),
        "constraint_values": of_constraints * rows * values,
        "constraint_gradients": of_constraints * rows * gradients,
        "constraint_hvps": of_constraints * rows * hvps,
    }


class Work(eqx.Module):
    """Traceable counters; add them with `+`, read them on the host with `tally()`."""

    low: jax.Array
    high: jax.Array

    @classmethod
    def zero(cls) -> "Work":
        """Nothing done yet."""
        return cls(jnp.zeros(len(FIELDS), jnp.uint32), jnp.zeros(len(FIELDS), jnp.uint32))

    @classmethod
    def of(cls, **counts: Any) -> "Work":
        """Work with the given counts, each a number of samples (times rows) below 2^32."""
        entries = [jnp.asarray(counts.pop(field, 0)).astype(jnp.uint32) for field in FIELDS]
        if counts:
            raise TypeError(f"unknown counters {sorted(counts)}")
        return cls(jnp.stack(entries), jnp.zeros(len(FIELDS), jnp.uint32))

    def __add__(self, other: "Work") -> "Work":
        low = self.low + other.low
        return Work(low, self.high + other.high + (low < self.low).astype(jnp.uint32))

    def times(self, count: int) -> "Work":
        """This work `count` times over, by doubling: few operations to compile, and carries stay right."""
        total, power = Work.zero(), self
        while count:
            total = total + power if count % 2 else total
            power, count = power + power, count // 2
        return total

    def tally(self) -> "Tally":
        """The counts as Python integers."""
        return Tally.of_words(np.asarray(self.low), np.asarray(self.high))


@jax.tree_util.register_pytree_node_class
class Tally:
    """Counts on the host: plain integers without a limit; as leaves, two words a counter."""

    __slots__ = ("_counts", "_words")

    def __init__(self, counts: dict[str, int] | None = None):
        self._counts: dict[str, int] | None = dict.fromkeys(FIELDS, 0) | (counts or {})
        self._words: tuple[Any, Any] | None = None

    @classmethod
    def of_words(cls, low: Any, high: Any) -> "Tally":
        """From the low and high words of the counters; they are read when they are asked for."""
        made = cls()
        made._counts, made._words = None, (low, high)
        return made

    @property
    def counts(self) -> dict[str, int]:
        """By counter."""
        if self._counts is None:
            assert self._words is not None
            low, high = self._words
            self._counts = {field: (int(h) << 32) + int(lo) for field, lo, h in zip(FIELDS, low, high, strict=True)}
        return self._counts

    def tree_flatten(self) -> tuple[tuple[Any, Any], None]:
        """Low and high words."""
        if self._words is not None:
            return self._words, None
        counts = [self.counts[field] for field in FIELDS]
        low, high = [count & 0xFFFFFFFF for count in counts], [count >> 32 for count in counts]
        return (np.asarray(low, np.uint32), np.asarray(high, np.uint32)), None

    @classmethod
    def tree_unflatten(cls, _: None, words: tuple[Any, Any]) -> "Tally":
        """Back."""
        return cls.of_words(*words)

    def tally(self) -> "Tally":
        """Itself: what was counted on the device has to be brought here first."""
        return self

    def __add__(self, other: "Tally") -> "Tally":
        own, more = self.counts, other.counts
        return Tally({field: own[field] + more[field] for field in FIELDS})

    def __sub__(self, other: "Tally") -> "Tally":
        own, less = self.counts, other.counts
        return Tally({field: own[field] - less[field] for field in FIELDS})

    def times(self, count: int) -> "Tally":
        """This, `count` times over."""
        return Tally({field: count * self.counts[field] for field in FIELDS})

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Tally) and self.counts == other.counts

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __getattr__(self, name: str) -> int:
        if name in FIELDS:
            return self.counts[name]
        raise AttributeError(name)

    @property
    def gradients(self) -> float:
        """Gradient evaluations in thetas; a value counts a third."""
        return self.counts["gradient_samples"] + self.counts["value_samples"] / 3

    @property
    def hvps(self) -> int:
        """Hessian-vector products in thetas."""
        return self.counts["hvp_samples"]

    @property
    def total(self) -> float:
        """gradients + 2 hvps: the paper's total work."""
        return self.gradients + 2 * self.hvps

    def __repr__(self) -> str:
        return f"Tally(gradients={self.gradients:g}, hvps={self.hvps:g}, total={self.total:g})"

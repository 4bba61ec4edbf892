"""Unbiased estimates of the augmented Lagrangian from one batch: who is multiplied with whom.

All surrogates share one form. With `partner_i` an estimate of c(x) that is independent of sample i,

    value     mean_i  F_i + C_i . (lam + al/2 partner_i)
    gradient  mean_i  dF_i + J_i' (lam + al partner_i)

and the HVP is the derivative of the gradient. They differ in the partner:

| name    | partner_i                                   | equations                       | zeta draws per theta |
|---------|---------------------------------------------|---------------------------------|----------------------|
| `pair`  | C(x, zeta2_i)                               | the paper's (3.1)-(3.2)         | 2                    |
| `cross` | mean_j C(x, zeta2_j)                        | the paper's (5.1)-(5.3)         | 2                    |
| `ustat` | mean over j != i of C(x, zeta_j) (U-statistic) | one batch, symmetric Hessian | 1                    |

Taking the mean over the whole batch, i included, as the partner is what penalty methods on mini-batches do; it is biased
by al Cov(J', C) / n.
"""

import abc
from functools import cache
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.lax import stop_gradient

from ..registry import by_name, classes, unknown_name


class Surrogate(eqx.Module):
    """How the product c(x) . c(x) is estimated from samples. Abstract; settings only, no state."""

    name: ClassVar[str]
    draws: ClassVar[int]  # draws of zeta per theta
    totalled: ClassVar[int | None]  # which draw's total over the batch the partner needs, if any
    smallest_batch: ClassVar[int]
    symmetrised: ClassVar[bool] = False  # whether half of the HVP's Gram term is pulled back through the second draw
    symmetric: ClassVar[bool] = True  # whether the Hessian of a batch is

    @abc.abstractmethod
    def partner(self, first: jax.Array, second: Any, total: Any, count: jax.Array) -> jax.Array:
        """The partner of each sample, shape (n, m) or broadcastable to it."""


class Pair(Surrogate):
    """The paper's single-sample products, averaged: (3.1)-(3.2). The Hessian estimate is not symmetric."""

    name: ClassVar[str] = "pair"
    draws: ClassVar[int] = 2
    totalled: ClassVar[int | None] = None
    smallest_batch: ClassVar[int] = 1
    symmetric: ClassVar[bool] = False

    def partner(self, first, second, total, count):
        return second


class Cross(Surrogate):
    """The paper's product of means (5.1), Hessian with the Gram term symmetrised as in (5.3)."""

    name: ClassVar[str] = "cross"
    draws: ClassVar[int] = 2
    totalled: ClassVar[int | None] = 1
    smallest_batch: ClassVar[int] = 1
    symmetrised: ClassVar[bool] = True

    def partner(self, first, second, total, count):
        mean = total / count
        return (mean + stop_gradient(mean)) / 2  # the value of the mean with half its derivative: (5.3)


class UStat(Surrogate):
    """The U-statistic: every sample is multiplied with the mean of the others; unbiased in value, too."""

    name: ClassVar[str] = "ustat"
    draws: ClassVar[int] = 1
    totalled: ClassVar[int | None] = 0
    smallest_batch: ClassVar[int] = 2

    def partner(self, first, second, total, count):
        return (total - first) / (count - 1)


@cache
def surrogates() -> dict[str, Surrogate]:
    """The surrogates in the files of this folder, by name."""
    return {name: rule() for name, rule in by_name(classes(__package__ or "", Surrogate)).items()}


def surrogate(name: "str | Surrogate") -> Surrogate:
    """The surrogate of that name; an object is passed through, so that users can bring their own."""
    if isinstance(name, Surrogate):
        return name
    known = surrogates()
    if name not in known:
        raise unknown_name("surrogate", name, known, "use 'ustat' unless you want to follow the paper to the letter")
    return known[name]


def shares(
    rule: Surrogate,
    objective: jax.Array,
    first: jax.Array,
    second: jax.Array | None,
    total: jax.Array | None,
    multipliers: jax.Array,
    penalty: jax.Array,
    count: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """Of some samples of a batch of `count`: their shares of the value, and the cotangent rows of C for the gradient."""
    partner = jnp.broadcast_to(rule.partner(first, second, total, count), first.shape)
    value = (objective + first @ multipliers + (penalty / 2) * jnp.sum(first * partner, axis=-1)) / count
    return value, (multipliers + penalty * partner) / count

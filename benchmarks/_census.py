"""A population like that of a census, drawn: 32,000 people in ten groups from 30 to 20,000, and who earns much.

People have a sex and one of five origins. Group decides, with noise, on schooling, trade, hours and marriage; those, with a
direct effect of the group, decide on the label, which about a quarter have, from 5 per cent in some groups to 35 in others.
Columns are as an encoder leaves them: numbers with heavy tails beside indicators that are nearly collinear, some of which
are rare. The group itself is no column, and most columns tell something of it.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import expit

SEXES = ("woman", "man")
SIZES = {  # people by origin: women, men
    "v": (8900, 20000),
    "w": (1100, 1000),
    "x": (330, 320),
    "y": (120, 100),
    "z": (30, 100),
}
TRADES, SCHOOLS, STATES = 14, 9, 6


class Census(NamedTuple):
    """Columns, labels 0 and 1, and of every row the sex and the origin."""

    features: np.ndarray
    labels: np.ndarray
    sex: np.ndarray
    origin: np.ndarray

    @property
    def groups(self) -> np.ndarray:
        """Sex and origin in one."""
        return np.asarray([f"{sex} {origin}" for sex, origin in zip(self.sex, self.origin, strict=True)], dtype=object)


def census(seed: int = 0, share: float = 1.0) -> Census:
    """The population in random order; `share` of every group, at least 30 people of each."""
    rng = np.random.default_rng(seed)
    counts = {
        (sex, origin): max(30, round(share * sizes[k]))
        for origin, sizes in SIZES.items()
        for k, sex in enumerate(SEXES)
    }
    man, rank = (np.concatenate([np.full(n, value(*who)) for who, n in counts.items()]) for value in (_is_man, _rank))
    n = len(man)
    age = 17 + 73 * rng.beta(1.6, 3.2, n)
    schooling = np.clip(10 + 1.2 * (rank < 1) - 0.7 * (rank > 1) + 2.5 * rng.normal(size=n), 1, 16)
    married = (rng.random(n) < expit(0.08 * (age - 35) + 1.3 * man - 1.2)).astype(float)
    hours = np.clip(36 + 6 * man + 3 * married * man + 11 * rng.normal(size=n), 2, 99)
    gains = np.where(rng.random(n) < 0.06 + 0.02 * man, rng.lognormal(8, 1.3, n), 0.0)
    trade = _choose(rng, TRADES, schooling, man, rank)
    state = np.where(married > 0, 0, 1 + rng.integers(STATES - 1, size=n))
    pay = rng.permutation(np.linspace(-1, 1, TRADES))[trade]
    logit = -5.6 + 0.30 * schooling + 2.1 * married + 0.03 * (hours - 40) + 0.5 * man - 0.45 * rank + 0.8 * pay
    logit += 0.06 * (age - 38) - 0.0018 * (age - 38) ** 2 + 0.35 * np.log1p(gains) * (gains > 0)
    labels = (rng.random(n) < expit(logit - 0.9)).astype(int)
    school = np.minimum(SCHOOLS - 1, (schooling / 16 * SCHOOLS).astype(int))
    columns = [age, (age - 38) ** 2, schooling, hours, gains, np.log1p(gains), schooling + 0.1 * rng.normal(size=n)]
    columns += [*np.eye(TRADES)[trade].T, *np.eye(SCHOOLS)[school].T, *np.eye(STATES)[state].T]
    columns += [man * married + 0.3 * rng.normal(size=n), rank + rng.normal(size=n)]
    order = rng.permutation(n)
    sex, origin = (np.concatenate([np.full(m, who[k], object) for who, m in counts.items()]) for k in (0, 1))
    return Census(np.stack(columns, axis=1)[order], labels[order], sex[order], origin[order])


def _is_man(sex: str, origin: str) -> float:
    return float(sex == "man")


def _rank(sex: str, origin: str) -> float:
    return float(list(SIZES).index(origin))


def _choose(
    rng: np.random.Generator, kinds: int, schooling: np.ndarray, man: np.ndarray, rank: np.ndarray
) -> np.ndarray:
    """One of several trades, by schooling, sex and origin: the largest of as many noisy leanings."""
    slopes = rng.normal(size=(3, kinds))
    told = np.stack([(schooling - 10) / 3, 2 * man - 1, rank / 2], axis=1)
    leanings = told @ slopes + np.linspace(1.5, -1.5, kinds) + rng.gumbel(size=(len(man), kinds))
    return leanings.argmax(axis=1)

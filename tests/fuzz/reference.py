"""The slow reference of the fuzz: measures of a point in 80 bits, from closed forms; no code of the package, no LAPACK.

Cones are given by equalities and one-sided rows, and searched by enumeration: a minimiser of d'Md over the unit vectors of a cone
lies inside one of its faces and is a smallest eigenvector on the span of that face (Kaplan); a projection onto it is one onto
the span of a face. Eigenvalues are Jacobi's.
"""

import itertools

import numpy as np

LONG = np.longdouble
RANK = LONG(
    1e-15
)  # singular directions of unit rows below it are rounding of 80-bit numbers: those of float64 are far above


def softplus(u):
    """log(1 + e^u) and two derivatives."""
    s = 1 / (1 + np.exp(-u))
    return np.maximum(u, 0) + np.log1p(np.exp(-np.abs(u))), s, s * (1 - s)


def logarithm(u):
    """log(1 + u^2) and two derivatives."""
    v = 1 + u * u
    return np.log1p(u * u), 2 * u / v, 2 * (1 - u * u) / v**2


def hyperbolic(u):
    """tanh u and two derivatives."""
    t = np.tanh(u)
    return t, 1 - t * t, -2 * t * (1 - t * t)


# Value, slope and bend of every function of one number that the grammar knows.
CLOSED = {
    "linear": lambda u: (u, np.ones_like(u), np.zeros_like(u)),
    "square": lambda u: (u * u / 2, u, np.ones_like(u)),
    "cube": lambda u: (u**3 / 6, u * u / 2, u),
    "fourth": lambda u: (u**4 / 24, u**3 / 6, u * u / 2),
    "sine": lambda u: (np.sin(u), np.cos(u), -np.sin(u)),
    "exponential": lambda u: (np.exp(u / 3), np.exp(u / 3) / 3, np.exp(u / 3) / 9),
    "logarithm": logarithm,
    "tanh": hyperbolic,
    "softplus": softplus,
}


def looked(terms, rows, weights, x):
    """Value, gradient and Hessian of sum_i p_i sum_k w_ik phi_k(b_ik + a_ik . x), rows (n, k, 2 + d) with columns w, b, a."""
    r, x, p = rows.astype(LONG), x.astype(LONG), weights.astype(LONG)
    u = r[:, :, 2:] @ x + r[:, :, 1]
    value, slope, bend = (np.zeros_like(u) for _ in range(3))
    for k, name in enumerate(terms):
        value[:, k], slope[:, k], bend[:, k] = CLOSED[name](u[:, k])
    w = r[:, :, 0] * p[:, None]
    a = r[:, :, 2:]
    return (
        (w * value).sum(),
        np.einsum("nk,nki->i", w * slope, a),
        np.einsum("nk,nki,nkj->ij", w * bend, a, a),
    )


def summed(terms, rows, weights, x):
    """The sum of the lengths of which the gradient of `looked` is a sum."""
    r, x, p = rows.astype(LONG), x.astype(LONG), weights.astype(LONG)
    u = r[:, :, 2:] @ x + r[:, :, 1]
    slope = np.stack([CLOSED[name](u[:, k])[1] for k, name in enumerate(terms)], axis=1)
    return (np.abs(r[:, :, 0] * p[:, None] * slope) * np.sqrt((r[:, :, 2:] ** 2).sum(2))).sum()


def eigen(matrix):
    """Eigenvalues in ascending order and eigenvectors of a symmetric matrix, by Jacobi's rotations."""
    a, n = np.array(matrix, LONG), len(matrix)
    v = np.eye(n, dtype=LONG)
    for _ in range(60):
        off = np.abs(np.triu(a, 1)).max(initial=LONG(0))
        if off <= LONG(1e-19) * np.abs(a).max(initial=LONG(0)):
            break
        for i, j in itertools.combinations(range(n), 2):
            if a[i, j] == 0:
                continue
            theta = (a[j, j] - a[i, i]) / (2 * a[i, j])
            t = (1 if theta >= 0 else -1) / (abs(theta) + np.sqrt(theta**2 + 1))
            c = 1 / np.sqrt(t * t + 1)
            turn = np.eye(n, dtype=LONG)
            turn[i, i] = turn[j, j] = c
            turn[i, j], turn[j, i] = t * c, -t * c
            a, v = turn.T @ a @ turn, v @ turn
    order = np.argsort(np.diag(a))
    return np.diag(a)[order], v[:, order]


def null_space(rows):
    """Orthonormal columns that all rows annihilate: the rest of the unit vectors after the rows, by Gram and Schmidt, twice."""
    n = rows.shape[1]
    basis: list[np.ndarray] = []
    lengths = [np.sqrt(row @ row) for row in rows]
    units = [row / length for row, length in zip(rows, lengths, strict=True) if length > 0]
    for count, vector in enumerate([*units, *np.eye(n, dtype=LONG)]):
        rest = vector.copy()
        for _ in range(3):
            for b in basis:
                rest = rest - (b @ rest) * b
        length = np.sqrt(rest @ rest)
        if length > (RANK if count < len(units) else LONG(1e-6)):
            basis.append(rest / length)
        if count < len(units):
            rank = len(basis)
    rank = 0 if not units else rank
    return np.array(basis[rank:], LONG).reshape(-1, n).T


def faces(rows, multipliers, always, strong, sides):
    """Which of the active rows J_j d <= 0 hold, as masks, where lam_j J_j push: all that do, but for each largest set that leaves
    no more than `strong` as a slope where the others hold; and the same, from each of these, with one force for another, nearly
    parallel to it beside the rest. Of the first `sides` rows, those of the set, one goes only if less than half of it is left.
    """
    lengths = np.sqrt((rows**2).sum(1))
    start = lengths * multipliers > strong
    push = (rows * multipliers[:, None])[start].sum(0)

    def beyond(held, vector):
        return null_space(np.concatenate([always, rows[held]])).T @ vector

    def slope(held):
        return np.sqrt(beyond(held, push) @ beyond(held, push))

    def wrong(held):
        """How far the push is from any that these make up with the right signs, for one of them."""
        most = LONG(0)
        for j in np.flatnonzero(held).tolist():
            own = beyond(without(held, [j]), rows[j])
            size = np.sqrt(own @ own)
            if size > RANK:
                most = max(most, -(own @ beyond(without(held, [j]), push)) / size)
        return most

    found, todo, seen = [], [start], {start.tobytes()}
    while todo:
        all_held = todo.pop(0)
        for held in _let_go(rows, lengths, all_held, slope, beyond, strong, sides):
            found.append(held)
            if not (held == all_held).all() and np.hypot(slope(held), wrong(held)) > strong:
                continue
            for old, new in itertools.product(np.flatnonzero(held).tolist(), np.flatnonzero(~all_held).tolist()):
                rest = without(held, [old])
                one, other = beyond(rest, rows[old]), beyond(rest, rows[new])
                if lengths[new] == 0 or np.sqrt(one @ one) <= RANK or min(one @ beyond(rest, push), one @ other) <= 0:
                    continue
                apart = other - one * ((one @ other) / (one @ one))
                turned = np.sqrt((apart @ apart) / (other @ other))
                swapped = rest | (np.arange(len(rest)) == new)
                if LONG(1e-5) * lengths[new] < np.sqrt(apart @ apart) and turned < 0.5 and slope(swapped) <= strong:
                    if swapped.tobytes() not in seen and np.hypot(slope(swapped), wrong(swapped)) <= strong:
                        todo.append(swapped)
                    seen.add(swapped.tobytes())
    return found


def without(held, gone):
    """A mask without some of its entries."""
    return held & ~np.isin(np.arange(len(held)), gone)


def _let_go(rows, lengths, held, slope, beyond, strong, sides):
    may = []
    for j in np.flatnonzero(held).tolist():
        own = beyond(without(held, [j]), rows[j])
        if slope(without(held, [j])) <= strong and (j >= sides or np.sqrt(own @ own) < lengths[j] / 2):
            may.append(j)
    largest: list[tuple[int, ...]] = []
    for gone in sorted(subsets(len(may)), key=len, reverse=True):
        chosen = tuple(may[k] for k in gone)
        covered = any(set(chosen) <= set(larger) for larger in largest)
        if not covered and (not chosen or slope(without(held, list(chosen))) <= strong):
            largest.append(chosen)
    return [without(held, list(gone)) for gone in largest]


def subsets(count):
    """All of them."""
    return itertools.chain.from_iterable(itertools.combinations(range(count), k) for k in range(count + 1))


def project(equalities, rows, v):
    """The point of {d : equalities d = 0, rows d <= 0} that is next to v."""
    best, distance = np.zeros_like(v), np.sqrt(v @ v)
    for chosen in subsets(len(rows)):
        basis = null_space(np.concatenate([equalities, rows[list(chosen)]]))
        d = basis @ (basis.T @ v)
        if (rows @ d <= LONG(1e-17) * np.sqrt(v @ v)).all() and np.sqrt((v - d) @ (v - d)) < distance:
            best, distance = d, np.sqrt((v - d) @ (v - d))
    return best


def smallest(matrix, equalities, rows):
    """min d'Md over |d| = 1 in {d : equalities d = 0, rows d <= 0}; +inf on {0}."""
    best, rng = LONG(np.inf), np.random.default_rng(0)
    lengths = np.sqrt((rows**2).sum(1))
    rows = rows[lengths > 0] / lengths[lengths > 0, None]
    for chosen in subsets(len(rows)):
        basis = null_space(np.concatenate([equalities, rows[list(chosen)]]))
        if basis.shape[1] == 0:
            continue
        values, vectors = eigen(basis.T @ matrix @ basis)
        close = values <= values[0] + LONG(1e-14) * np.abs(values).max()
        space = basis @ vectors[:, close]
        trials = (
            space if space.shape[1] == 1 else np.concatenate([space, space @ rng.normal(size=(space.shape[1], 400))], 1)
        )
        for d in (trials / np.sqrt((trials**2).sum(0))).T:
            if (rows @ d <= LONG(1e-15)).all() or (rows @ -d <= LONG(1e-15)).all():
                best = min(best, values[0])
                break
    return best

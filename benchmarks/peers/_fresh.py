"""What somebody without mescal would write for one problem: JAX gradients, scipy's solver. Run as a script of its own.

`python _fresh.py {slsqp,al-lbfgsb} PROBLEM ROWS.npz TOL` prints the answer as JSON. It imports neither mescal nor the other
benchmarks, so that the seconds of its process are its own. Rows come from a file of arrays; a stream is the average over the
draws in that file. As in `slsqp.py` and `al_lbfgsb.py`: float64, one compiled program, the same stopping tests.
"""

import json
import sys

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize

VERIFY, READY, GROWTH, OUTER, INNER = 0.9, 0.95, 1.1, 200, 3000


def neyman_pearson(x, rows):
    """f and c of the problem, c <= 0."""
    misses, alarms = jax.nn.sigmoid(-(rows["positives"] @ x)), jax.nn.sigmoid(rows["negatives"] @ x)
    return jnp.mean(misses), jnp.mean(alarms) - rows["tau"]


def fairness(x, rows):
    """f and c of the problem, c <= 0."""
    loss = jax.nn.softplus(-rows["labels"] * (rows["labelled"] @ x))
    everyone, group = (jnp.mean(jax.nn.sigmoid(rows[part] @ x)) for part in ("population", "target"))
    return jnp.mean(rows["rho"] * jnp.log1p(loss / rows["rho"])), rows["tau"] * everyone - group


def hock_schittkowski(x, rows):
    """f and c of problem 7 with noise, c = 0."""
    objective = jnp.log1p(x[0] ** 2) - x[1] + rows["xi"] @ x
    constraint = (1 + x[0] ** 2) ** 2 + x[1] ** 2 - 4 + rows["zeta"] + rows["z"] @ x
    return jnp.mean(objective), jnp.mean(constraint)


PROBLEMS = {  # by the first part of the name; and whether c <= 0
    "neyman-pearson": (neyman_pearson, True),
    "fairness": (fairness, True),
    "hock-schittkowski": (hock_schittkowski, False),
}


def slsqp(functions, inequality, rows, x0, tol):
    """scipy's SLSQP; f and c with their gradients in one program, computed once per point."""

    @jax.jit
    def first(x, rows):
        (f, c), pull = jax.vjp(lambda y: functions(y, rows), x)
        return f, pull((1.0, 0.0))[0], c, pull((0.0, 1.0))[0]

    last = {}

    def at(x):
        if "x" not in last or not np.array_equal(last["x"], x):
            last.update(x=np.array(x), found=[np.asarray(part) for part in first(x, rows)])
        return last["found"]

    sign = -1.0 if inequality else 1.0
    found = scipy.optimize.minimize(
        lambda x: (float(at(x)[0]), at(x)[1]),
        x0,
        jac=True,
        method="SLSQP",
        constraints={
            "type": "ineq" if inequality else "eq",
            "fun": lambda x: sign * at(x)[2],
            "jac": lambda x: sign * at(x)[3],
        },
        options={"ftol": min(1e-6, tol**2), "maxiter": 10_000},
    )
    return found.x, bool(found.success)


def al_lbfgsb(functions, inequality, rows, x0, tol):
    """The augmented Lagrangian around scipy's L-BFGS-B; the slack of an inequality eliminated in closed form."""

    def lagrangian(x, rows, multiplier, penalty):
        f, c = functions(x, rows)
        slackened = jnp.maximum(c, -multiplier / penalty) if inequality else c
        return f + multiplier * slackened + penalty / 2 * slackened**2, slackened

    program = jax.jit(jax.value_and_grad(lagrangian, has_aux=True))
    x, multiplier = x0, 0.0
    for k in range(OUTER):
        penalty, seen = GROWTH ** (k + 1), {}

        def full(x, multiplier=multiplier, penalty=penalty, seen=seen):
            (value, violation), gradient = program(x, rows, multiplier, penalty)
            seen.update(x=np.array(x), gradient=np.asarray(gradient), violation=float(violation))
            return float(value), seen["gradient"]

        def small(xk, seen=seen):
            if np.array_equal(xk, seen["x"]) and np.linalg.norm(seen["gradient"]) <= VERIFY * tol:
                raise StopIteration

        options = {"maxiter": INNER, "ftol": 0.0, "gtol": VERIFY * tol / np.sqrt(x.size)}
        x = scipy.optimize.minimize(full, x, jac=True, method="L-BFGS-B", callback=small, options=options).x
        full(x)
        multiplier += penalty * seen["violation"]
        if abs(seen["violation"]) <= READY * tol and np.linalg.norm(seen["gradient"]) <= tol:
            return x, True
    return x, False


if __name__ == "__main__":
    method, name, path, tolerance = sys.argv[1:]
    jax.config.update("jax_enable_x64", True)
    with np.load(path) as file:
        data = {key: np.asarray(file[key], np.float64) for key in file}
    start = data.pop("x0")
    on_device = {key: jnp.asarray(value) for key, value in data.items()}
    solve = {"slsqp": slsqp, "al-lbfgsb": al_lbfgsb}[method]
    answer, success = solve(*PROBLEMS[name.partition("/")[0]], on_device, start, float(tolerance))
    print(json.dumps({"x": [float(entry) for entry in answer], "success": success}))

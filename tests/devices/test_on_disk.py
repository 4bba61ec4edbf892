"""Rows on disk: estimates, work and certificates bit for bit those of the same rows in memory."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E
from mescal.problem import stored
from tests.devices.problems import measures, problem

X = np.full(5, 0.3, np.float32)
Z = jnp.asarray([*X, 0.1], jnp.float32)
V = jnp.arange(6, dtype=jnp.float32) / 6
CALLS = {
    "gradient": lambda oracle, key: oracle.gradient(Z, key, jnp.int32(1300)),
    "hvp": lambda oracle, key: oracle.hvp(Z, V, key, jnp.int32(1300)),
    "difference": lambda oracle, key: oracle.difference(Z, 0.9 * Z, key, 100),
    "exact": lambda oracle, key: oracle.exact(Z),
    "exact hvp": lambda oracle, key: oracle.exact_hvp(Z, V, oracle.exact(Z)[0]),
}


def store(folder):
    """What `problem` is given to hold its rows: files, one per array."""
    names = iter("abcdefgh")

    def hold(arrays):
        def write(leaf):
            path = folder / f"{next(names)}.npy"
            np.save(path, leaf)
            return path

        return mescal.on_disk(jax.tree.map(write, arrays))

    return hold


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    return problem(lambda arrays: arrays), problem(store(folder))


def test_estimates_are_bit_for_bit_those_of_rows_in_memory(both, make_lagrangian, key):
    plain, on_disk = (make_lagrangian(p, X, [0.4], 3.0) for p in both)
    for name, call in CALLS.items():
        (a, work), (b, same) = jax.jit(call)(plain, key), jax.jit(call)(on_disk, key)
        for one, other in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
            if name == "exact" and jax.default_backend() == "gpu":  # rows in memory go through a kernel there
                np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
            else:
                assert np.array_equal(one, other), name
        assert work.tally() == same.tally()


def test_exact_passes_read_blocks_of_one_size(both, make_lagrangian, monkeypatch):
    """Blocks of 97 rows do not divide 1501: the last one is moved back, and rows already counted are not counted again."""
    plain, on_disk = (make_lagrangian(p, X, [0.4], 3.0) for p in both)
    whole = jax.jit(lambda oracle: oracle.exact(Z)[0])(plain)
    monkeypatch.setattr(stored.StoredRows, "block_rows", lambda self, size: 97)
    found = jax.jit(lambda oracle: oracle.exact(Z)[0].gradient)(on_disk)
    assert np.asarray(found) == pytest.approx(np.asarray(whole.gradient), rel=1e-5)


def test_the_judge_says_the_same(both):
    plain, on_disk = both
    # weights are brought to mean 1 before they are stored, or after they are read: a unit in the last place
    assert measures(mescal.certify(on_disk, X)) == pytest.approx(measures(mescal.certify(plain, X)), rel=1e-14)


def test_columns_of_64_bits_are_judged_as_they_are(tmp_path):
    """Callbacks run in threads of their own, where 64-bit types are not let in: nothing may be rounded on the way."""
    rng = np.random.default_rng(5)
    table = {"a": 1 + 1e-12 * rng.normal(size=(3000, 2)), "i": 2**30 + rng.integers(9, size=3000)}
    weights = rng.uniform(0.5, 2.0, 3000)

    def fn(x, row):
        return jnp.sum(row["a"] * x) - 2 + 1e-3 * (row["i"] - 2**30)

    problems = [
        mescal.Problem(E(fn, over=over, weights=weights) + 0.0 * E(lambda x: x @ x))
        for over in (table, store(tmp_path)(table))
    ]
    found = [mescal.certify(stated, np.ones(2)).objective.value for stated in problems]
    exact = np.average(np.sum(table["a"] - 1, axis=1) + 1e-3 * (table["i"] - 2**30), weights=weights)
    assert found == pytest.approx([exact, exact], rel=1e-9) and found[0] == pytest.approx(found[1], rel=1e-14)


def test_weights_in_memory_are_copied(tmp_path):
    """What is written into them later is not seen; two expectations with the same ones still have one source."""
    rng = np.random.default_rng(6)
    rows, weights = rng.normal(size=(40, 2)), rng.uniform(0.5, 2.0, 40)
    value, over = np.average(rows @ np.ones(2), weights=weights), store(tmp_path)(rows)
    first, second = (E(lambda x, a, k=k: a[k] * x[k], over=over, weights=weights) for k in range(2))
    problem = mescal.Problem(first + second)
    assert len(problem.sources) == 1
    weights[:20] = 0
    assert mescal.certify(problem, np.ones(2)).objective.value == pytest.approx(value, rel=1e-12)


def test_the_judge_takes_rows_on_disk_as_a_sample(both):
    found, expected = (mescal.certify(p, X, as_sample=True, seed=2) for p in (both[1], both[0]))
    assert measures(found) == pytest.approx(measures(expected), rel=1e-12)
    assert found.stationarity.upper == pytest.approx(expected.stationarity.upper, rel=1e-9)


def test_one_compiled_program_serves_files_of_one_shape(tmp_path, make_lagrangian, key):
    """Data are arguments: a second population with the same functions compiles nothing, and is read from its own file."""
    rng = np.random.default_rng(1)
    means = []

    def loss(w, a):
        means.append(1)
        return jnp.sum((a - w) ** 2)

    problems = []
    for name in ("one", "two"):
        np.save(tmp_path / f"{name}.npy", rng.normal(size=(400, 3)).astype(np.float32))
        problems.append(mescal.Problem(E(loss, over=mescal.on_disk(tmp_path / f"{name}.npy"))))
    gradient = jax.jit(lambda oracle: oracle.gradient(jnp.zeros(3), key, 64)[0])
    first = gradient(make_lagrangian(problems[0], np.zeros(3), [], 1.0))
    traced = len(means)
    second_oracle = make_lagrangian(problems[1], np.zeros(3), [], 1.0)
    bound = len(means)
    second = gradient(second_oracle)
    assert traced and len(means) == bound
    assert not np.array_equal(first, second)


def test_views_of_memory_maps_are_read_where_they_lie(tmp_path):
    data = np.arange(60, dtype=np.float32).reshape(20, 3)
    data.tofile(tmp_path / "raw")
    mapped = np.memmap(tmp_path / "raw", np.float32, "r", offset=12, shape=(19, 3))
    rows = mescal.on_disk(mapped[4:])
    assert rows.size == 15
    assert np.array_equal(rows.block(2, 3).samples, data[7:10])
    assert np.array_equal(rows.at(np.asarray([14, 0])).samples, data[[19, 5]])


def test_weights_may_lie_on_disk_too(tmp_path):
    rng = np.random.default_rng(5)
    a, w = rng.normal(size=(50, 2)), rng.uniform(size=50)
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "w.npy", w)
    rows = mescal.on_disk(tmp_path / "a.npy")
    weights = np.load(tmp_path / "w.npy", mmap_mode="r")
    quadratic = lambda x, r: jnp.sum((r - x) ** 2)
    found = mescal.certify(mescal.Problem(E(quadratic, over=rows, weights=weights)), np.zeros(2))
    expected = mescal.certify(mescal.Problem(E(quadratic, over=a, weights=w)), np.zeros(2))
    assert found.objective.value == pytest.approx(expected.objective.value, rel=1e-12)


def file_of(tmp_path, array) -> str:
    np.save(tmp_path / "bad.npy", array)
    return str(tmp_path / "bad.npy")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda p: mescal.on_disk(np.zeros((3, 2))), "numpy.memmap"),
        (lambda p: mescal.on_disk(p / "missing.npy"), "cannot be read"),
        (lambda p: mescal.on_disk(p), "holds no .npy file"),
        (lambda p: mescal.on_disk(file_of(p, np.zeros((0, 2)))), "empty"),
        (lambda p: mescal.on_disk(file_of(p, np.asarray(["a", "b"]))), "entries of type"),
        (lambda p: mescal.on_disk(np.load(file_of(p, np.zeros((4, 2))), mmap_mode="r")[:, :1]), "one after the other"),
        (
            lambda p: mescal.Problem(
                E(lambda x, r: jnp.sum(r * x), over=mescal.on_disk(file_of(p, np.asarray([[1.0], [np.nan]]))))
            ),
            "NaN or infinity, first in row 1",
        ),
        (
            lambda p: E(lambda x, r: r, over=mescal.on_disk(file_of(p, np.zeros((4, 2)))), weights=np.zeros(4)),
            "sum to 0",
        ),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path, make, words):
    with pytest.raises(mescal.InputError, match=words):
        make(tmp_path)


def test_a_file_that_is_cut_short_is_an_error_not_a_crash(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((1000, 8)))
    rows = mescal.on_disk(tmp_path / "a.npy")
    with open(tmp_path / "a.npy", "r+b") as file:
        file.truncate(4000)
    with pytest.raises(OSError, match="cut short"):
        rows.block(900, 10)


def test_sharded_rows_and_rows_on_disk_do_not_mix(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((10, 2)))
    mesh = jax.make_mesh((1,), ("rows",))
    total = lambda x, r: jnp.sum(r * x)
    sharded, on_disk = mescal.shard(np.zeros((10, 2)), mesh), mescal.on_disk(tmp_path / "a.npy")
    with pytest.raises(mescal.InputError, match="on disk"):
        mescal.Problem(E(total, over=sharded) + E(total, over=on_disk))


@pytest.mark.slow
def test_a_solve_takes_the_same_way(both):
    plain, on_disk = (mescal.minimize(p, np.zeros(5, np.float32), tol=1e-3, seed=1) for p in both)
    assert on_disk.converged
    assert np.array_equal(on_disk.x, plain.x)
    assert on_disk.work.total == plain.work.total
    # as above; a small eigenvalue has the rounding of the whole matrix
    assert measures(on_disk.certificate) == pytest.approx(measures(plain.certificate), rel=1e-10)

"""One BLAS thread on the host: set for a while, and given back whoever leaves last."""

import threading

import numpy as np
import pytest

import mescal
from mescal.blas import _openblas, _pools, one_thread
from mescal.certificate import second_order


def counts() -> list[int]:
    return [get() for get, _ in _pools()]


@pytest.fixture
def three():
    before = counts()
    for _, put in _pools():
        put(3)
    yield [3] * len(before)
    for (_, put), count in zip(_pools(), before, strict=True):
        put(count)


def test_numpys_and_scipys_libraries_are_found():
    assert len(_pools()) == 2  # the pinned wheels of both bring OpenBLAS


def test_within_it_there_is_one_thread_and_after_it_what_there_was(three):
    with one_thread():
        assert counts() == [1, 1]
        with one_thread():
            assert counts() == [1, 1]
        assert counts() == [1, 1]
    assert counts() == three
    with pytest.raises(KeyboardInterrupt), one_thread():
        raise KeyboardInterrupt
    assert counts() == three


def test_threads_that_overlap_give_back_what_there_was(three):
    first, second = threading.Event(), threading.Event()

    def inside():
        with one_thread():
            first.set()
            second.wait(10)

    thread = threading.Thread(target=inside)
    with one_thread():
        thread.start()
        assert first.wait(10)
    assert counts() == [1, 1]  # the other one is still inside
    second.set()
    thread.join(10)
    assert counts() == three


def test_a_certificate_is_computed_within_it(three, monkeypatch):
    seen = []
    inner = second_order.curvatures

    def curvatures(*given, **named):
        seen.append(counts())
        return inner(*given, **named)

    monkeypatch.setattr(second_order, "curvatures", curvatures)
    result = mescal.minimize(mescal.Problem(mescal.E(lambda x: (x - 1) @ (x - 1))), np.zeros(2))
    assert result.converged
    assert seen and all(count == [1, 1] for count in seen)
    assert counts() == three


def test_other_libraries_are_left_alone(tmp_path):
    (tmp_path / "none.so").write_text("no library")
    assert _openblas(str(tmp_path / "none.so")) is None

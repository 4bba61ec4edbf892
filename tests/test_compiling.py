"""Compiled functions: the option of XLA is used where the compiler takes it, and nowhere else."""

import jax
import jax.numpy as jnp
import pytest

from mescal import compiling
from mescal.compiling import compiled, leaves_emitters_out


@pytest.fixture(autouse=True)
def forget():
    leaves_emitters_out.cache_clear()
    yield
    leaves_emitters_out.cache_clear()


def options_of(monkeypatch) -> list:
    """The options with which programs were asked for, from the next call on."""
    seen, jit = [], jax.jit

    def spy(function, **options):
        made = jit(function, **options)

        def call(*arguments):
            seen.append(options.get("compiler_options"))
            return made(*arguments)

        return call

    monkeypatch.setattr(jax, "jit", spy)
    return seen


KNOWN = jax.default_backend() == "cpu" and jax.__version_info__ < (0, 11)


def test_the_option_is_one_of_the_compiler_of_jax_0_10_for_cpus(monkeypatch):
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    assert leaves_emitters_out(compiling.OPTION) == KNOWN


def test_an_option_that_the_compiler_does_not_know_is_left_out(monkeypatch):
    monkeypatch.setattr(compiling, "OPTION", "xla_cpu_no_such_option")
    seen = options_of(monkeypatch)
    assert compiled(lambda x: x + 1, static_argnums=())(1) == 2
    assert seen[-1] is None
    assert compiled(lambda x, by: x + by, static_argnums=1)(1, 3) == 4
    assert compiled(lambda x: x * 2)(jnp.ones(2)).tolist() == [2, 2]  # by filter_jit


@pytest.mark.skipif(not KNOWN, reason="this compiler has no such option")
def test_it_is_used_on_a_cpu_unless_somebody_has_set_it(monkeypatch):
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    seen = options_of(monkeypatch)
    assert compiled(lambda x: x + 1, static_argnums=())(1) == 2
    assert seen[-1] == {compiling.OPTION: False}
    monkeypatch.setenv("XLA_FLAGS", f"--{compiling.OPTION}=true")
    leaves_emitters_out.cache_clear()
    assert compiled(lambda x: x + 1, static_argnums=())(1) == 2
    assert seen[-1] is None


def test_a_call_that_is_traced_has_no_options():
    inner = compiled(lambda x: x + 1)
    assert jax.jit(lambda x: 2 * inner(x))(jnp.ones(())) == 4
    assert jax.eval_shape(inner, jnp.ones(3)).shape == (3,)
    assert jax.vmap(inner)(jnp.zeros(2)).tolist() == [1, 1]
    assert jax.grad(inner)(1.0) == 1


def test_names_and_keyword_arguments_are_those_of_the_function():
    @compiled
    def twice(x, *, plus=0):
        """Two of them."""
        return 2 * x + plus

    assert twice.__name__ == "twice" and twice.__doc__ == "Two of them."
    assert twice(jnp.ones(()), plus=jnp.ones(())) == 3

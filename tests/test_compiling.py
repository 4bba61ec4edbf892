"""Compiled functions: the options of XLA are used where the compiler takes them, and nowhere else."""

import jax
import jax.numpy as jnp
import pytest

from mescal import compiling
from mescal.compiling import compiled, options_here


@pytest.fixture(autouse=True)
def forget(monkeypatch):
    monkeypatch.setattr(compiling, "cores", lambda: 2)
    options_here.cache_clear()
    yield
    options_here.cache_clear()


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


EMITTERS, LEVEL = compiling.OPTIONS
ON_CPU = jax.default_backend() == "cpu"
KNOWN = [EMITTERS, LEVEL] if jax.__version_info__ < (0, 11) else [LEVEL]


def test_the_emitters_are_an_option_of_the_compiler_of_jax_0_10_for_cpus(monkeypatch):
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    assert [name for name, _ in options_here()] == (KNOWN if ON_CPU else [])


@pytest.mark.skipif(not ON_CPU, reason="accelerators are left alone")
def test_on_one_core_programs_are_compiled_in_one_piece(monkeypatch):
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    monkeypatch.setattr(compiling, "cores", lambda: 1)
    assert dict(options_here())["xla_cpu_parallel_codegen_split_count"] == 1
    assert compiled(lambda x: x + 1)(jnp.ones(2)).tolist() == [2, 2]


def test_an_option_that_the_compiler_does_not_know_is_left_out_and_the_others_are_not(monkeypatch):
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    monkeypatch.setattr(compiling, "OPTIONS", {"xla_cpu_no_such_option": True, LEVEL: 1})
    seen = options_of(monkeypatch)
    assert compiled(lambda x: x + 1, static_argnums=())(1) == 2
    assert seen[-1] == ({LEVEL: 1} if ON_CPU else None)
    assert compiled(lambda x, by: x + by, static_argnums=1)(1, 3) == 4
    assert compiled(lambda x: x * 2)(jnp.ones(2)).tolist() == [2, 2]  # by filter_jit


@pytest.mark.skipif(not ON_CPU, reason="accelerators are left alone")
def test_what_somebody_has_set_is_left_alone(monkeypatch):
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    seen = options_of(monkeypatch)
    assert compiled(lambda x: x + 1, static_argnums=())(1) == 2
    assert seen[-1] == {name: compiling.OPTIONS[name] for name in KNOWN}
    monkeypatch.setenv("XLA_FLAGS", f"--{EMITTERS}=true --{LEVEL}=3")
    options_here.cache_clear()
    assert compiled(lambda x: x + 1, static_argnums=())(1) == 2
    assert not seen[-1]


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

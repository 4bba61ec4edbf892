"""The command line inside the test's own process, so that all tests share what was compiled."""

import jax
import pytest
from typer.testing import CliRunner

from mescal.cli.app import app

TINY = ["saddles/circle", "--set", "sigma=0", "--tol", "0.05", "--solver", "spider"]


@pytest.fixture(autouse=True, scope="session")
def no_persistent_cache():
    """Other tests count compilations: the cache on the disk stays off in this process."""
    before = jax.config.jax_enable_compilation_cache
    jax.config.update("jax_enable_compilation_cache", False)
    yield
    jax.config.update("jax_enable_compilation_cache", before)


@pytest.fixture
def mescal(monkeypatch, tmp_path):
    """Call a command in an empty folder; the result has exit_code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MESCAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("COLUMNS", raising=False)  # pytest-xdist sets it; without it, what is no terminal is wide
    runner = CliRunner()

    def call(*arguments):
        result = runner.invoke(app, [str(argument) for argument in arguments], prog_name="mescal")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return call


@pytest.fixture(scope="session")
def stored_folder(tmp_path_factory):
    """A finished run, made by the command line."""
    folder = tmp_path_factory.mktemp("cli") / "run"
    result = CliRunner().invoke(
        app, ["solve", *TINY, "--out", str(folder), "-q", "--exact-history"], prog_name="mescal"
    )
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def tiny() -> list[str]:
    """Arguments of a problem that is solved in an instant once it is compiled."""
    return list(TINY)

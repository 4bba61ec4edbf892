"""The command line inside the test's own process, so that all tests share what was compiled."""

import shutil
import sys

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


@pytest.fixture(scope="module")
def made_with(tmp_path_factory):
    """A folder with a file of somebody's own, own.py, and the certified run r that a command made with it."""

    def make(source, *arguments):
        folder = tmp_path_factory.mktemp("own")
        (folder / "own.py").write_text(source, encoding="utf-8")
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            result = CliRunner().invoke(app, [*arguments, "--out", "r"], prog_name="mescal")
        assert result.exit_code == 0, result.output
        return folder

    return make


@pytest.fixture
def received(made, mescal, tmp_path, monkeypatch):
    """The run of a module's `made` in a folder elsewhere, in a process that has never seen its file."""
    for name in [name for name in sys.modules if name.startswith("_mescal_own_")]:
        monkeypatch.delitem(sys.modules, name)
    shutil.copytree(made / "r", tmp_path / "r")
    return tmp_path


@pytest.fixture
def tiny() -> list[str]:
    """Arguments of a problem that is solved in an instant once it is compiled."""
    return list(TINY)

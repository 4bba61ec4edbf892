"""Programs kept on the disk: a later process reads them, and folders that others can write to are refused."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

import mescal
from mescal import kept_programs
from mescal.errors import InputError, InputTypeError

CHILD = """
import os, sys
import jax, jax.numpy as jnp
import mescal
from mescal.testing import count_compilations
with count_compilations() as found:
    exec(sys.argv[1])
print(found.read)
"""
SMALL = "jax.jit(lambda x: jnp.sin(x) + {})(jnp.arange(3.0)).block_until_ready()"


def hits(code: str, **environment: str) -> int:
    """How many programs a fresh process took from the disk."""
    names = ("JAX_COMPILATION_CACHE_DIR", "JAX_ENABLE_COMPILATION_CACHE", "MESCAL_CACHE")
    own = {name: value for name, value in os.environ.items() if name not in names} | environment
    command = [sys.executable, "-c", CHILD, code]
    done = subprocess.run(command, env=own, capture_output=True, text=True, check=True)
    return int(done.stdout.splitlines()[-1])


def kept(folder: Path) -> set[str]:
    """The programs in a folder."""
    return {path.name for path in folder.iterdir() if path.name.endswith("-cache")} if folder.exists() else set()


def test_a_second_process_reads_what_the_first_compiled(tmp_path):
    folder = tmp_path / "made" / "here"
    code = f"assert mescal.keep_compiled({str(folder)!r}) == __import__('pathlib').Path({str(folder)!r}); {SMALL.format(1)}"
    assert hits(code) == 0
    first = kept(folder)
    assert first
    assert hits(code) >= 1 and kept(folder) == first
    if hasattr(os, "geteuid"):
        assert folder.stat().st_mode & 0o777 == 0o700


def test_a_solve_is_read_from_the_disk(tmp_path):
    code = f"""
mescal.keep_compiled({str(tmp_path / "kept")!r})
saddle = mescal.problems.get("saddles/circle", sigma=0.0)
print(mescal.minimize(saddle.problem, saddle.x0, solver="newton-cg", tol=0.05).converged)
"""
    assert hits(code) == 0
    programs = kept(tmp_path / "kept")
    assert len(programs) > 1
    hits(f"{code}\nassert found.count == found.read < {len(programs)}")  # most are read without being traced
    assert kept(tmp_path / "kept") == programs


def test_after_the_first_compilation_twice_and_in_another_folder(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    code = f"""
{SMALL.format(1)}
for _ in range(2):
    mescal.keep_compiled({str(one)!r})
    {SMALL.format(2)}
assert len(os.listdir({str(one)!r})) >= 1
before = os.listdir({str(one)!r})
mescal.keep_compiled({str(two)!r})
{SMALL.format(3)}
assert os.listdir({str(one)!r}) == before
"""
    hits(code)
    assert kept(one) and kept(two)
    assert hits(f"mescal.keep_compiled({str(two)!r}); {SMALL.format(3)}") >= 1


def test_the_default_is_the_folder_of_the_command_line_or_the_one_that_jax_was_given(tmp_path):
    hits(f"mescal.keep_compiled(); {SMALL.format(1)}", MESCAL_CACHE=str(tmp_path))
    assert kept(tmp_path / "compiled")
    given = tmp_path / "of jax"
    code = f"assert str(mescal.keep_compiled()) == {str(given)!r}"
    hits(
        f"{code}; assert jax.config.jax_persistent_cache_min_compile_time_secs > 0",
        JAX_COMPILATION_CACHE_DIR=str(given),
    )


def test_what_is_switched_off_stays_off(tmp_path):
    folder = tmp_path / "kept"
    hits(f"mescal.keep_compiled({str(folder)!r}); {SMALL.format(1)}", JAX_ENABLE_COMPILATION_CACHE="false")
    assert kept(folder) == set()


class TestRefused:
    @pytest.fixture(autouse=True)
    def nothing_is_set(self):
        before = jax.config.values.copy()
        yield
        assert dict(jax.config.values) == before

    def test_a_file_and_what_lies_under_one(self, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(InputError, match=r"is a file[.]\n  Expected: a folder"):
            mescal.keep_compiled(tmp_path / "file")
        with pytest.raises(InputError, match="cannot be made"):
            mescal.keep_compiled(tmp_path / "file" / "below")

    def test_one_that_cannot_be_written_to(self, tmp_path, monkeypatch):
        monkeypatch.setattr(os, "access", lambda *_: False)  # and not by its mode, which does not bind everyone
        with pytest.raises(InputError, match="cannot be written to"):
            mescal.keep_compiled(tmp_path)

    @pytest.mark.skipif(not hasattr(os, "geteuid"), reason="permissions are not in the mode here")
    @pytest.mark.parametrize("mode", [0o770, 0o777, 0o1777, 0o720, 0o702])
    def test_one_that_others_can_write_to(self, tmp_path, mode):
        tmp_path.chmod(mode)
        with pytest.raises(InputError, match=f"mode {mode:o}.*\n.*only you.*\n.*chmod go-w"):
            mescal.keep_compiled(tmp_path)
        assert kept_programs.keep_compilations(tmp_path) is None  # the command line goes on without

    @pytest.mark.skipif(not hasattr(os, "geteuid"), reason="folders have no owner here")
    def test_one_of_somebody_else(self, tmp_path, monkeypatch):
        monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
        with pytest.raises(InputError, match="belongs to another user"):
            mescal.keep_compiled(tmp_path)

    def test_what_is_no_path(self):
        with pytest.raises(InputTypeError, match=r"a string or a pathlib[.]Path"):
            mescal.keep_compiled(3)  # pyright: ignore[reportArgumentType]


def test_folders_that_others_can_read_are_taken(tmp_path):
    tmp_path.chmod(0o755)
    kept_programs._make(tmp_path)
    kept_programs._require_own(tmp_path)

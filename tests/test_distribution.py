"""The name of the distribution: said in one place, the same wherever it is printed, and never that of the other package."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import mescal
from mescal.distribution import NAME, displaced, install, namesakes, warn_of_namesake

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PACKAGE = ROOT / "src" / "mescal"
TOLD = re.compile(r"pip install (?:-U |--upgrade )?'?(mescal[\w-]*)|\b(mescal[\w-]*)\[[a-z]+(?:,[a-z]+)*\]")


def named(text: str) -> set[str]:
    """Distributions that a text tells people to install."""
    return {one or other for one, other in TOLD.findall(text)}


def test_the_package_is_published_under_the_name_that_messages_print():
    assert PROJECT["name"] == NAME != "mescal"
    assert install("cli", "plot") == f"pip install '{NAME}[cli,plot]'" and install() == f"pip install {NAME}"


def test_no_text_sends_people_to_the_other_package():
    files = [p for folder in ("src", "docs", "benchmarks", "examples", "paper") for p in (ROOT / folder).rglob("*.*")]
    found = {}
    for path in [*files, *ROOT.glob("*.*"), *(ROOT / ".github").rglob("*.*")]:
        if path.suffix in {".py", ".md", ".toml", ".cff", ".yml", ".txt"} and "_build" not in path.parts:
            found[path.name] = named(path.read_text(encoding="utf-8"))
    assert "README.md" in found and "pyproject.toml" in found
    assert {name: wrong for name, names in found.items() if (wrong := names - {NAME})} == {}


def test_lines_that_send_people_there_are_found():
    assert (
        named("pip install -U 'mescal[sklearn]'") == named("pip install mescal") == named("mescal[cli]") == {"mescal"}
    )
    assert named(install("cli")) == named(install()) == {NAME}
    assert named("result.multipliers[0], mescal solve") == set()


def test_every_extra_that_a_message_names_exists():
    told = re.compile(r"""install\(\s*["']([a-z]+)["']""")
    extras = {name for path in PACKAGE.rglob("*.py") for name in told.findall(path.read_text(encoding="utf-8"))}
    assert {"cli", "plot", "parquet", "sklearn"} <= extras <= set(PROJECT["optional-dependencies"])


class TestBesideTheOtherPackage:
    """`mescal` on the public index has metadata `mescal-1.2.5.dist-info`, and a file `mescal/__init__.py` as we have."""

    def test_its_metadata_is_told_from_ours(self, tmp_path):
        (tmp_path / "mescal_opt-0.1.0.dist-info").mkdir()
        assert namesakes(tmp_path) == []
        warn_of_namesake(tmp_path)  # warnings are errors here
        (tmp_path / "mescal-1.2.5.dist-info").mkdir()
        assert namesakes(tmp_path) == ["mescal-1.2.5.dist-info"]
        with pytest.warns(
            UserWarning, match=r"mescal-1\.2\.5\)(?s:.*)Expected: mescal-opt alone(?s:.*)What to do: pip uninstall"
        ):
            warn_of_namesake(tmp_path)

    def test_importing_ours_beside_it_warns(self, tmp_path):
        (tmp_path / "mescal").symlink_to(PACKAGE)
        (tmp_path / "mescal-1.2.5.dist-info").mkdir()
        done = self.python(tmp_path, "-W", "error", "-c", "import mescal")
        assert done.returncode == 1 and "another package is installed as mescal" in done.stderr

    def test_the_command_says_that_it_was_displaced(self, tmp_path):
        assert displaced() is None and mescal.minimize
        (tmp_path / "mescal").mkdir()
        for path in PACKAGE.iterdir():
            (tmp_path / "mescal" / path.name).symlink_to(path)
        (tmp_path / "mescal" / "__init__.py").unlink()
        (tmp_path / "mescal" / "__init__.py").write_text("'''Another package.'''\n")
        done = self.python(tmp_path, "-m", "mescal", "--version")
        assert done.returncode == 1 and done.stdout == ""
        assert done.stderr.startswith("What Python imports as mescal is another package.\n  Expected:")

    def python(self, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, *arguments]
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def test_the_version_is_said_in_one_place():
    assert "version" in PROJECT["dynamic"] and "version" not in PROJECT
    said = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.M)
    assert said and said[1] == mescal.__version__

"""What would be published: the wheel and the sdist, installed without extras into a new environment, and tried there.

Slow, and needs what pip reads packages from: where that cannot be reached the tests are skipped, and say so.
"""

import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import mescal
from benchmarks import install as installing

pytestmark = pytest.mark.slow

# Each needs an extra, and is to say so in words that name the line which installs it.
ABSENT = {
    "estimators": ("import mescal; mescal.estimators", "pip install 'mescal-opt[sklearn]'"),
    "data": ("import mescal; mescal.datasets.load('breast-cancer')", "pip install 'mescal-opt[sklearn]'"),
    "parquet": (
        "import mescal, pathlib; path = pathlib.Path('rows.parquet'); path.write_bytes(b'PAR1')\n"
        "mescal.datasets.convert_parquet(path, 'rows', {'x': 'x'})",
        "pip install 'mescal-opt[parquet]'",
    ),
    "pictures": (
        "import mescal, numpy as np; from mescal import E\n"
        "problem = mescal.Problem(E(lambda x: x @ x))\n"
        "mescal.minimize(problem, np.ones(2, np.float32)).plot()",
        "pip install 'mescal-opt[plot]'",
    ),
    "processes": (
        "from mescal.experiments import product, sweep\n"
        "sweep(product(['saddles/circle'], ['newton-cg'], seeds=range(2), tols=[0.1]), 'runs', jobs=2)",
        "pip install 'mescal-opt[cli]'",
    ),
    "Ray": ("import mescal; mescal.experiments.RayExecutor()", "pip install 'mescal-opt[ray]'"),
    "figures": ("import mescal; mescal.report.write_figures([], 'figures')", "pip install 'mescal-opt[plot]'"),
    "demonstration": (
        "import runpy; runpy.run_module('mescal.demo', run_name='__main__')",
        "pip install 'mescal-opt[cli,sklearn]'",
    ),
    "command": (
        "import runpy, sys; sys.argv = ['mescal', 'problems']; runpy.run_module('mescal', run_name='__main__')",
        "pip install 'mescal-opt[cli]'",
    ),
}


@pytest.fixture(scope="module")
def archives(tmp_path_factory) -> tuple[Path, Path]:
    return installing.build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def python(archives, tmp_path_factory) -> Path:
    """A new environment with the wheel, and without extras."""
    found = installing.environment(tmp_path_factory.mktemp("clean") / "environment")
    try:
        installing.fetch_requirements(found, archives[1])
    except RuntimeError as error:
        pytest.skip(f"the requirements could not be fetched: {error}")
    installing.install_wheel(found, archives[1])
    return found


def test_the_archives_hold_the_package_and_nothing_else(archives):
    """Every file of the package is in both; the wheel has no other, the sdist no product of a build and no data of runs."""
    sdist, wheel = archives
    package = {
        p.relative_to(installing.ROOT / "src").as_posix() for p in (installing.ROOT / "src/mescal").rglob("*.py")
    }
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert package <= names and {name.partition("/")[0] for name in names} == {"mescal"}
    with tarfile.open(sdist) as archive:
        inside = {member.name.partition("/")[2] for member in archive if member.isfile()}
    assert {f"src/{name}" for name in package} <= inside
    assert {"pyproject.toml", "README.md", "LICENSE", "CITATION.cff", "SECURITY.md", "constraints.txt"} <= inside
    assert not [name for name in inside if "__pycache__" in name or "_build/" in name or name.startswith("runs/")]
    assert wheel.name == f"mescal_opt-{mescal.__version__}-py3-none-any.whl"


def test_a_new_environment_imports_and_solves(python):
    """The package that was installed, with no extra beside it, and a certificate at the end."""
    solved = json.loads(installing.ask(python, installing.SOLVE))
    assert solved["converged"] and Path(solved["file"]).is_relative_to(python.parents[1])
    extras = (
        "import importlib.util as u; print([n for n in ('sklearn', 'typer', 'rich', 'matplotlib') if u.find_spec(n)])"
    )
    assert installing.ask(python, extras) == "[]\n"


@pytest.mark.parametrize("what", ABSENT)
def test_the_absence_of_an_extra_is_answered_in_words(python, what):
    code, line = ABSENT[what]
    done = subprocess.run([str(python), "-I", "-c", code], cwd=python.parents[1], capture_output=True, text=True)
    assert done.returncode == 1
    assert line in done.stderr and "Expected:" in done.stderr and "What to do:" in done.stderr, done.stderr


def test_a_build_that_fails_is_an_error(tmp_path):
    with pytest.raises(RuntimeError, match="exit code 3"):
        installing._run([sys.executable, "-c", "raise SystemExit(3)"])

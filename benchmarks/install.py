"""What an installation without extras costs: the wheel in a new environment, its seconds and megabytes, an import, a solve.

The sdist is built from the tree and the wheel from the unpacked sdist, so that what is measured is what would be published.
Everything that it depends on comes at the versions of `constraints.txt`; seconds of the installation are CPU seconds of pip,
its wheels being in the cache or fetched by it. Imports and solves are processes of their own, which say what they took.
"""

import importlib.metadata
import json
import os
import resource
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from mescal.distribution import NAME

from ._measure import Report

ROOT = Path(__file__).parents[1]
OTHERS = ("jaxlib", "scipy", "numpy", "jax")  # the largest of what comes along

IMPORT = "import time, mescal; print(time.process_time())"
SOLVE = """
import json, time
import numpy as np
import mescal
from mescal import E
rows = np.random.default_rng(0).normal(size=(500, 4)).astype(np.float32)
loss = lambda x, a: (a @ x - a[0]) ** 2 / (1 + (a @ x) ** 2)
problem = mescal.Problem(E(loss, over=rows), {"size": E(lambda x: x @ x) <= 1.0})
result = mescal.minimize(problem, np.full(4, 0.5, np.float32))
print(json.dumps({"seconds": time.process_time(), "converged": bool(result.converged), "file": mescal.__file__}))
"""


def build(folder: Path) -> tuple[Path, Path]:
    """The sdist of this tree and the wheel made from it, in a folder."""
    _run([sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(folder)], cwd=ROOT)
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (tree,) = (folder / "unpacked").iterdir()
    _run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)], cwd=tree)
    (wheel,) = folder.glob("*.whl")
    return sdist, wheel


def environment(folder: Path) -> Path:
    """A new virtual environment; its Python."""
    _run([sys.executable, "-m", "venv", str(folder)])
    return folder / "bin" / "python"


def fetch_requirements(python: Path, wheel: Path):
    """Install what the wheel depends on, and not the wheel itself; fails where there is no index to fetch it from."""
    (about,) = importlib.metadata.distributions(path=[str(wheel)])  # a wheel is an archive that Python can look into
    wanted = [line for line in about.requires or () if "extra ==" not in line]
    _run([str(python), "-m", "pip", "install", "--quiet", "--constraint", str(ROOT / "constraints.txt"), *wanted])


def install_wheel(python: Path, wheel: Path):
    """Install the wheel alone, and let pip check that nothing is missing."""
    _run([str(python), "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", str(wheel)])
    _run([str(python), "-m", "pip", "check"])


def ask(python: Path, code: str) -> str:
    """What a process of that environment prints."""
    return _run([str(python), "-I", "-c", code], cwd=python.parents[1])


def megabytes(folder: Path) -> float:
    """Size of the files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def run(quick: bool) -> Report:
    """Build, install, import and solve; of the imports after the first one, the best."""
    report = Report({"distribution": NAME, "constraints": "constraints.txt"})
    with tempfile.TemporaryDirectory() as place:
        sdist, wheel = build(Path(place))
        python = environment(Path(place) / "environment")
        packages = Path(ask(python, "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
        bare, started = megabytes(packages), _spent()
        fetch_requirements(python, wheel)
        install_wheel(python, wheel)
        installing, whole = _spent() - started, megabytes(packages) - bare
        imports = [float(ask(python, IMPORT)) for _ in range(2 if quick else 5)]
        solved = json.loads(ask(python, SOLVE))
        sizes = {name: megabytes(packages / name) for name in ("mescal", *OTHERS)}
        sizes |= {"the others": whole - sum(sizes.values()), "in all": whole}
        archives = {path.name: path.stat().st_size / 1e6 for path in (wheel, sdist)}
    for what, seconds in {
        "installing": installing,
        "first import": imports[0],
        "later import": min(imports[1:]),
        "import and a first solve": solved["seconds"],
    }.items():
        report.add("CPU seconds", of=what, seconds=seconds)
    for name, size in sizes.items():
        report.add("megabytes installed", package=name, megabytes=size)
    for name, size in archives.items():
        report.add("megabytes of the archives", file=name, megabytes=size)
    return report


def _spent() -> float:
    """CPU seconds of the processes that were started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _run(command: list[str], cwd: Path = ROOT) -> str:
    hidden = {"PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME"}
    surroundings = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(command, cwd=cwd, env=surroundings, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:6])}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout

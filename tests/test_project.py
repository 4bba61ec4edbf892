"""The promises of the project itself: layers, docstrings, pins, targets, portable text, a README and docs that work."""

import ast
import os
import re
import shutil
import subprocess
import tomllib
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

pytestmark = pytest.mark.quick

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "mescal"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

# --- layers -----------------------------------------------------------------------------------------------------------

# Nothing imports what lies below it.
LAYERS = [
    "version",
    "distribution",
    "importing",
    "errors",
    "checks",
    "registry",
    "files",
    "blas",
    "kept_calls",
    "compiling",
    "sets",
    "problem",
    "oracle",
    "forms",
    "curvature",
    "theory",
    "solvers",
    "certificate",
    "run",
    "baselines",
    "datasets",
    "kept_programs",
    "problems",
    "estimators",
    "experiments",
    "report",
    "cli",
    "testing",
    "demo",
    "launch",
    "__main__",
]
MAY_IMPORT_ANYTHING = {"testing", "demo", "__main__"}
# The judge knows no solver, and a problem never mentions an algorithm, although the order alone would let them.
APART = {"certificate": {"solvers"}, "problems": {"solvers", "run", "baselines"}}
# How people look at a record is written below it, and imported when they do: by `importing.on_first_use`, from nowhere else.
SHOWN = {"problem", "certificate", "run"}
SHOWING = "report."


def imported_layers(path: Path, package: Path) -> list[tuple[int, str]]:
    """Line and layer of every import, wherever it stands, of the package's own modules; "" is the package itself."""
    root = package.name
    inside = [root, *path.relative_to(package).parent.parts]
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            targets = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = inside[: len(inside) - node.level + 1] if node.level else []
            base = base + (node.module.split(".") if node.module else [])
            targets = [[*base, alias.name] for alias in node.names]
        else:
            continue
        for target in targets:
            if target[0] == root:
                layer = target[1] if len(target) > 1 else ""
                is_module = (package / layer).is_dir() or (package / f"{layer}.py").is_file()
                found.append((node.lineno, layer if layer in LAYERS or is_module else ""))
    return found


def first_uses(path: Path) -> list[tuple[int, str]]:
    """Line and module of every call of `on_first_use`."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        called = node.func if isinstance(node, ast.Call) else None
        name = called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
        if name == "on_first_use":
            (argument,) = node.args
            found.append((node.lineno, argument.value if isinstance(argument, ast.Constant) else ""))
    return found


def layer_violations(package: Path) -> list[str]:
    """One sentence per import that goes against the order of `LAYERS`."""
    sentences = []
    for path in sorted(package.rglob("*.py")):
        inner = path.relative_to(package)
        if inner == Path("__init__.py"):
            continue
        own = inner.parts[0].removesuffix(".py")
        if own not in LAYERS:
            sentences.append(f"{inner}: {own} has no place in LAYERS")
            continue
        for line, module in first_uses(path):
            if own not in SHOWN or not module.startswith(SHOWING):
                sentences.append(
                    f"{inner}:{line}: {own} asks for {module or 'something'} on first use, where records ask for report.*"
                )
        for line, target in imported_layers(path, package):
            if own in MAY_IMPORT_ANYTHING or target == own:
                continue
            if target == "":
                sentences.append(f"{inner}:{line}: {own} imports the package's public face, and so everything")
            elif target not in LAYERS or LAYERS.index(target) > LAYERS.index(own):
                sentences.append(f"{inner}:{line}: {own} imports {target}, which lies below it")
            elif target in APART.get(own, ()):
                sentences.append(f"{inner}:{line}: {own} must not know {target}")
    return sentences


def test_nothing_imports_what_lies_below_it():
    assert layer_violations(PACKAGE) == []


def test_the_contributors_page_has_the_layers_in_their_order():
    table = (
        (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("| layer | subject |")[2].partition("\n\n")[0]
    )
    told = [name for line in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", line.split("|")[1])]
    assert [*told, "__main__"] == LAYERS


@pytest.mark.parametrize(
    ("file", "code", "expected"),
    [
        ("sets/box.py", "from mescal.problem import Problem", "sets imports problem"),
        ("sets/box.py", "from ..oracle.batch import total", "sets imports oracle"),
        ("sets/box.py", "import mescal.certificate.cones as cones", "sets imports certificate"),
        ("sets/box.py", "from mescal import oracle", "sets imports oracle"),
        ("sets/__init__.py", "from ..oracle import total", "sets imports oracle"),
        ("problem/problem.py", "def late():\n    from .. import solvers", "problem imports solvers"),
        ("oracle/batch.py", "import mescal", "public face"),
        ("oracle/batch.py", "from mescal import E", "public face"),
        ("oracle/deep/er.py", "from ...run import result", "oracle imports run"),
        ("errors.py", "from .sets import Box", "errors imports sets"),
        ("cli.py", "import mescal.demo", "cli imports demo"),
        ("certificate/judge.py", "from ..solvers import spider", "certificate must not know solvers"),
        ("problems/toy.py", "from mescal.run import minimize", "problems must not know run"),
        ("oracle/batch.py", "from .. import helpers", "public face"),
        ("utilities/misc.py", "import math", "no place in LAYERS"),
        ("solvers/newton.py", "on_first_use('report.cards').card()", "solvers asks for report.cards on first use"),
        ("run/result.py", "importing.on_first_use('cli.show')", "run asks for cli.show on first use"),
        ("run/result.py", "on_first_use(name)", "run asks for something on first use"),
    ],
)
def test_layer_checker_finds_a_bad_import(tmp_path, file, code, expected):
    path = tmp_path / "mescal" / file
    path.parent.mkdir(parents=True)
    path.write_text(code, encoding="utf-8")
    (sentence,) = layer_violations(tmp_path / "mescal")
    assert expected in sentence


def test_layer_checker_accepts_good_imports(tmp_path):
    good = {
        "__init__.py": "from .demo import main\nfrom .sets import Box",
        "errors.py": "import math",
        "sets/__init__.py": "from .box import Box",
        "sets/box.py": "import jax\nfrom ..errors import InputError\nfrom . import base\nfrom .base import Set",
        "oracle/batch.py": "from mescal import sets\nfrom mescal.problem import Problem\nfrom ..sets.box import Box",
        "run/result.py": "from ..importing import on_first_use\non_first_use('report.cards').card()",
        "testing/checks.py": "import mescal\nfrom ..cli import main",
        "demo.py": "import mescal\nfrom mescal.testing import checks",
    }
    for file, code in good.items():
        path = tmp_path / "mescal" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code, encoding="utf-8")
    assert layer_violations(tmp_path / "mescal") == []


# --- docstrings -------------------------------------------------------------------------------------------------------


def without_docstring(folder: Path) -> list[str]:
    """The Python files under a folder that do not say in a docstring what they are about."""
    files = sorted(folder.rglob("*.py"))
    return [str(path) for path in files if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))]


@pytest.mark.parametrize("folder", ["src", "tests", "benchmarks", "docs", "examples"])
def test_every_file_starts_with_a_docstring(folder):
    assert without_docstring(ROOT / folder) == []


def test_docstring_checker_finds_a_bare_file(tmp_path):
    (tmp_path / "good.py").write_text('"""Says what it is."""\n', encoding="utf-8")
    (tmp_path / "bare.py").write_text("import math\n", encoding="utf-8")
    (tmp_path / "empty.py").write_text("", encoding="utf-8")
    assert [Path(path).name for path in without_docstring(tmp_path)] == ["bare.py", "empty.py"]


# --- text that holds on every machine ---------------------------------------------------------------------------------

# Written so that no pattern matches its own text.
REGISTRY = re.compile(r"pypi\.org|pythonhosted\.org|registry\.npmjs|anaconda\.org|(?:index-url|find-links)[ =]", re.I)
MACHINE_PATH = re.compile(r"(?<![\w.~:/$})-])/(?:home|Users|root|work|workspace|opt|mnt|srv)/[\w.]|\b[A-Z]:\\\\?Users")


def project_files() -> list[Path]:
    """The files that are or would be committed; without git, all files outside hidden and generated folders."""
    if shutil.which("git") and (ROOT / ".git").exists():
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if run.returncode == 0:
            return [ROOT / name for name in run.stdout.split("\0") if name and (ROOT / name).is_file()]
    generated = {".venv", "runs", "build", "dist", "_build", "__pycache__"}
    files = (path for path in ROOT.rglob("*") if path.is_file())
    return [
        path
        for path in files
        if not any(part in generated or part.endswith("_cache") for part in path.relative_to(ROOT).parts)
    ]


def foreign_text(text: str) -> list[str]:
    """Names of package registries and absolute paths of a particular machine in a text."""
    return [match.group() for pattern in (REGISTRY, MACHINE_PATH) for match in pattern.finditer(text)]


def test_no_registry_hosts_and_no_machine_paths():
    files = project_files()
    assert ROOT / "pyproject.toml" in files
    found = {}
    for path in files:
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        if matches := foreign_text(text):
            found[str(path.relative_to(ROOT))] = matches
    assert found == {}


def test_foreign_text_is_found():
    for folder in ("home", "Users", "root", "work", "opt"):
        assert foreign_text("see " + "/".join(["", folder, "ada", "data.csv"]))
    assert foreign_text('"C:' + "\\Users\\ada" + '"')
    assert foreign_text("https://" + ".".join(["pypi", "org"]) + "/simple")
    assert foreign_text("--extra-index" + "-url https://example.org")
    assert foreign_text("gradients/work/total, ~/work/x, ../shared/home/x, https://example.org/home/x") == []


# --- packaging --------------------------------------------------------------------------------------------------------


def pins() -> dict[str, str]:
    """Name and version of every line of constraints.txt; a line of any other form is an error."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    matches = [re.fullmatch(r"([\w.-]+)==([\w.]+)", line) for line in lines if line and not line.startswith("#")]
    assert all(matches)
    return {canonicalize_name(match[1]): match[2] for match in matches if match}


def test_every_requirement_is_pinned_within_its_range():
    project, pinned = PYPROJECT["project"], pins()
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    for requirement in map(Requirement, chain.from_iterable(groups)):
        if requirement.name != PYPROJECT["project"]["name"]:
            assert requirement.specifier.contains(pinned[canonicalize_name(requirement.name)]), requirement


def test_extra_all_is_every_extra_but_peers_and_clusters():
    extras = dict(PYPROJECT["project"]["optional-dependencies"])
    (everything,) = map(Requirement, extras.pop("all"))
    assert everything.name == PYPROJECT["project"]["name"]
    assert everything.extras == set(extras) - {"peers", "dask", "ray"}


# --- commands ---------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize("arguments", [[], ["help"]])
def test_make_help_lists_every_target(arguments):
    outer_make = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL"}
    environment = {name: value for name, value in os.environ.items() if name not in outer_make}
    command = ["make", "--no-print-directory", *arguments]
    run = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
    described = dict(re.findall(r"^  make (\S+) +(\S.*)$", run.stdout, re.M))
    assert list(described) == [
        "help",
        "setup",
        "demo",
        "test",
        "quick",
        "test-slow",
        "fuzz",
        "coverage",
        "check",
        "fix",
        "bench",
        "bench-gpu",
        "docs",
        "examples",
        "clean",
    ]


def test_ci_runs_what_a_person_runs():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert script.read_text(encoding="utf-8").rstrip().endswith("\nmake test")


def workflows() -> dict[str, dict]:
    """What is hosted elsewhere, by file; YAML reads the word `on` as a truth value."""
    yaml = pytest.importorskip("yaml", reason="PyYAML comes with myst-parser, of the extra docs")
    found = {path.name: yaml.safe_load(path.read_text("utf-8")) for path in (ROOT / ".github/workflows").glob("*.yml")}
    assert set(found) == {"docs.yml", "release.yml", "test.yml", "weekly.yml"}
    return found


def steps_of(workflow: dict) -> list[dict]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def test_steps_of_workflows_do_one_thing_each_and_jobs_end():
    for name, workflow in workflows().items():
        assert {"name", "permissions", "jobs", True} <= set(workflow), name
        assert all(job["timeout-minutes"] > 0 for job in workflow["jobs"].values()), name
        assert all(("uses" in step) != ("run" in step) for step in steps_of(workflow)), name


def test_workflows_run_what_a_person_runs():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    hooks = [(ROOT / ".pre-commit-config.yaml").read_text("utf-8")]
    runs = [step["run"] for workflow in workflows().values() for step in steps_of(workflow) if "run" in step]
    called = [target for text in runs + hooks for target in re.findall(r"\bmake ([a-z-]+)", text)]
    assert {"setup", "test", "coverage", "docs", "examples", "types"} <= set(called) <= targets


def test_workflows_cover_the_pythons_and_the_floor_of_jax():
    matrix = workflows()["test.yml"]["jobs"]["test"]["strategy"]["matrix"]
    assert PYPROJECT["project"]["requires-python"] == f">={matrix['python'][0]}"
    assert matrix["python"] == ["3.11", "3.12", "3.13", "3.14"]
    assert {entry["jax"] for entry in matrix["include"]} == {"oldest", "newest"}
    (floor,) = (r.specifier for r in map(Requirement, PYPROJECT["project"]["dependencies"]) if r.name == "jax")
    (oldest,) = (step["run"] for step in steps_of(workflows()["test.yml"]) if "jax==" in step.get("run", ""))
    assert str(floor) + ".0" == ">=" + re.findall(r"jax==([\d.]+)", oldest)[0]


def test_hooks_before_a_commit_are_tools_of_the_environment():
    yaml = pytest.importorskip("yaml", reason="PyYAML comes with myst-parser, of the extra docs")
    (local,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
    assert local["repo"] == "local"
    for hook in local["hooks"]:
        assert hook["language"] == "system" and hook["entry"].startswith((".venv/bin/ruff ", "make ")), hook


# --- documentation ----------------------------------------------------------------------------------------------------


def test_readme_examples_run(capsys):
    """Every Python block runs, in one session, except those announced by the comment "coming"."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"(<!-- coming -->\n)?```python\n(.*?)```", text, re.S)
    examples = [code for coming, code in blocks if not coming]
    assert examples
    session: dict[str, object] = {}
    for code in examples:
        exec(compile(code, "README.md", "exec"), session)
    printed, (shown,) = capsys.readouterr().out, re.findall(r"```text\n(.*?)```", text, re.S)
    words = lambda lines: re.sub(r"-?\d[\d.]*(?:e[+-]\d+)?", "N", lines)
    assert words(printed).startswith(words(shown)), printed

"""What the pages of the documentation say in Python runs, page by page, each in a fresh namespace."""

import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```(?:python|\{cell\})\n(.*?)^```$", re.S | re.M)
BOTH = re.compile(r"^```py(?:thon)?\n(.*?)^```$", re.S | re.M)  # `py`: the code of another package
SLOW = pytest.mark.slow
NO_TORCH = "torch is not installed; the extra `peers` brings it, which is not part of `all`"


def run_page(name: str, kind: re.Pattern[str] = BLOCK) -> int:
    """Executes the Python blocks of a page in order, in one session; the number of them."""
    page = DOCS / f"{name}.md"
    blocks = kind.findall(page.read_text(encoding="utf-8"))
    session: dict[str, object] = {"__name__": f"docs_{name}"}
    for number, code in enumerate(blocks):
        exec(compile(code, f"{page.name}, block {number}", "exec"), session)
    return len(blocks)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("start", marks=SLOW),
        pytest.param("notebook", marks=SLOW),
        "choosing",
        "certificates",
        "statements",
        pytest.param("extending", marks=SLOW),
        pytest.param("faq", marks=SLOW),
        pytest.param("estimators", marks=SLOW),
        pytest.param("by-example", marks=SLOW),
        pytest.param("from-cooper", marks=SLOW),
        pytest.param("from-fairlearn", marks=SLOW),
        pytest.param("from-scipy", marks=SLOW),
        pytest.param("from-tfco", marks=SLOW),
    ],
)
def test_the_python_of_a_page_runs(name, capsys):
    assert run_page(name) >= 1
    assert capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore:Setting a value on a Series", "ignore:Setting an item of incompatible dtype"
)  # fairlearn's
@pytest.mark.parametrize("name", ["cooper", "fairlearn"])
def test_the_other_package_does_what_the_page_says(name, capsys):
    """Both sides of the page in one session; without the other package there is nothing to compare with."""
    pytest.importorskip(name, reason=f"{name} is not installed")
    assert run_page(f"from-{name}", BOTH) > run_page(f"from-{name}")


@pytest.mark.slow
def test_the_port_from_pytorch_runs(capsys):
    pytest.importorskip("torch", reason=NO_TORCH)
    assert run_page("pytorch") == 3
    assert "CERTIFIED" in capsys.readouterr().out


@pytest.mark.slow
def test_the_bridge_to_pytorch_runs():
    """In a process of its own, since it sets JAX to float64 for all that comes after."""
    pytest.importorskip("torch", reason=NO_TORCH)
    page = (DOCS / "pytorch.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```py\n(.*?)^```$", page, re.S | re.M)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0 and done.stdout.startswith("CERTIFIED"), done.stdout + done.stderr


def test_every_public_function_stands_in_code_that_runs():
    """Functions of the public modules occur by name in the Python of a page or of the README, or of an example."""
    texts = [*DOCS.glob("*.md"), DOCS.parent / "README.md"]
    code = "\n".join(block for path in texts for block in BLOCK.findall(path.read_text(encoding="utf-8")))
    code += "\n".join(path.read_text(encoding="utf-8") for path in (DOCS.parent / "examples").glob("*.py"))
    missing = {f"{home}.{name}" for home, name in public_functions() if not re.search(rf"\b{name}\b", code)}
    assert missing == set()


def public_functions() -> list[tuple[str, str]]:
    """Module and name of every public function."""
    rooms = ("sets", "solvers", "curvature", "problems", "datasets", "testing", "baselines", "estimators")
    modules = ["mescal", *(f"mescal.{room}" for room in (*rooms, "theory", "experiments", "report"))]
    found = []
    for module in modules:
        home = importlib.import_module(module)
        things = {name: getattr(home, name) for name in dir(home) if not name.startswith("_")}
        own = {name for name, it in things.items() if inspect.isfunction(it) and it.__module__.startswith("mescal.")}
        found += [(module, name) for name in sorted(own)]
    assert len(found) > 60
    return found


@pytest.mark.parametrize("page", ["mathematics", "glossary"])
def test_pages_that_name_files_name_files_that_exist(page):
    """Their tables point into the package."""
    named = set(re.findall(r"`((?:\w+/)+(?:\w+\.py)?)`", (DOCS / f"{page}.md").read_text(encoding="utf-8")))
    assert len(named) > 20
    assert [path for path in sorted(named) if not (DOCS.parent / "src" / "mescal" / path).exists()] == []


def test_the_map_for_contributors_leads_to_what_it_names_within_three_files():
    """Each file exists, and each name behind it is defined there."""
    lines = (DOCS.parent / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if re.match(r"\| .+\? \| `", line)]
    assert len(rows) > 10
    for row in rows:
        files: list[Path] = []
        for word in re.findall(r"`([\w./]+)`", row):
            if word.endswith(".py"):
                files.append(DOCS.parent / "src" / "mescal" / word)
                assert files[-1].is_file(), word
            else:
                text = files[-1].read_text(encoding="utf-8")
                assert re.search(rf"^ *(def|class) {word}\b|^{word} = ", text, re.M), (files[-1].name, word)
        assert 1 <= len(files) <= 3, row


def test_the_glossary_has_a_line_for_each_word_and_no_more():
    text = (DOCS / "glossary.md").read_text(encoding="utf-8")
    words = re.findall(r"^\| ([\w -]+) \| .+ \| `.+` \|$", text, re.M)
    assert len(words) == len(set(words)) == text.count("\n| ") - text.count("\n| word |") > 30
    assert {"theta", "face", "reset", "look", "leg", "epoch", "escape", "price"} <= set(words)


@pytest.mark.parametrize("page", ["promises", "differences"])
def test_pages_that_name_tests_name_tests_that_exist(page):
    """Files, and functions in them."""
    named = re.findall(r"`(tests/[\w/]+?)(?:\.py)?(?:::(\w+))?`", (DOCS / f"{page}.md").read_text(encoding="utf-8"))
    assert len(named) > 30
    for path, function in named:
        file = DOCS.parent / f"{path}.py"
        assert file.is_file() or (DOCS.parent / path).is_dir(), path
        assert not function or f"def {function}(" in file.read_text(encoding="utf-8"), (path, function)

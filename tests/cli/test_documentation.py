"""The page about the command line: its commands parse, its table is complete, its example of an own problem works."""

import re
import shlex
from pathlib import Path

import pytest
import typer

import mescal
from mescal.cli.app import app
from mescal.experiments import own_problem, task

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")
README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
GROUP = typer.main.get_command(app)


def command_lines() -> list[str]:
    """The lines of shell blocks, and of the examples in help texts, that call mescal."""
    blocks = re.findall(r"```sh\n(.*?)```", PAGE + README, re.S)
    helps = [command.help or "" for command in GROUP.commands.values()]
    blocks += [block for text in [GROUP.help, *helps] for block in re.findall(r"```text\n(.*?)```", text, re.S)]
    return sorted({line for block in blocks for line in block.splitlines() if line.startswith("mescal ")})


@pytest.mark.parametrize("line", command_lines())
def test_every_command_on_the_page_and_in_help_parses(line):
    verb, *arguments = shlex.split(line, comments=True)[1:]
    GROUP.commands[verb].make_context(verb, arguments)


def test_every_command_is_on_the_page():
    assert len(command_lines()) > 25
    for name in GROUP.commands:
        assert f"`mescal {name}" in PAGE or f"`{name}`" in PAGE, name


def test_the_example_of_an_own_problem_works(tmp_path):
    (code,) = (block for block in re.findall(r"```python\n(.*?)```", PAGE, re.S) if block.startswith("# my_problem.py"))
    (tmp_path / "my_problem.py").write_text(code, encoding="utf-8")
    named = task(own_problem(f"{tmp_path}/my_problem.py:make"), parameters={"rate": 0.1}).make_problem()
    result = mescal.minimize(named.problem, named.x0, tol=0.01, seed=0)
    assert result.converged and result.multipliers["false positives"] > 1

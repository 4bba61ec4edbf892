"""How commands fail: what was found, what was expected and what to do, on standard error, and an exit code.

What typer itself refuses (an unknown option, a word for a number) is told to machines as every other error is.
"""

import functools
import json
import traceback
from collections.abc import Callable
from typing import Any

import typer
from rich.padding import Padding
from rich.text import Text
from typer.core import TyperGroup

from ..datasets import DownloadError
from ..errors import InputError
from ..files import WriteError
from .show import complaints

# typer brings its own copy of click in some releases and needs click in others; its public name for the one class that
# is wanted here is the base of this one.
USAGE_ERROR: Any = typer.BadParameter.__base__
CERTIFIED, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130


def reported(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with its errors told to people and, with --json, to machines."""

    @functools.wraps(command)
    def wrapped(*args: Any, **options: Any) -> Any:
        try:
            return command(*args, **options)
        except InputError as error:
            tell(error, bool(options.get("as_json")))
            # The user's request was in order where a disk or a server was not.
            raise typer.Exit(FAILED if isinstance(error, (WriteError, DownloadError)) else USAGE) from None
        except Exception as error:
            if not options.get("as_json") or isinstance(error, (typer.Exit, typer.Abort, USAGE_ERROR)):
                raise
            tell(_unforeseen(error), True)
            traceback.print_exc()
            raise typer.Exit(FAILED) from None
        except SystemExit as leaving:
            # Commands end by typer's Exit: this comes from a problem's own code, and its 0 would say that a point is certified.
            tell(_left(leaving), bool(options.get("as_json")))
            raise typer.Exit(FAILED) from leaving
        except KeyboardInterrupt:
            complaints().print("Interrupted.")
            raise typer.Exit(INTERRUPTED) from None

    return wrapped


def _unforeseen(error: Exception) -> InputError:
    return InputError(
        f"{type(error).__name__}: {error}",
        "a command that works, or an error that says why not",
        "see the traceback on standard error; if it is in mescal, please report it",
    )


def _left(leaving: SystemExit) -> InputError:
    return InputError(
        f"a function of the problem ended the program: SystemExit({leaving.code!r})",
        "functions that return",
        "take sys.exit() and exit() out of them",
    )


def tell(error: InputError, as_json: bool = False):
    """Show an error."""
    if as_json:
        typer.echo(json.dumps({"error": {"found": error.found, "expected": error.expected, "advice": error.advice}}))
        return
    console = complaints()
    # Words wrap under the indent on a terminal; elsewhere a sentence stays on its line, for grep.
    indent, whole = (0, 0, 0, 2), not console.is_terminal
    console.print(Text(f"{error.found}.", "bold red"), soft_wrap=whole)
    for label, sentence, style in (("Expected: ", error.expected, ""), ("What to do: ", error.advice, "bold")):
        end = "" if sentence.endswith("?") else "."
        text = Text.assemble(label, (f"{sentence}{end}", style))
        console.print(Text("  ").append(text) if whole else Padding(text, indent), soft_wrap=whole)


class Commands(TyperGroup):
    """The group of all commands; with --json among the arguments, wrong usage is one JSON object on standard output."""

    _as_json = False

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **extra: Any) -> Any:
        """Remember what was asked, since what cannot be parsed has no options yet."""
        self._as_json = "--json" in args
        return super().make_context(info_name, args, *rest, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except USAGE_ERROR as error:
            if not self._as_json:
                raise
            command = getattr(error.ctx, "command_path", "mescal")
            usage = error.ctx.get_usage().removeprefix("Usage: ") if error.ctx is not None else command
            found = error.format_message().rstrip(".")
            tell(InputError(found, " ".join(usage.split()), f"`{command} --help` explains every option"), True)
            raise typer.Exit(USAGE) from None

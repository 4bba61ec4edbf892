"""What typer itself refuses (an unknown option, a word for a number) is told to machines as every other error is."""

from typing import Any

import typer
from typer.core import TyperGroup

from ..errors import InputError
from .failure import USAGE, tell

# typer brings its own copy of click in some releases and needs click in others; its public name for the one class that
# is wanted here is the base of this one.
UsageError: Any = typer.BadParameter.__base__


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
        except UsageError as error:
            if not self._as_json:
                raise
            command = getattr(error.ctx, "command_path", "mescal")
            usage = error.ctx.get_usage().removeprefix("Usage: ") if error.ctx is not None else command
            found = error.format_message().rstrip(".")
            tell(InputError(found, " ".join(usage.split()), f"`{command} --help` explains every option"), True)
            raise typer.Exit(USAGE) from None

"""A group whose commands are imported when they are used: all of them would cost each command 0.15 s."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

Resolved = tuple[str | None, click.Command | None, list[str]]


class LazyGroup(click.Group):
    """A group with commands in modules of this package: ``command``, or where there are several, by their names."""

    def __init__(self, *args: Any, modules: Mapping[str, str], **how: Any) -> None:
        super().__init__(*args, **how)
        self.modules = modules

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, those of the modules last."""
        return [*super().list_commands(ctx), *self.modules]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of some words. Raises NoSuchCommand, with names that are near."""
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand:
            raise click.exceptions.NoSuchCommand(args[0], possibilities=self.list_commands(ctx), ctx=ctx) from None

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Return a command; None when there is none of this name."""
        if name not in self.modules:
            return super().get_command(ctx, name)
        module = import_module(f"{__package__}.{self.modules[name]}")
        command: click.Command = getattr(module, "command", None) or getattr(module, name)
        return command

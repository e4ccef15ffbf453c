"""The type of options that are an amount of a resource, such as --memory."""

from typing import Any

import click

from minicluster.render.quantity import WANTED, is_quantity, unmeant


class Amount(click.ParamType):  # type: ignore[type-arg]  # older versions have no argument
    """A quantity of a resource, as Kubernetes takes it."""

    name = "quantity"

    def __init__(self, resource: str) -> None:
        self._resource = resource

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return it as it is. Fails for one that nobody means: most often the unit is forgotten."""
        text = str(value)
        if text and not is_quantity(text):
            self.fail(f"{text!r} is not {WANTED}.", param, ctx)
        if why := unmeant(self._resource, text) if text else "":
            self.fail(f"{text} is {why}", param, ctx)
        return text

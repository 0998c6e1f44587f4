"""How a program ends that cannot begin."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn, TypeVar

import click

from mooring.cli.exits import UNREADABLE
from mooring.kit.extras import remedy, require

F = TypeVar("F", bound=Callable[..., Any])


def fail(text: str) -> NoReturn:
    """End with an error: something cannot be read or reached."""
    click.echo(f"error: {text}", err=True)
    raise SystemExit(UNREADABLE)


def needs_extra(extra: str, *, unless: str = "") -> Callable[[F], F]:
    """Have a command say that it needs an extra, and end at once where that is not installed.

    `LazyGroup` turns the error into one line. The help is printed without the extra, and with the
    flag `unless` the command does without.
    """

    def decorate(call: F) -> F:
        @wraps(call)
        def checked(*args: Any, **given: Any) -> Any:
            if not (unless and given[unless]):
                require(extra)
            return call(*args, **given)

        help_text = inspect.cleandoc(call.__doc__ or "")
        but = f", but not for --{unless.replace('_', '-')}" if unless else ""
        checked.__doc__ = f"{help_text}\n\nNeeds the {extra} extra{but}: {remedy(extra)}."
        return checked  # type: ignore[return-value]

    return decorate

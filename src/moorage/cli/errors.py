"""Exit statuses, the same for every command, and how a command ends with an error."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn, TypeVar

import click

from moorage.cli.terminal import echo, printable_message
from moorage.kit.extras import require
from moorage.kit.system import System, missing_system

FITS = 0  # all is well: valid, fits, done
DOES_NOT_FIT = 1  # the answer is no: refused, does not fit
USAGE = 2  # the command line is wrong (click's own)
UNREADABLE = 3  # something could not be read or reached, or is not installed
INTERRUPTED = 130  # stopped from the keyboard, as shells have it

F = TypeVar("F", bound=Callable[..., Any])


def fail(text: str) -> NoReturn:
    """Print an error and exit: something cannot be read or reached."""
    echo(f"error: {printable_message(text)}", err=True)
    raise SystemExit(UNREADABLE)


def os_error_text(error: OSError) -> str:
    """Return file and reason of an error of the operating system."""
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}"


def needs_system(system: System, *, unless: str = "") -> Callable[[F], F]:
    """Require an operating system for a command, and mention it in the help.

    On another one, the command fails at once with one line. Help works everywhere, and so does the
    command with the flag `unless`.
    """

    def decorate(call: F) -> F:
        @wraps(call)
        def checked(*args: Any, **given: Any) -> Any:
            if not (unless and given[unless]) and (missing := missing_system(system)):
                echo(f"error: {click.get_current_context().command_path} {missing}", err=True)
                raise SystemExit(USAGE)
            return call(*args, **given)

        checked.__doc__ = f"{inspect.cleandoc(call.__doc__ or '')}\n\nNeeds {system.value}."
        return checked  # type: ignore[return-value]

    return decorate


def needs_extra(extra: str, *, unless: str = "") -> Callable[[F], F]:
    """Require an extra of the distribution for a command, and mention it in the help.

    Where the extra is not installed, the command fails at once; `LazyGroup` turns the error into
    one line. Help works without the extra, and so does the command with the flag `unless`.
    """

    def decorate(call: F) -> F:
        @wraps(call)
        def checked(*args: Any, **given: Any) -> Any:
            if not (unless and given[unless]):
                require(extra)
            return call(*args, **given)

        help_text = inspect.cleandoc(call.__doc__ or "")
        but = f", but not for --{unless.replace('_', '-')}" if unless else ""
        checked.__doc__ = f"{help_text}\n\nNeeds the {extra} extra{but}."
        return checked  # type: ignore[return-value]

    return decorate

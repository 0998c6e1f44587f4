"""The options of every command that reports findings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def report_options(function: F) -> F:
    """Give a command the options that decide how findings are printed."""
    function = click.option(
        "-o",
        "--output",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="How to print.",
    )(function)
    return click.option("-q", "--quiet", is_flag=True, help="Print findings only, no summary.")(
        function
    )

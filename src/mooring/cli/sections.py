"""A command whose many options are listed in sections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

Sections = Sequence[tuple[str, Sequence[str]]]  # a title, and names of parameters


class SectionedCommand(click.Command):
    """Lists its options by sections; those of none come last."""

    def __init__(self, *arguments: Any, sections: Sections = (), **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.sections = sections

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options."""
        records = {
            parameter.name: record
            for parameter in self.get_params(ctx)
            if (record := parameter.get_help_record(ctx)) is not None
        }
        for title, names in self.sections:
            with formatter.section(title):
                formatter.write_dl([records.pop(name) for name in names if name in records])
        with formatter.section("Others"):
            formatter.write_dl(list(records.values()))

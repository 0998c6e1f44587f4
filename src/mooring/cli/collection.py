"""The slices and other objects that the files of a command hold."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import click

from mooring.api.documents import CORE, KUBERNETES, Document
from mooring.api.errors import DecodeError
from mooring.api.resource.v1 import ResourceSlice
from mooring.cli.inputs import Source, UnreadableError, find_sources
from mooring.cli.listing import printable_lines
from mooring.insight.objects import Object, read_object, read_slice, resource_kind
from mooring.validation.context import Context


class Collected:
    """What files hold; what cannot be read is said at once and noted."""

    def __init__(self, context: Context, *, kinds: Collection[str] = ()) -> None:
        """Take objects of these kinds; slices are taken in any case."""
        self._context = context
        self._kinds = kinds
        self.slices: list[ResourceSlice] = []
        self.objects: list[Object] = []
        self.ignored = 0  # objects of other kinds
        self.files = 0
        self.unreadable: list[str] = []

    def read(self, names: Iterable[str], *, recursive: bool) -> None:
        """Read all files."""
        for source in self._sources(names, recursive=recursive):
            self.files += 1
            try:
                schema = CORE if self._context.extensions else KUBERNETES
                for document in source.documents(schema=schema):
                    self._add(document)
            except UnreadableError as error:
                self._complain(str(error))

    def _sources(self, names: Iterable[str], *, recursive: bool) -> Iterator[Source]:
        try:
            yield from list(find_sources(names, recursive=recursive))
        except UnreadableError as error:
            self._complain(str(error))

    def _add(self, document: Document) -> None:
        kind = resource_kind(document)
        try:
            if kind == "ResourceSlice":
                found = read_slice(document, self._context)
                self.slices.append(found.stored)
                if kind in self._kinds:
                    self.objects.append(found)
            elif kind in self._kinds:
                self.objects.append(read_object(document, self._context))
            else:
                self.ignored += 1
        except DecodeError as error:
            line, column = document.locate(error.place)
            self._complain(f"{document.source}:{line}:{column}: {error}")

    def _complain(self, message: str) -> None:
        self.unreadable.append(message)
        complain(message)


def complain(message: str) -> None:
    """Print an error; names in it may hold anything."""
    click.echo(f"{coloured('error', 'red')}: {printable_lines(message)}", err=True)


def coloured(text: str, colour: str) -> str:
    """Return text as it stands out on a terminal."""
    return click.style(text, fg=colour, bold=True)

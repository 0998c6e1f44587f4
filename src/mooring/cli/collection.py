"""The slices and other objects that the files of a command hold."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import click

from mooring.api.documents import CORE, KUBERNETES, Document
from mooring.api.errors import DecodeError, DocumentError
from mooring.api.resource.v1 import ResourceSlice
from mooring.cli.cluster_sources import archive_at, archived_documents, is_archive
from mooring.cli.inputs import UnreadableError, find_sources
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
        for name in names:
            for documents in self._parts(name, recursive=recursive):
                self.files += 1
                try:
                    for document in documents:
                        self._add(document)
                except (UnreadableError, DocumentError) as error:
                    self._complain(str(error))

    def _parts(self, name: str, *, recursive: bool) -> Iterator[Iterable[Document]]:
        """Give the documents of an archive, or of each file that the name stands for."""
        schema = CORE if self._context.extensions else KUBERNETES
        try:
            if is_archive(name):
                yield archived_documents(name, archive_at(Path(name)), schema)
                return
            sources = list(find_sources([name], recursive=recursive))
        except UnreadableError as error:
            self._complain(str(error))
            return
        yield from (source.documents(schema=schema) for source in sources)

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

"""Where the objects of a cluster come from: files, archives and profiles.

A source gives its objects to an intake, and to it says what it cannot read. A cluster that is
asked over the network is one more source: `live_source`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from mooring.api.documents import Document, Limits, Schema, read
from mooring.api.errors import DocumentError
from mooring.cli.inputs import Source, UnreadableError, find_sources
from mooring.cli.progress import Progress
from mooring.hardware.attributes import Form
from mooring.hardware.catalogue import Catalogue
from mooring.insight.archives.archive import Archive, read_archive
from mooring.insight.archives.tarstream import ArchiveError
from mooring.insight.clusters.intake import Intake
from mooring.insight.concerns import Concern

ARCHIVE_SUFFIXES = (".tar.gz", ".tgz")
ARCHIVE_LIMITS = Limits(bytes_max=256 * 1024 * 1024)


class ClusterSource(Protocol):
    """Something that has objects of a cluster."""

    def give(self, intake: Intake) -> None:
        """Give all objects to the intake."""
        ...


class Files(NamedTuple):
    """Files and directories of YAML and JSON."""

    names: tuple[str, ...]
    recursive: bool
    schema: Schema

    def give(self, intake: Intake) -> None:
        """Give the objects of all files; a file that cannot be read is noted."""
        for name in self.names:
            try:
                for source in list(find_sources([name], recursive=self.recursive)):
                    self._give_file(source, intake)
            except UnreadableError as error:
                intake.unreadable.append(str(error))

    def _give_file(self, source: Source, intake: Intake) -> None:
        found = False
        try:
            for document in source.documents(schema=self.schema):
                intake.add_document(document)
                found = True
            if not found:
                meaning = "nothing of it is in the answer; was it written whole?"
                intake.add_concerns(
                    [Concern("empty-file", f"{source.name} has no objects", meaning)]
                )
        except UnreadableError as error:
            intake.unreadable.append(str(error))


class Archives(NamedTuple):
    """Archives that `moor snapshot` wrote."""

    names: tuple[str, ...]
    schema: Schema

    def give(self, intake: Intake) -> None:
        """Give the objects of all archives; one that cannot be used is noted."""
        for name in self.names:
            try:
                archive = archive_at(Path(name))
                intake.add_concerns(_concerns(name, archive, intake))
                for document in archived_documents(name, archive, self.schema):
                    intake.add_document(document)
            except (UnreadableError, DocumentError) as error:
                intake.unreadable.append(str(error))


def is_archive(name: str) -> bool:
    """Tell by its name whether a file is an archive."""
    return name.endswith(ARCHIVE_SUFFIXES)


def archive_at(path: Path) -> Archive:
    """Return the archive in a file, or raise UnreadableError."""
    source = Source(str(path), path)
    try:
        return read_archive(source.packed(ARCHIVE_LIMITS))
    except ArchiveError as error:
        raise UnreadableError(f"{path}: {error}") from None


def archived_documents(name: str, archive: Archive, schema: Schema) -> Iterator[Document]:
    """Yield the documents of an archive until one cannot be read."""
    for place, line in archive.lines():
        yield from read(line, source=f"{name}!{place}", schema=schema)


def _concerns(name: str, archive: Archive, intake: Intake) -> Iterable[Concern]:
    """Give what differs between the making of an archive and its reading."""
    if archive.manifest.gates != str(intake.gates):
        fact = f"{name} was made with other feature gates"
        yield Concern("other-gates", fact, "fields that these gates had dropped are not in it")


class Profiles(NamedTuple):
    """Machines of hardware profiles; raises ProfileError for a name that there is not."""

    names: tuple[str, ...]
    form: Form

    def give(self, intake: Intake) -> None:
        """Give nodes, slices and classes of all machines, none with the name of another node."""
        catalogue = Catalogue()
        for name in self.names:
            taken = [node.metadata.name for node in intake.snapshot().nodes]
            fleet = catalogue.fleet(name, self.form, taken=taken)
            for each in (*fleet.nodes, *fleet.classes, *fleet.slices):
                intake.add_object(each, f"profile {name}")


def give_all(sources: Iterable[ClusterSource], intake: Intake) -> Intake:
    """Return the intake with the objects of all sources; long reading is shown."""
    progress = Progress()
    intake.on_object = progress.tick
    try:
        for source in sources:
            source.give(intake)
    finally:
        progress.clear()
    return intake

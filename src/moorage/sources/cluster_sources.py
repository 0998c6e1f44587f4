"""Where the objects of a cluster come from: files, archives and profiles.

A source passes its objects to an intake, and also reports what it cannot read. A running cluster is
one more source: `live_source`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from moorage.api.documents import Document, ItemReader, Schema
from moorage.api.gates import Gates
from moorage.hardware.attributes import NumaNodeForm
from moorage.hardware.catalogue import Catalogue
from moorage.insight.messages import Concern, listed
from moorage.insight.snapshot.archive import Archive
from moorage.insight.snapshot.unread import UnreadKind
from moorage.sources.errors import NoManifestsError, UnreadableError
from moorage.sources.inputs import (
    DocumentPart,
    InputSource,
    Skipped,
    find_sources,
    skipped_concerns,
)
from moorage.sources.recordings import RecordedMoment


class Taker(Protocol):
    """A receiver of objects: an intake, or the collection of a command."""

    on_object: Callable[[str], None]  # called with the source of each object
    unreadable: list[str]
    unread: list[UnreadKind]

    @property
    def item_reader(self) -> ItemReader:
        """The reader of the items of dumps."""
        ...

    @property
    def gates(self) -> Gates:
        """The gates that decide which fields exist."""
        ...

    def add_document(self, document: Document) -> None:
        """Add the object of a document."""
        ...

    def add_object(self, value: Any, place: str) -> None:
        """Add an object in its hub version."""
        ...

    def add_concerns(self, concerns: Iterable[Concern]) -> None:
        """Record the concerns of a source."""
        ...

    def node_names(self) -> Iterable[str]:
        """Return the names of the nodes that were added so far."""
        ...

    def finish(self) -> None:
        """Process objects that waited for others: all have been added."""
        ...


T = TypeVar("T", bound=Taker)


class ClusterSource(Protocol):
    """A source of the objects of a cluster."""

    def give(self, intake: Taker) -> None:
        """Pass all objects to the intake."""
        ...


class FileSource(NamedTuple):
    """Files, directories and archives of YAML and JSON, snapshots, and recordings."""

    names: tuple[str, ...]
    recursive: bool
    schema: Schema
    at: str = ""  # the moment to read recordings at
    if_empty: str = ""  # the error if there is no object in any of them; without it, that is fine

    def give(self, intake: Taker) -> None:
        """Pass on the objects of all files; record files that cannot be read."""
        reading = _FileReading(self, intake)
        for name in self.names:
            try:
                for source in list(find_sources([name], recursive=self.recursive)):
                    reading.give_source(source)
            except NoManifestsError as error:
                reading.add_empty(name, error)
            except UnreadableError as error:
                intake.unreadable.append(str(error))
        reading.finish()


class _FileReading:
    """The reading of all files of a source into an intake."""

    def __init__(self, files: FileSource, intake: Taker) -> None:
        self._files, self._intake = files, intake
        self._skipped: list[Skipped] = []
        self._empty: list[str] = []
        self._has_recordings = self._has_objects = False

    def add_empty(self, name: str, error: NoManifestsError) -> None:
        """Record a folder or an archive without manifests: an error if objects are needed."""
        if self._files.if_empty:
            self._intake.unreadable.append(str(error))
        else:
            self._empty.append(name)

    def give_source(self, source: InputSource) -> None:
        """Pass on the objects of a file."""
        try:
            for part in source.parts(self._skipped, self._files.at):
                if isinstance(part.content, RecordedMoment):
                    self._has_recordings = True
                    self._intake.unread += part.content.recording.header.unread
                    self._intake.add_concerns(_recording_concerns(part.name, part.content))
                self._give_part(part)
        except NoManifestsError as error:
            self.add_empty(source.name, error)
        except UnreadableError as error:
            self._intake.unreadable.append(str(error))

    def _give_part(self, part: DocumentPart) -> None:
        intake = self._intake
        if isinstance(part.content, Archive):
            intake.unread += part.content.manifest.unread
            intake.add_concerns(_concerns(part.name, part.content, intake))
        skipped_before, found = len(self._skipped), False
        try:
            documents = part.documents(
                schema=self._files.schema, skipped=self._skipped, objects=intake.item_reader
            )
            for document in documents:
                intake.add_document(document)
                self._has_objects = found = True
            if not found and len(self._skipped) == skipped_before:
                self._empty.append(part.name)
        except UnreadableError as error:
            intake.unreadable.append(str(error))

    def finish(self) -> None:
        """Record what is odd about the files as a whole."""
        files, intake = self._files, self._intake
        if files.at and not (self._has_recordings or intake.unreadable):
            given = listed(list(files.names))
            intake.unreadable.append(f"--at {files.at}: no recording of `moor record` in {given}")
        if not (self._has_objects or intake.unreadable) and files.if_empty:
            intake.unreadable.append(files.if_empty)
        else:
            intake.add_concerns(empty_concerns(self._empty))
        intake.add_concerns(skipped_concerns(self._skipped))


def empty_concerns(names: Sequence[str]) -> Iterator[Concern]:
    """Yield a concern about empty sources, if there are any."""
    if names:
        has = "has" if len(names) == 1 else "have"
        meaning = "nothing of it is in the answer; was it written completely?"
        yield Concern("empty-file", f"{listed(names)} {has} no objects", meaning)


def _concerns(name: str, archive: Archive, intake: Taker) -> Iterable[Concern]:
    """Yield what differs between the writing and the reading of a snapshot."""
    if archive.manifest.gates != str(intake.gates):
        fact = f"{name} was made with other feature gates"
        yield Concern("other-gates", fact, "it lacks the fields that those gates dropped")


def _recording_concerns(name: str, moment: RecordedMoment) -> Iterable[Concern]:
    """Yield what is missing in a recording."""
    if moment.recording.torn:
        yield Concern("torn-recording", f"{name}: {moment.recording.torn}", "its end is left out")


class Profiles(NamedTuple):
    """Machines of hardware profiles; raises ProfileError for unknown names."""

    names: tuple[str, ...]
    form: NumaNodeForm

    def give(self, intake: Taker) -> None:
        """Pass on nodes, slices and classes of all machines, with unique node names."""
        catalogue = Catalogue()
        for name in self.names:
            fleet = catalogue.fleet(name, self.form, taken=intake.node_names())
            for each in (*fleet.nodes, *fleet.classes, *fleet.slices):
                intake.add_object(each, f"profile {name}")


def unwatched(_: str) -> None:
    """Ignore progress."""


def give_all(
    sources: Iterable[ClusterSource], intake: T, on_object: Callable[[str], None] = unwatched
) -> T:
    """Return the intake with the objects of all sources; `on_object` gets the source of each."""
    intake.on_object = on_object
    for source in sources:
        source.give(intake)
    intake.finish()
    return intake

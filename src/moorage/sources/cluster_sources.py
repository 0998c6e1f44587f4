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
from moorage.sources.errors import UnreadableError
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
    unread: dict[str, tuple[str, ...]]  # kinds that may be read in these namespaces only

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

    def give(self, intake: Taker) -> None:
        """Pass on the objects of all files; record files that cannot be read."""
        skipped: list[Skipped] = []
        empty: list[str] = []
        recordings: list[str] = []
        for name in self.names:
            try:
                for source in list(find_sources([name], recursive=self.recursive)):
                    self._give_source(source, intake, skipped, empty, recordings)
            except UnreadableError as error:
                intake.unreadable.append(str(error))
        if self.at and not (recordings or intake.unreadable):
            given = listed(list(self.names))
            intake.unreadable.append(f"--at {self.at}: no recording of `moor record` in {given}")
        intake.add_concerns(empty_concerns(empty))
        intake.add_concerns(skipped_concerns(skipped))

    def _give_source(
        self,
        source: InputSource,
        intake: Taker,
        skipped: list[Skipped],
        empty: list[str],
        recordings: list[str],
    ) -> None:
        try:
            for part in source.parts(skipped, self.at):
                if isinstance(part.content, RecordedMoment):
                    recordings.append(part.name)
                    intake.add_concerns(_recording_concerns(part.name, part.content))
                self._give_part(part, intake, skipped, empty)
        except UnreadableError as error:
            intake.unreadable.append(str(error))

    def _give_part(
        self, part: DocumentPart, intake: Taker, skipped: list[Skipped], empty: list[str]
    ) -> None:
        if isinstance(part.content, Archive):
            intake.add_concerns(_concerns(part.name, part.content, intake))
        skipped_before, found = len(skipped), False
        try:
            documents = part.documents(
                schema=self.schema, skipped=skipped, objects=intake.item_reader
            )
            for document in documents:
                intake.add_document(document)
                found = True
            if not found and len(skipped) == skipped_before:
                empty.append(part.name)
        except UnreadableError as error:
            intake.unreadable.append(str(error))


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

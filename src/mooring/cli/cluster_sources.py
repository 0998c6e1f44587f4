"""Where the objects of a cluster come from: files, archives and profiles.

A source gives its objects to an intake, and to it says what it cannot read. A cluster that is
asked over the network will be one more source.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from mooring.api.documents import Schema
from mooring.cli.inputs import Source, UnreadableError, find_sources
from mooring.hardware.attributes import Form
from mooring.hardware.catalogue import Catalogue
from mooring.insight.intake import Intake


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
        try:
            for document in source.documents(schema=self.schema):
                intake.add_document(document)
        except UnreadableError as error:
            intake.unreadable.append(str(error))


class Profiles(NamedTuple):
    """Machines of hardware profiles; raises ProfileError for a name that there is not."""

    names: tuple[str, ...]
    form: Form

    def give(self, intake: Intake) -> None:
        """Give nodes, slices and classes of all machines."""
        catalogue = Catalogue()
        for name in self.names:
            fleet = catalogue.fleet(name, self.form)
            for each in (*fleet.nodes, *fleet.classes, *fleet.slices):
                intake.add_object(each, f"profile {name}")


def give_all(sources: Iterable[ClusterSource], intake: Intake) -> Intake:
    """Return the intake with the objects of all sources."""
    for source in sources:
        source.give(intake)
    return intake

"""Reads the file with a KubeSchedulerConfiguration; everything in it is obeyed or rejected."""

from __future__ import annotations

from pathlib import Path

from moorage.api.documents import KUBERNETES
from moorage.api.errors import ApiError, DecodeError
from moorage.api.gates import Gates
from moorage.api.object_reader import read_document
from moorage.api.scheduler_config import KubeSchedulerConfiguration
from moorage.scheduler.profiles import refusals
from moorage.sources.errors import UnreadableError
from moorage.sources.inputs import InputSource
from moorage.validation.scheduler_configuration import (
    default_scheduler_configuration,
    unknown_arguments,
    validate_scheduler_configuration,
)


def read_scheduler_file(
    path: Path, gates: Gates
) -> tuple[KubeSchedulerConfiguration | None, list[str]]:
    """Return the configuration in a file as written, or all of its errors."""
    try:
        documents = list(InputSource(str(path), path).documents(schema=KUBERNETES))
        if len(documents) != 1:
            return None, [f"{path}: must hold exactly one KubeSchedulerConfiguration"]
        reading = read_document(documents[0], gates=gates)
    except UnreadableError as error:
        return None, [str(error)]
    except ApiError as error:
        return None, [f"{path}: {error}"]
    file = reading.value
    if not isinstance(file, KubeSchedulerConfiguration):
        return None, [f"{path}: expected a KubeSchedulerConfiguration, not {reading.kind.name}"]
    faults = [remark.message for remark in (*reading.problems, *reading.remarks)]
    faults += unknown_arguments(file)
    try:
        value = default_scheduler_configuration(file, gates=gates)
        faults += [str(error) for error in validate_scheduler_configuration(value, gates=gates)]
        faults += refusals(value, gates) if not faults else []
    except DecodeError as error:
        faults.append(str(error))
    return (None, [f"{path}: {fault}" for fault in faults]) if faults else (file, [])

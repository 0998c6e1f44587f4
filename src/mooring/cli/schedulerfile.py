"""Reading a KubeSchedulerConfiguration."""

from __future__ import annotations

from pathlib import Path

from mooring.api.documents import KUBERNETES
from mooring.api.errors import ApiError
from mooring.api.gates import Gates
from mooring.api.reading import read_document
from mooring.api.schedulerconfig import KubeSchedulerConfiguration
from mooring.cli.inputs import Source, UnreadableError
from mooring.scheduler.live import Config, read_config
from mooring.validation.schedulerconfig import (
    default_scheduler_configuration,
    validate_scheduler_configuration,
)


def read_scheduler_file(path: Path, gates: Gates) -> tuple[Config | None, list[str]]:
    """Return what a file says, or None and what is wrong with it."""
    try:
        documents = list(Source(str(path), path).documents(schema=KUBERNETES))
        if len(documents) != 1:
            return None, [f"{path}: one KubeSchedulerConfiguration is wanted"]
        reading = read_document(documents[0], gates=gates)
    except UnreadableError as error:
        return None, [str(error)]
    except ApiError as error:
        return None, [f"{path}: {error}"]
    if not isinstance(reading.value, KubeSchedulerConfiguration):
        return None, [f"{path}: a KubeSchedulerConfiguration is wanted, not {reading.kind.name}"]
    faults = [f"{path}: {remark.message}" for remark in (*reading.problems, *reading.remarks)]
    value = default_scheduler_configuration(reading.value, gates=gates)
    faults += [f"{path}: {error}" for error in validate_scheduler_configuration(value, gates=gates)]
    return (None, faults) if faults else (read_config(reading.value, gates), [])

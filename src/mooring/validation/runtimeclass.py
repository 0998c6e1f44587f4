"""How RuntimeClasses are admitted."""

from __future__ import annotations

from msgspec.structs import replace

from mooring.api.core.placement import Toleration
from mooring.api.core.resources import ResourceRequirements
from mooring.api.fieldpath import Path, root
from mooring.api.runtimeclass import Overhead, RuntimeClass
from mooring.api.timestamp import Timestamp
from mooring.validation.checks import label, unchanged
from mooring.validation.context import Context
from mooring.validation.errors import Errors, duplicate, required
from mooring.validation.labelselectors import check_labels
from mooring.validation.metadata import check_metadata_update
from mooring.validation.ordinary import OrdinaryStrategy
from mooring.validation.pod.defaults import rounded
from mooring.validation.pod.resources import check_container_resources
from mooring.validation.pod.spec import check_tolerations

HANDLER = root("handler")


class RuntimeClassStrategy(OrdinaryStrategy[RuntimeClass]):
    """Admission of RuntimeClasses."""

    namespaced = False

    def default(
        self,
        value: RuntimeClass,
        api_version: str,  # noqa: ARG002
        now: Timestamp,  # noqa: ARG002
    ) -> RuntimeClass:
        """Round the overhead, as the resources of containers are."""
        if value.overhead is None:
            return value
        overhead = replace(value.overhead, pod_fixed=rounded(value.overhead.pod_fixed))
        return replace(value, overhead=overhead)

    def rules(self, new: RuntimeClass) -> Errors:
        """Check the handler, the overhead and the nodes."""
        found = label(new.handler, HANDLER) if new.handler else [required(HANDLER)]
        if new.overhead is not None:
            found += _check_overhead(new.overhead, root("overhead"))
        if new.scheduling is not None:
            path = root("scheduling")
            found += check_labels(new.scheduling.node_selector, path.child("nodeSelector"))
            found += _check_tolerations(new.scheduling.tolerations, path.child("tolerations"))
        return found

    def check_update(
        self,
        new: RuntimeClass,
        old: RuntimeClass,
        context: Context,  # noqa: ARG002
    ) -> Errors:
        """Check that the handler stays; Kubernetes looks at nothing else."""
        found = check_metadata_update(new.metadata, old.metadata)
        return found + unchanged(new.handler, old.handler, HANDLER)


def _check_overhead(overhead: Overhead, path: Path) -> Errors:
    limits = ResourceRequirements(limits=overhead.pod_fixed)
    return check_container_resources(limits, path, ())


def _check_tolerations(tolerations: tuple[Toleration, ...], path: Path) -> Errors:
    found = check_tolerations(tolerations, path)
    seen: set[tuple[str, ...]] = set()
    for position, toleration in enumerate(tolerations):
        key = (toleration.key, toleration.operator, toleration.value, toleration.effect)
        if key in seen:
            found.append(duplicate(path.index(position), toleration))
        seen.add(key)
    return found

"""Strategies of ReplicationControllers and PodTemplates."""

from __future__ import annotations

from msgspec.structs import replace

from moorage.api.core.pod import PodTemplateSpec
from moorage.api.core.replication_controller import PodTemplate, ReplicationController
from moorage.api.field_path import root
from moorage.api.gates import Gates
from moorage.validation.errors import ErrorList, invalid, required
from moorage.validation.field_rules import not_negative, value_or
from moorage.validation.metadata import next_generation
from moorage.validation.pod.strategy import drop_disabled_spec
from moorage.validation.pod.warnings import template_warnings
from moorage.validation.pod_template import (
    validate_at_most,
    validate_counts,
    validate_running,
    validate_template,
)
from moorage.validation.strategy import Context, ObjectStrategy
from moorage.validation.template_defaults import default_template

SPEC, STATUS = root("spec"), root("status")

_COUNTS = (
    "replicas",
    "fullyLabeledReplicas",
    "readyReplicas",
    "availableReplicas",
    "observedGeneration",
)


class ReplicationControllerStrategy(ObjectStrategy[ReplicationController]):
    """The strategy of ReplicationControllers."""

    tracks_generation = True
    keeps_metadata_with_status = False

    def default(
        self,
        value: ReplicationController,
        api_version: str,  # noqa: ARG002
        context: Context,  # noqa: ARG002
    ) -> ReplicationController:
        """Set the number of replicas; selector and labels are those of the template."""
        spec, metadata = value.spec, value.metadata
        template = None if spec.template is None else default_template(spec.template)
        labels = {} if template is None else template.metadata.labels
        spec = replace(
            spec,
            replicas=value_or(spec.replicas, 1),
            selector=spec.selector or labels,
            template=template,
        )
        metadata = replace(metadata, labels=metadata.labels or labels)
        return replace(value, metadata=metadata, spec=spec)

    def drop_disabled_fields(
        self, new: ReplicationController, old: ReplicationController | None, context: Context
    ) -> ReplicationController:
        """Drop disabled fields of the template."""
        template = new.spec.template
        if template is None:
            return new
        before = None if old is None else old.spec.template
        kept = _without_disabled(template, before, context.gates)
        return replace(new, spec=replace(new.spec, template=kept))

    def validate_fields(self, new: ReplicationController) -> ErrorList:
        """Validate the selector, the number of replicas and the template."""
        spec, path = new.spec, SPEC.child("template")
        found = not_negative(spec.min_ready_seconds, SPEC.child("minReadySeconds"))
        if not spec.selector:
            found.append(required(SPEC.child("selector")))
        found += not_negative(spec.replicas, SPEC.child("replicas"))
        if spec.template is None:
            return [*found, required(path)]
        labels = spec.template.metadata.labels
        if not spec.selector.items() <= labels.items():
            at = path.child("metadata").child("labels")
            found.append(invalid(at, labels, "`selector` does not match template `labels`"))
        found += validate_template(spec.template, path)
        return found + validate_running(spec.template, "ReplicationController", path)

    def validate_status(self, new: ReplicationController, old: ReplicationController) -> ErrorList:  # noqa: ARG002
        """Validate the counts of pods."""
        found = validate_counts(new.status, _COUNTS, STATUS)
        return found + validate_at_most(
            new.status, ("fullyLabeledReplicas", "readyReplicas", "availableReplicas"), STATUS
        )

    def warnings_on_create(self, new: ReplicationController) -> list[str]:
        """Return warnings about the template."""
        template = new.spec.template
        return [] if template is None else template_warnings(template, "spec.template")


class PodTemplateStrategy(ObjectStrategy[PodTemplate]):
    """The strategy of PodTemplates."""

    def prepare_for_create(self, new: PodTemplate, context: Context) -> PodTemplate:
        """Drop disabled fields; start in generation 1."""
        new = super().prepare_for_create(new, context)
        return replace(new, metadata=replace(new.metadata, generation=1))

    def prepare_for_update(
        self,
        new: PodTemplate,
        old: PodTemplate,
        context: Context,
    ) -> PodTemplate:
        """Drop disabled fields; count generations: a changed template is a new one."""
        new = super().prepare_for_update(new, old, context)
        generation = old.metadata.generation
        if new.template != old.template:
            generation = next_generation(generation)
        return replace(new, metadata=replace(new.metadata, generation=generation))

    def default(self, value: PodTemplate, api_version: str, context: Context) -> PodTemplate:  # noqa: ARG002
        """Set the defaults of the template."""
        return replace(value, template=default_template(value.template))

    def drop_disabled_fields(
        self, new: PodTemplate, old: PodTemplate | None, context: Context
    ) -> PodTemplate:
        """Drop disabled fields of the template."""
        before = None if old is None else old.template
        return replace(new, template=_without_disabled(new.template, before, context.gates))

    def validate_fields(self, new: PodTemplate) -> ErrorList:
        """Validate the template."""
        return validate_template(new.template, root("template"))

    def warnings_on_create(self, new: PodTemplate) -> list[str]:
        """Return warnings about the template."""
        return template_warnings(new.template, "template")


def _without_disabled(
    template: PodTemplateSpec, before: PodTemplateSpec | None, gates: Gates
) -> PodTemplateSpec:
    spec = drop_disabled_spec(template.spec, None if before is None else before.spec, gates)
    return template if spec is template.spec else replace(template, spec=spec)

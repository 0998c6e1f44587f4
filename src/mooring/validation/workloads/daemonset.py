"""How DaemonSets are admitted."""

from __future__ import annotations

import re

from msgspec.structs import replace

from mooring.api.apps import DaemonSet
from mooring.api.fieldpath import root
from mooring.api.timestamp import Timestamp
from mooring.validation.checks import not_negative, unchanged
from mooring.validation.context import Context
from mooring.validation.equality import same
from mooring.validation.errors import Errors, invalid
from mooring.validation.labelselectors import check_label_selector, is_empty, selector_of
from mooring.validation.workloads.defaults import default_daemon_set
from mooring.validation.workloads.rollouts import check_daemon_strategy
from mooring.validation.workloads.statuses import check_collisions, check_counts
from mooring.validation.workloads.templates import (
    TemplateStrategy,
    check_running,
    check_template,
    not_selected,
)

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
_is_count = re.compile(r"[+-]?\d{1,18}", re.ASCII).fullmatch

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
_is_count = re.compile(r"[+-]?\d{1,18}", re.ASCII).fullmatch

SPEC = root("spec")
STATUS = root("status")

_COUNTS = (
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
    "observedGeneration",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberUnavailable",
    "collisionCount",
)


class DaemonSetStrategy(TemplateStrategy[DaemonSet]):
    """Admission of DaemonSets."""

    def default(
        self,
        value: DaemonSet,
        api_version: str,  # noqa: ARG002
        now: Timestamp,  # noqa: ARG002
    ) -> DaemonSet:
        """Set what Kubernetes sets."""
        return default_daemon_set(value)

    def prepare_create(self, new: DaemonSet, context: Context) -> DaemonSet:
        """Count generations of the template, too, as the version before apps/v1 did."""
        counted = _template_generation(new)
        return _with_template_generation(super().prepare_create(new, context), max(counted, 1))

    def prepare_update(self, new: DaemonSet, old: DaemonSet, context: Context) -> DaemonSet:
        """Keep the status; a changed template is a new generation of it."""
        counted = _template_generation(old)
        if not same(new.spec.template, old.spec.template):
            counted += 1
        return _with_template_generation(super().prepare_update(new, old, context), counted)

    def rules(self, new: DaemonSet) -> Errors:
        """Check the spec."""
        spec = new.spec
        path = SPEC.child("template")
        found = _check_selector(new)
        found += check_template(spec.template, path)
        found += check_running(spec.template, "DaemonSet", path)
        found += not_negative(spec.min_ready_seconds, SPEC.child("minReadySeconds"))
        found += check_daemon_strategy(spec.update_strategy, SPEC.child("updateStrategy"))
        return found + not_negative(spec.revision_history_limit, SPEC.child("revisionHistoryLimit"))

    def changes(self, new: DaemonSet, old: DaemonSet) -> Errors:
        """Check that the selector stays."""
        return unchanged(new.spec.selector, old.spec.selector, SPEC.child("selector"))

    def status_rules(self, new: DaemonSet, old: DaemonSet) -> Errors:
        """Check the counts of pods."""
        found = check_counts(new.status, _COUNTS, STATUS)
        counts = (new.status.collision_count, old.status.collision_count)
        return found + check_collisions(*counts, STATUS)


def _template_generation(daemon_set: DaemonSet) -> int:
    text = daemon_set.metadata.annotations.get(TEMPLATE_GENERATION, "")
    return int(text) if _is_count(text) else 0


def _with_template_generation(daemon_set: DaemonSet, generation: int) -> DaemonSet:
    annotations = {**daemon_set.metadata.annotations, TEMPLATE_GENERATION: str(generation)}
    return replace(daemon_set, metadata=replace(daemon_set.metadata, annotations=annotations))


def _check_selector(new: DaemonSet) -> Errors:
    """Check the selector; one that is missing selects nothing, so the template is refused."""
    selector, path = new.spec.selector, SPEC.child("selector")
    found = [] if selector is None else check_label_selector(selector, path)
    template = new.spec.template
    readable = selector_of(selector)
    if readable is not None and not readable.matches(template.metadata.labels):
        found.append(not_selected(template, SPEC))
    if selector is not None and is_empty(selector):
        found.append(invalid(path, selector, "empty selector is invalid for daemonset"))
    return found

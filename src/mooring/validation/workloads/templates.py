"""Rules for the pod templates of controllers: those of pods, and that they are selected."""

from __future__ import annotations

from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from mooring.api.core.pod import PodTemplateSpec
from mooring.api.fieldpath import Path
from mooring.api.labels import Selector
from mooring.api.meta import LabelSelector
from mooring.validation.context import Context
from mooring.validation.errors import (
    Errors,
    FieldError,
    forbidden,
    invalid,
    not_supported,
    required,
)
from mooring.validation.labelselectors import (
    check_label_selector,
    check_labels,
    is_empty,
    selector_of,
)
from mooring.validation.metadata import check_annotations as check_annotation_names
from mooring.validation.ordinary import OrdinaryStrategy
from mooring.validation.pod.features import drop_disabled_spec
from mooring.validation.pod.spec import check_annotations, check_pod_spec

W = TypeVar("W", bound=Struct)

_NOT_SELECTED = "`selector` does not match template `labels`"


class TemplateStrategy(OrdinaryStrategy[W]):
    """Admission of what makes pods by a template."""

    counts_generations = True

    def drop_disabled(self, new: W, old: W | None, context: Context) -> W:
        """Drop from the template what pods lose."""
        made: Any = new
        before: Any = old
        template: PodTemplateSpec = made.spec.template
        pod_spec = drop_disabled_spec(
            template.spec, None if before is None else before.spec.template.spec, context.gates
        )
        if pod_spec is template.spec:
            return new
        return replace(new, spec=replace(made.spec, template=replace(template, spec=pod_spec)))


def check_template(template: PodTemplateSpec, path: Path) -> Errors:
    """Check a template by the rules for pods."""
    # Kubernetes leaves `metadata` out of these two places.
    found = check_labels(template.metadata.labels, path.child("labels"))
    annotations_path = path.child("annotations")
    found += check_annotation_names(template.metadata.annotations, annotations_path)
    found += check_annotations(template, annotations_path)
    found += check_pod_spec(template.spec, None, path.child("spec"))
    if template.spec.ephemeral_containers:
        detail = "ephemeral containers not allowed in pod template"
        found.append(forbidden(path.child("spec", "ephemeralContainers"), detail))
    return found


def check_running(template: PodTemplateSpec, kind: str, path: Path) -> Errors:
    """Check that the pods of a template run until their controller ends them."""
    found: Errors = []
    policy = template.spec.restart_policy
    if policy != "Always":
        found.append(not_supported(path.child("spec", "restartPolicy"), policy, ("Always",)))
    if template.spec.active_deadline_seconds is not None:
        place = path.child("spec", "activeDeadlineSeconds")
        found.append(forbidden(place, f"activeDeadlineSeconds in {kind} is not Supported"))
    return found


def check_selector(selector: LabelSelector | None, kind: str, path: Path) -> Errors:
    """Check a selector that must be given and ask for something."""
    if selector is None:
        return [required(path)]
    found = check_label_selector(selector, path)
    if is_empty(selector):
        found.append(invalid(path, selector, f"empty selector is invalid for {kind}"))
    return found


def check_selected(
    selector: LabelSelector | None, template: PodTemplateSpec, unreadable: str, path: Path
) -> tuple[Errors, Selector | None]:
    """Check that a template is selected; also return the selector, if it can be read."""
    readable = selector_of(selector)
    if readable is None:
        return [invalid(path.child("selector"), selector, unreadable)], None
    if readable.is_empty or readable.matches(template.metadata.labels):
        return [], readable
    return [not_selected(template, path)], readable


def not_selected(template: PodTemplateSpec, path: Path) -> FieldError:
    """Return that the labels of a template are not those that a spec selects."""
    labels = dict(sorted(template.metadata.labels.items()))
    return invalid(path.child("template", "metadata", "labels"), labels or None, _NOT_SELECTED)

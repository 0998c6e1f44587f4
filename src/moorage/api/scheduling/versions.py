"""The kinds of scheduling.k8s.io in all their versions, and conversion between these.

Groups and workloads are stored in v1beta1. v1alpha3 shares its layout, so only the apiVersion
changes. What v1alpha2 cannot say (a disruption mode with another value) becomes a mode with
nothing set, which validation refuses.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from moorage.api.kinds import Kind, declare_kind, declare_versions
from moorage.api.scheduling import v1alpha2, v1beta1

KINDS: tuple[Kind, ...] = (
    declare_kind(v1beta1.PriorityClass, "priorityclasses", "pc", namespaced=False),
    *declare_versions(
        {
            v1beta1.API_VERSION: v1beta1.PodGroup,
            v1beta1.V1ALPHA3: v1beta1.PodGroup,
            v1alpha2.API_VERSION: v1alpha2.PodGroup,
        },
        "podgroups",
        hub_version=v1beta1.API_VERSION,
        namespaced=True,
        has_status=True,
        extension_in=v1alpha2.API_VERSION,  # gone from Kubernetes 1.37
    ),
    *declare_versions(
        {
            v1beta1.API_VERSION: v1beta1.Workload,
            v1beta1.V1ALPHA3: v1beta1.Workload,
            v1alpha2.API_VERSION: v1alpha2.Workload,
        },
        "workloads",
        hub_version=v1beta1.API_VERSION,
        namespaced=True,
        extension_in=v1alpha2.API_VERSION,
    ),
    *declare_versions(
        {v1beta1.V1ALPHA3: v1beta1.CompositePodGroup},
        "compositepodgroups",
        hub_version=v1beta1.V1ALPHA3,
        namespaced=True,
        has_status=True,
    ),
)


# --- conversion --------------------------------------------------------------------------------


def to_hub(value: Any) -> Any:
    """Return an object of the group in the version that it is stored in."""
    match value:
        case v1alpha2.PodGroup():
            return v1beta1.PodGroup(
                metadata=value.metadata,
                spec=_group_spec_to_hub(value.spec),
                status=value.status,
                extra=value.extra,
            )
        case v1alpha2.Workload():
            spec = _workload_spec_to_hub(value.spec)
            return v1beta1.Workload(metadata=value.metadata, spec=spec, extra=value.extra)
        case v1beta1.PodGroup() | v1beta1.Workload():
            return replace(value, api_version=v1beta1.API_VERSION)
        case _:
            return value


def from_hub(value: Any, api_version: str) -> Any:
    """Return a stored object in another version of its group."""
    match value:
        case v1beta1.PodGroup() if api_version == v1alpha2.API_VERSION:
            return v1alpha2.PodGroup(
                metadata=value.metadata,
                spec=_group_spec_from_hub(value.spec),
                status=value.status,
                extra=value.extra,
            )
        case v1beta1.Workload() if api_version == v1alpha2.API_VERSION:
            spec = _workload_spec_from_hub(value.spec)
            return v1alpha2.Workload(metadata=value.metadata, spec=spec, extra=value.extra)
        case _:
            return replace(value, api_version=api_version)


# --- groups -------------------------------------------------------------------------------


def _group_spec_to_hub(spec: v1alpha2.PodGroupSpec) -> v1beta1.PodGroupSpec:
    fields = asdict(spec)
    reference = fields.pop("pod_group_template_ref")
    fields["workload_ref"] = _reference_to_hub(reference)
    fields["disruption_mode"] = _mode_to_hub(spec.disruption_mode)
    return v1beta1.PodGroupSpec(**fields)


def _group_spec_from_hub(spec: v1beta1.PodGroupSpec) -> v1alpha2.PodGroupSpec:
    fields = asdict(spec)
    reference = fields.pop("workload_ref")
    fields["pod_group_template_ref"] = _reference_from_hub(reference)
    fields["disruption_mode"] = _mode_from_hub(spec.disruption_mode)
    return v1alpha2.PodGroupSpec(**fields)


def _reference_to_hub(
    reference: v1alpha2.PodGroupTemplateReference | None,
) -> v1beta1.WorkloadReference | None:
    if reference is None:
        return None
    workload = reference.workload or v1alpha2.WorkloadPodGroupTemplateReference()
    return v1beta1.WorkloadReference(
        workload_name=workload.workload_name,
        template_name=workload.pod_group_template_name,
        extra=workload.extra,
    )


def _reference_from_hub(
    reference: v1beta1.WorkloadReference | None,
) -> v1alpha2.PodGroupTemplateReference | None:
    if reference is None:
        return None
    workload = v1alpha2.WorkloadPodGroupTemplateReference(
        workload_name=reference.workload_name,
        pod_group_template_name=reference.template_name,
        extra=reference.extra,
    )
    return v1alpha2.PodGroupTemplateReference(workload=workload)


def _mode_to_hub(mode: str | None) -> v1beta1.DisruptionMode | None:
    match mode:
        case None:
            return None
        case v1alpha2.DISRUPT_POD:
            return v1beta1.DisruptionMode(single=v1beta1.EmptyMode())
        case v1alpha2.DISRUPT_POD_GROUP:
            return v1beta1.DisruptionMode(all=v1beta1.EmptyMode())
        case _:
            return v1beta1.DisruptionMode()


def _mode_from_hub(mode: v1beta1.DisruptionMode | None) -> str | None:
    if mode is None:
        return None
    return v1alpha2.DISRUPT_POD if mode.all is None else v1alpha2.DISRUPT_POD_GROUP


# --- workloads ----------------------------------------------------------------------------


def _workload_spec_to_hub(spec: v1alpha2.WorkloadSpec) -> v1beta1.WorkloadSpec:
    return v1beta1.WorkloadSpec(**_with_templates(spec, v1beta1.PodGroupTemplate, _mode_to_hub))


def _workload_spec_from_hub(spec: v1beta1.WorkloadSpec) -> v1alpha2.WorkloadSpec:
    return v1alpha2.WorkloadSpec(**_with_templates(spec, v1alpha2.PodGroupTemplate, _mode_from_hub))


def _with_templates(
    spec: v1alpha2.WorkloadSpec | v1beta1.WorkloadSpec, template: type[Struct], convert: Any
) -> dict[str, Any]:
    """Return the fields of a spec with templates of another version."""
    fields = asdict(spec)
    if spec.pod_group_templates is not None:
        fields["pod_group_templates"] = tuple(
            template(**{**asdict(each), "disruption_mode": convert(each.disruption_mode)})
            for each in spec.pod_group_templates
        )
    return fields

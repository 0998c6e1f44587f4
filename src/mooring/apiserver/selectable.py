"""The fields that field selectors may name, by kind, with Kubernetes' words for others.

# label: what a selector calls a field; some are older names
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mooring.api.batch import Job
from mooring.api.core import Event, Namespace, Node, Pod, Secret
from mooring.api.kinds import Kind
from mooring.api.resource.v1 import ResourceSlice

Fields = Mapping[str, str]  # fields, and an object's values

NAME, NAMESPACE = "metadata.name", "metadata.namespace"

_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")


def field_of(kind: Kind, label: str) -> str | None:
    """Return the field that a label means for a kind; None if it means none."""
    more = _LABELS.get((kind.group, kind.name))
    if more is None:
        return label if label in (NAME, NAMESPACE) else None
    if label == NAME or (kind.namespaced and label == NAMESPACE):
        return label
    return more.get(label)


def unknown_label(kind: Kind, label: str) -> str:
    """Return what is said of a label that means nothing."""
    if (kind.group, kind.name) not in _LABELS:
        return f'"{label}" is not a known field selector: only "{NAME}", "{NAMESPACE}"'
    if kind.name == "ResourceSlice":
        return f"field label not supported for {kind.api_version}, Kind={kind.name}: {label}"
    if kind.name == "Job":
        return f'field label "{label}" not supported for Job'
    return f"field label not supported: {label}"


def fields_of(value: Any, *, namespaced: bool) -> Fields:
    """Return what field selectors can ask of an object."""
    fields = {NAME: value.metadata.name}
    if namespaced:
        fields[NAMESPACE] = value.metadata.namespace
    more = _FIELDS.get(type(value))
    return fields if more is None else {**fields, **more(value)}


def _of_slice(value: ResourceSlice) -> Fields:
    spec = value.spec
    return {
        "spec.nodeName": spec.node_name or "",
        "spec.driver": spec.driver,
        "spec.pool.name": spec.pool.name,
    }


def _of_pod(value: Pod) -> Fields:
    spec, status = value.spec, value.status
    return {
        "spec.nodeName": spec.node_name,
        "spec.restartPolicy": spec.restart_policy,
        "spec.schedulerName": spec.scheduler_name,
        "spec.serviceAccountName": spec.service_account_name,
        "spec.hostNetwork": str(bool(spec.host_network)).lower(),
        "status.phase": status.phase,
        "status.podIP": status.pod_ips[0].ip if status.pod_ips else "",
        "status.nominatedNodeName": status.nominated_node_name,
    }


def _of_node(value: Node) -> Fields:
    return {"spec.unschedulable": str(bool(value.spec.unschedulable)).lower()}


def _of_namespace(value: Namespace) -> Fields:
    return {"status.phase": value.status.phase}


def _of_secret(value: Secret) -> Fields:
    return {"type": value.type}


def _of_job(value: Job) -> Fields:
    return {"status.successful": str(value.status.succeeded)}


def _of_event(value: Event) -> Fields:
    about = value.involved_object
    return {
        "involvedObject.kind": about.kind,
        "involvedObject.namespace": about.namespace,
        "involvedObject.name": about.name,
        "involvedObject.uid": about.uid,
        "involvedObject.apiVersion": about.api_version,
        "involvedObject.resourceVersion": about.resource_version,
        "involvedObject.fieldPath": about.field_path,
        "reason": value.reason,
        "reportingComponent": value.reporting_controller,
        "source": value.source.component or value.reporting_controller,
        "type": value.type,
    }


_FIELDS: Mapping[type, Callable[[Any], Fields]] = {
    Event: _of_event,
    Job: _of_job,
    Namespace: _of_namespace,
    Node: _of_node,
    Pod: _of_pod,
    ResourceSlice: _of_slice,
    Secret: _of_secret,
}


def _same(fields: Fields) -> dict[str, str]:
    return {field: field for field in fields}


# By group and kind; labels of metadata are for every kind. Others have no more than those.
_LABELS: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("", "Event"): _same(_of_event(Event())),
    ("", "Namespace"): _same(_of_namespace(Namespace())),
    ("", "Node"): _same(_of_node(Node())),
    ("", "Pod"): {
        **_same(_of_pod(Pod())),
        "spec.host": "spec.nodeName",
        "status.podIPs": "status.podIPs",  # Accepted, and no pod has it, as in Kubernetes.
    },
    ("", "Secret"): _same(_of_secret(Secret())),
    ("batch", "Job"): _same(_of_job(Job())),
    ("events.k8s.io", "Event"): {
        **{f"regarding.{name}": f"involvedObject.{name}" for name in _INVOLVED},
        "reason": "reason",
        "reportingController": "reportingComponent",
        "type": "type",
    },
    ("resource.k8s.io", "ResourceSlice"): _same(_of_slice(ResourceSlice())),
}

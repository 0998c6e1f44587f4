"""The fields that field selectors may name, by kind, with Kubernetes' words for others.

# label: what a selector calls a field; some are older names
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from mooring.api import names
from mooring.api.batch import Job
from mooring.api.core import Event, Namespace, Node, Pod, Secret
from mooring.api.kinds import Kind
from mooring.api.labels import EVERYTHING, Selector, joined, requirement_faults
from mooring.api.nodeselector import NodeSelectorRequirement
from mooring.api.resource.v1 import ResourceSlice
from mooring.apiserver.http.status import StatusError, bad_request
from mooring.apiserver.resources import Resource

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


# ---- from mooring.apiserver.labelselectors: Label selectors of lists and watches, read from their texts, with Kubernetes' words for faults.

_TOKEN = re.compile(r"[ \t\r\n]*(?P<token>[^ \t\r\n,()=!<>]+|==|!=|[=!(),<>])")
_SIGNS = {"=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt"}
_WORDS = {"in": "In", "notin": "NotIn"}
_BINARY = "in, notin, =, ==, !=, gt, lt"
_END = ""


class LabelSelectorError(Exception):
    """A text that is no label selector."""


def read_labels(text: str) -> Selector:
    """Return the selector of a text, or raise why it is none."""
    return EVERYTHING.and_requirements(_Reader(text.partition("\0")[0]).selector())


class _Reader:
    """Reads one text, token by token."""

    def __init__(self, text: str) -> None:
        self._tokens = [found["token"] for found in _TOKEN.finditer(text)]
        self._next = 0

    def selector(self) -> list[NodeSelectorRequirement]:
        """Return all requirements; none of an empty text."""
        found: list[NodeSelectorRequirement] = []
        if self._peek() == _END:
            return found
        if not self._is_begun():
            raise _unexpected(self._peek(), "!, identifier, or 'end of string'")
        while True:
            try:
                found.append(self._requirement())
            except LabelSelectorError as fault:
                raise LabelSelectorError(f"unable to parse requirement: {fault}") from None
            after = self._take()
            if after == _END:
                return found
            if after != ",":
                raise _unexpected(after, "',' or 'end of string'")
            if not self._is_begun():
                raise _unexpected(self._peek(), "identifier after ','")

    def _requirement(self) -> NodeSelectorRequirement:
        is_absent = self._peek() == "!"
        if is_absent:
            self._take()
        key = self._key()
        values: tuple[str, ...] = ()
        if is_absent:
            operator = "DoesNotExist"
        elif self._peek() in (_END, ","):
            operator = "Exists"
        else:
            sign = self._take()
            operator = _SIGNS.get(sign) or _WORDS.get(sign, "")
            if not operator:
                raise _unexpected(sign, _BINARY)
            values = self._values() if sign in _WORDS else (self._value(),)
        wanted = NodeSelectorRequirement(key=key, operator=operator, values=values)
        if faults := requirement_faults(wanted, ""):
            raise LabelSelectorError(joined(faults))
        return wanted

    def _key(self) -> str:
        token = self._take()
        if not _is_word(token):
            raise _unexpected(token, "identifier")
        if reasons := "; ".join(names.label_name(token)):
            raise LabelSelectorError(f'<nil>: Invalid value: "{token}": {reasons}')
        return token

    def _value(self) -> str:
        if self._peek() in (_END, ","):
            return ""
        token = self._take()
        if not _is_word(token):
            raise _unexpected(token, "identifier")
        return token

    def _values(self) -> tuple[str, ...]:
        """Return the values in parentheses; one that is left out is the empty one."""
        opening = self._take()
        if opening != "(":
            raise LabelSelectorError(f"found '{opening}' expected: '('")
        if self._peek() == ")":
            self._take()
            return ("",)
        if self._peek() != "," and not _is_word(self._peek()):
            raise _unexpected(self._peek(), "',', ')' or identifier")
        values: set[str] = set()
        while True:
            values.add(self._take() if _is_word(self._peek()) else "")
            match self._take():
                case ")":
                    return tuple(sorted(values))
                case ",":
                    if self._peek() != "," and self._peek() != ")" and not _is_word(self._peek()):
                        raise _unexpected(self._peek(), "',', or identifier")
                case token:
                    raise _unexpected(token, "',' or ')'")

    def _is_begun(self) -> bool:
        return self._peek() == "!" or _is_word(self._peek())

    def _peek(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else _END

    def _take(self) -> str:
        token = self._peek()
        self._next += 1
        return token


def _is_word(token: str) -> bool:
    return bool(token) and token[0] not in "=!(),<>"


def _unexpected(token: str, expected: str) -> LabelSelectorError:
    return LabelSelectorError(f"found '{token}', expected: {expected}")


# ---- from mooring.apiserver.selectors: What lists and watches select: by labels (mooring.apiserver.labelselectors) and by fields.

_TERM = re.compile(r"((?:[^\\,]|\\.|\\\Z)*)(?:,|\Z)", re.DOTALL)
_SPLIT = re.compile(r"(?P<label>.*?)(?P<sign>!=|==|=)(?P<value>.*)", re.DOTALL)
_ESCAPED = "\\,="


class FieldTerm(NamedTuple):
    """A field that must, or must not, have a value."""

    field: str
    value: str
    is_wanted: bool


class Selection(NamedTuple):
    """What a list or a watch is about."""

    labels: Selector = EVERYTHING
    fields: tuple[FieldTerm, ...] = ()

    @property
    def is_everything(self) -> bool:
        """Whether nothing is left out."""
        return self.labels.is_empty and not self.fields

    @property
    def name(self) -> str | None:
        """The only name that is meant, if one is."""
        for term in self.fields:
            if term.field == "metadata.name" and term.is_wanted:
                return term.value
        return None

    def means(self, value: Any, resource: Resource) -> bool:
        """Return whether an object is selected."""
        if not self.labels.matches(value.metadata.labels):
            return False
        if not self.fields:
            return True
        fields = fields_of(value, namespaced=resource.namespaced)
        return all((fields.get(t.field, "") == t.value) == t.is_wanted for t in self.fields)


def read_selection(label_text: str, field_text: str, resource: Resource, version: str) -> Selection:
    """Return what the texts select, or raise the Status that Kubernetes answers with."""
    try:
        labels = read_labels(label_text)
    except LabelSelectorError as fault:
        raise bad_request(str(fault)) from None
    kind = resource.kinds[version]
    terms = tuple(_supported(term, kind) for term in _read_terms(field_text))
    return Selection(labels, terms)


# --- fields ---------------------------------------------------------------------------------------


def required_fields(text: str) -> dict[str, str]:
    """Return the fields that a selector wants to have a value; what cannot be read wants nothing.

    Whoever decides what a user may looks at it before the resource is known.
    """
    try:
        terms = _read_terms(text)
    except StatusError:
        return {}
    return {term.field: term.value for term in terms if term.is_wanted}


def _read_terms(text: str) -> list[FieldTerm]:
    found = []
    for term in sorted(_TERM.findall(text)):
        if not term:
            continue
        split = _SPLIT.match(term)
        if split is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
        is_wanted = split["sign"] != "!="
        found.append(FieldTerm(split["label"], _unescaped(split["value"]), is_wanted))
    return found


def _supported(term: FieldTerm, kind: Kind) -> FieldTerm:
    field = field_of(kind, term.field)
    if field is None:
        raise bad_request(unknown_label(kind, term.field))
    return term._replace(field=field)


def _unescaped(text: str) -> str:
    """Return a value without the backslashes that stand before its characters."""
    found, place = "", 0
    while place < len(text):
        character = text[place]
        if character == "\\":
            place += 1
            escaped = text[place : place + 1]
            if escaped not in _ESCAPED or not escaped:
                why = f"invalid escape sequence: \\{escaped}"
                raise bad_request(f"invalid field selector: {why}")
            character = escaped
        elif character in ",=":
            why = f"unescaped character in value: {ord(character)}"
            raise bad_request(f"invalid field selector: {why}")
        found += character
        place += 1
    return found

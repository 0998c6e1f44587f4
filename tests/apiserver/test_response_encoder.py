"""Lists encoded straight from the store equal encoded lists of objects."""

from __future__ import annotations

import pytest

from moorage.api.catalogue import CATALOGUE
from moorage.api.meta import ListMeta
from moorage.apiserver.http.negotiation import Representation
from moorage.apiserver.http.response_encoder import ResponseEncoder, warning_headers
from moorage.apiserver.verbs.list import ListOptions, ListPage, list_entries
from moorage.apiserver.verbs.selectors import Selection
from moorage.store.contract import Entry
from tests.apiserver.client import (
    CLAIMS,
    CLASSES,
    CONFIG_MAPS,
    PODS,
    SLICES,
    START,
    Client,
    claim,
    config_map,
    device_class,
    pod,
    resource_slice,
)

METADATA = ListMeta(resource_version="9")
ODD = {"a/b": '"uid":"x"', "c": "\\\u2028{}"}


def page_of(client: Client, group: str, plural: str) -> ListPage:
    resource = client.service.resources.of(group, plural)
    registry = client.service.registry
    page: ListPage = client.run(list_entries(registry, resource, "", Selection(), ListOptions()))
    return page


@pytest.mark.parametrize(
    ("group", "plural"),
    [
        ("resource.k8s.io", "deviceclasses"),
        ("resource.k8s.io", "resourceclaims"),
        ("resource.k8s.io", "resourceslices"),
        ("", "pods"),
        ("", "configmaps"),
        ("", "namespaces"),
    ],
)
def test_stored_objects_are_listed_as_read_ones_are(
    client: Client, group: str, plural: str
) -> None:
    client.post(CLASSES, device_class(annotations=ODD))
    client.post(CLAIMS, claim(annotations=ODD, labels={"uid": "u"}))
    client.post(SLICES, resource_slice("a"))
    client.post(PODS, pod(node="n"))
    client.post(CONFIG_MAPS, config_map(annotations=ODD))
    resource = client.service.resources.of(group, plural)
    for version, kind in resource.kinds.items():
        painter = ResponseEncoder(kind, Representation(), START)
        entries = page_of(client, group, plural).entries
        assert entries
        values = [client.service.registry.read(resource, entry) for entry in entries]
        stored = painter.stored(entries, METADATA)
        if kind.api_version == resource.hub_version:
            assert stored == painter.many(values, METADATA)
        else:
            assert stored is None, version


def test_what_is_not_stored_as_usual_is_read() -> None:
    value = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}'
    painter = ResponseEncoder(CATALOGUE.find("v1", "ConfigMap"), Representation(), START)
    assert painter.stored([Entry("/k", value, 1, 1)], METADATA) is None


def test_a_few_warnings_are_whole_and_many_are_cut() -> None:
    long = "x" * 1000
    assert warning_headers((long,)) == (("Warning", f'299 - "{long}"'),)
    many = warning_headers(tuple(f"{number}{long}" for number in range(40)))
    assert {len(value) for _, value in many} == {len('299 - ""') + 256}
    assert len(many) == 16


def test_a_warning_is_utf_8_without_characters_that_control_terminals() -> None:
    ((_, value),) = warning_headers(('a"b\\ü\x1b[31m\x85',))
    assert value.encode("latin-1").decode() == '299 - "a\\"b\\\\ü?[31m?"'

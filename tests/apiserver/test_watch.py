"""Watches: events in order, bookmarks, selections, forms, ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.api import protobuf
from moorage.apiserver.settings import Limits
from moorage.apiserver.verbs import watch as watch_verb
from tests.apiserver.client import (
    CLASSES,
    CONFIG_MAPS,
    MERGE_PATCH,
    Client,
    config_map,
    device_class,
)

INITIAL = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def label(client: Client, name: str, value: str | None) -> None:
    client.patch(f"{CLASSES}/{name}", {"metadata": {"labels": {"a": value}}}, MERGE_PATCH)


def revision(client: Client) -> str:
    return str(client.get(CLASSES).json["metadata"]["resourceVersion"])


def test_changes_come_in_order(client: Client) -> None:
    watch = client.watch(f"{CLASSES}?watch=true&resourceVersion={revision(client)}")
    assert (watch.status, watch.headers["content-type"]) == (200, "application/json")
    client.post(CLASSES, device_class())
    label(client, "gpu", "b")
    client.delete(f"{CLASSES}/gpu")
    assert watch.seen(3) == [("ADDED", "gpu"), ("MODIFIED", "gpu"), ("DELETED", "gpu")]


def test_a_watch_goes_back_to_a_revision(client: Client) -> None:
    before = revision(client)
    client.post(CLASSES, device_class("a"))
    client.post(CLASSES, device_class("b"))
    watch = client.watch(f"{CLASSES}?watch=1&resourceVersion={before}")
    assert watch.seen(2) == [("ADDED", "a"), ("ADDED", "b")]


def test_without_a_revision_a_watch_begins_with_what_is_there(client: Client) -> None:
    client.post(CLASSES, device_class())
    watch = client.watch(f"{CLASSES}?watch=true")
    assert watch.seen(1) == [("ADDED", "gpu")]


def test_initial_events_end_with_a_bookmark(client: Client) -> None:
    client.post(CLASSES, device_class())
    query = "watch=true&sendInitialEvents=true&allowWatchBookmarks=true"
    watch = client.watch(f"{CLASSES}?{query}&resourceVersionMatch=NotOlderThan")
    assert watch.event()["type"] == "ADDED"
    bookmark = watch.event()
    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["object"]["kind"] == "DeviceClass"
    metadata = bookmark["object"]["metadata"]
    assert metadata["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert metadata["resourceVersion"] == revision(client)


def test_a_selection_tells_of_what_comes_into_it_and_leaves_it(client: Client) -> None:
    client.post(CLASSES, device_class("other"))
    client.post(CLASSES, device_class())
    watch = client.watch(f"{CLASSES}?watch=true&labelSelector=a&resourceVersion={revision(client)}")
    label(client, "gpu", "b")
    label(client, "gpu", "c")
    label(client, "gpu", None)
    assert watch.seen(3) == [("ADDED", "gpu"), ("MODIFIED", "gpu"), ("DELETED", "gpu")]


def test_one_object_by_its_name(client: Client) -> None:
    watch = client.watch(f"{CLASSES}?watch=true&fieldSelector=metadata.name=b")
    client.post(CLASSES, device_class("a"))
    client.post(CLASSES, device_class("b"))
    assert watch.seen(1) == [("ADDED", "b")]


def test_only_the_first_table_has_headers(client: Client) -> None:
    client.post(CLASSES, device_class("a"))
    client.post(CLASSES, device_class("b"))
    watch = client.watch(f"{CLASSES}?watch=true", accept=TABLE)
    first, second = watch.event()["object"], watch.event()["object"]
    assert first["columnDefinitions"][0]["name"] == "Name"
    assert second["columnDefinitions"] is None
    assert second["rows"][0]["cells"][0] == "b"


def test_bookmarks_of_events_are_rows_of_a_table(client: Client) -> None:
    """Events of events.k8s.io are stored in another form, of which tables are made."""
    url = "/apis/events.k8s.io/v1/namespaces/default/events?watch=true&allowWatchBookmarks=true"
    initial = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    event = client.watch(url + initial, accept=TABLE).event()
    assert event["type"] == "BOOKMARK"
    assert len(event["object"]["rows"]) == 1


def test_protobuf_frames(client: Client) -> None:
    client.post(CLASSES, device_class())
    accept = "application/vnd.kubernetes.protobuf;stream=watch"
    watch = client.watch(f"{CLASSES}?watch=true", accept=accept)
    assert watch.headers["content-type"] == accept
    messages, rest = protobuf.split_events(watch.chunk() or b"")
    assert rest == b""
    event = protobuf.decode_event(messages[0])
    assert (event.type, event.object.kind) == ("ADDED", "DeviceClass")


def test_a_forgotten_revision_is_an_error_in_the_stream(client: Client) -> None:
    before = revision(client)
    client.post(CLASSES, device_class())
    client.run(client.store.compact(client.run(client.store.revision())))
    watch = client.watch(f"{CLASSES}?watch=true&resourceVersion={before}")
    event = watch.event()
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
    assert watch.chunk() is None


def test_a_revision_that_is_not_there_yet(client: Client) -> None:
    current = int(revision(client))
    watch = client.watch(f"{CLASSES}?watch=true&resourceVersion={current + 1}")
    client.post(CLASSES, device_class("before"))
    client.post(CLASSES, device_class("after"))
    assert watch.seen(1) == [("ADDED", "after")]


def test_initial_events_of_a_revision_that_is_not_there_yet(client: Client) -> None:
    watch = client.watch(f"{CLASSES}?{INITIAL}&resourceVersion=99999")
    event = watch.event()
    assert (event["type"], event["object"]["code"]) == ("ERROR", 504)
    assert event["object"]["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    assert watch.chunk() is None


def test_what_is_there_ends_with_a_bookmark_without_being_asked_for(client: Client) -> None:
    watch = client.watch(f"{CLASSES}?watch=true&allowWatchBookmarks=true")
    bookmark = watch.event()
    assert bookmark["type"] == "BOOKMARK"
    annotations = bookmark["object"]["metadata"]["annotations"]
    assert annotations == {"k8s.io/initial-events-end": "true"}


def test_a_bookmark_comes_shortly_before_the_end(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_verb, "BOOKMARK_BEFORE_END_S", 0.95)
    query = (
        f"watch=true&allowWatchBookmarks=true&timeoutSeconds=1&resourceVersion={revision(client)}"
    )
    watch = client.watch(f"{CLASSES}?{query}")
    bookmark = watch.event()
    assert (bookmark["type"], bookmark["object"]["metadata"]["resourceVersion"]) == (
        "BOOKMARK",
        revision(client),
    )
    assert watch.chunk() is None


@pytest.mark.parametrize("path", ["", "/b"])
def test_the_older_paths_of_watches(client: Client, path: str) -> None:
    url = CLASSES.replace("/v1/", "/v1/watch/")
    watch = client.watch(f"{url}{path}")
    client.post(CLASSES, device_class("b"))
    assert watch.seen(1) == [("ADDED", "b")]
    assert client.post(f"{url}{path}", {}).status == 405
    other = client.get(f"{url}/b?fieldSelector=metadata.name=c")
    assert (other.status, other.reason) == (400, "BadRequest")


def test_an_object_is_read_and_not_watched(client: Client) -> None:
    client.post(CLASSES, device_class())
    assert client.get(f"{CLASSES}/gpu?watch=true").json["kind"] == "DeviceClass"


@pytest.mark.parametrize("value", ["1", "true", "yes", ""])
def test_all_but_false_asks_for_a_watch(client: Client, value: str) -> None:
    watch = client.watch(f"{CLASSES}?watch={value}")
    client.post(CLASSES, device_class())
    assert watch.seen(1) == [("ADDED", "gpu")]
    for no in ("0", "false", "False"):
        assert client.get(f"{CLASSES}?watch={no}").json["kind"] == "DeviceClassList"


@pytest.mark.parametrize(
    ("query", "fault"),
    [
        (
            "watch=1&sendInitialEvents=true",
            (
                "resourceVersionMatch: Forbidden: sendInitialEvents requires setting "
                "resourceVersionMatch to NotOlderThan"
            ),
        ),
        (
            "watch=1&resourceVersion=1&resourceVersionMatch=NotOlderThan",
            (
                "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch "
                "unless sendInitialEvents is provided"
            ),
        ),
        (
            "watch=1&sendInitialEvents=false&resourceVersionMatch=Exact",
            'resourceVersionMatch: Unsupported value: "Exact": supported values: "NotOlderThan"',
        ),
        ("sendInitialEvents=true", "sendInitialEvents: Forbidden: sendInitialEvents is forbidden "),
        (
            "resourceVersion=1&resourceVersionMatch=Newest",
            'supported values: "Exact", "NotOlderThan", ""',
        ),
        (
            "resourceVersion=0&resourceVersionMatch=Exact",
            'resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
        ),
        (
            "resourceVersion=1&resourceVersionMatch=Exact&continue=x",
            "resourceVersionMatch is forbidden when continue is provided",
        ),
    ],
)
def test_options_that_exclude_each_other(client: Client, query: str, fault: str) -> None:
    reply = client.get(f"{CLASSES}?{query}")
    assert (reply.status, reply.reason) == (422, "Invalid")
    assert fault in reply.message


@pytest.mark.parametrize("query", ["timeoutSeconds=x&watch=1", "limit=x"])
def test_numbers_that_are_none(client: Client, query: str) -> None:
    reply = client.get(f"{CLASSES}?{query}")
    assert reply.message == 'strconv.ParseInt: parsing "x": invalid syntax'
    assert client.get(f"{CLASSES}?limit=-1").status == 200


def test_a_watch_ends_when_its_time_is_up(client: Client) -> None:
    watch = client.watch(f"{CLASSES}?watch=true&timeoutSeconds=1")
    assert watch.chunk() is None


def test_a_server_that_stops_ends_its_watches(client: Client) -> None:
    watch = client.watch(f"{CLASSES}?watch=true")
    client.app.stop_streams()
    assert watch.chunk() is None


def test_there_are_only_so_many_watches(tmp_path: Path) -> None:
    client = Client(tmp_path / "few", limits=Limits(watches_max=1))
    client.watch(f"{CLASSES}?watch=true")
    refused = client.watch(f"{CLASSES}?watch=true")
    assert refused.status == 429
    assert refused.headers["retry-after"] == "5"
    client.close()


def test_namespaces_are_watched_apart(client: Client) -> None:
    watch = client.watch(f"{CONFIG_MAPS}?watch=true")
    client.post(CONFIG_MAPS.replace("default", "kube-public"), config_map("elsewhere"))
    client.post(CONFIG_MAPS, config_map("here"))
    assert watch.seen(1) == [("ADDED", "here")]

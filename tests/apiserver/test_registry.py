"""Objects cached by the registry equal the stored ones."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.api.codec import encode_json
from moorage.api.core import Pod
from moorage.api.meta import ObjectMeta
from moorage.apiserver.resources import Resource
from moorage.apiserver.server import make_server_context
from moorage.apiserver.storage.registry import Registry
from moorage.store.sqlite import open_sqlite


async def played(folder: Path, play: Any) -> None:
    async with open_sqlite(folder) as store:
        service = make_server_context(store)
        await play(service.registry, service.resources.of("", "pods"))


def test_what_was_written_is_shared_and_equal_to_what_is_stored(tmp_path: Path) -> None:
    async def play(registry: Registry, pods: Resource) -> None:
        pod = Pod(metadata=ObjectMeta(name="a", namespace="b", labels={"c": "d"}))
        made = await registry.create(pods, pod)
        entry = await registry.store.get(pods.key("b", "a"))
        assert entry is not None
        assert registry.read_shared(pods, entry) is made
        assert made == registry.read(pods, entry)

        async def labelled(old: Pod) -> Pod:
            return replace(old, metadata=replace(old.metadata, labels={"e": "f"}))

        changed = await registry.change(pods, "b", "a", labelled)
        entry = await registry.store.get(pods.key("b", "a"))
        assert entry is not None
        assert changed == registry.read(pods, entry)
        assert await registry.get(pods, "b", "a") is changed

    asyncio.run(played(tmp_path, play))


ODD = '"uid":"odd","metadata":{"name":"'


@pytest.mark.parametrize(
    "pod",
    [
        Pod(metadata=ObjectMeta(name="a", namespace="b", uid="c", labels={"d": ODD})),
        Pod(metadata=ObjectMeta(name="a", namespace="b", uid="c", generate_name=ODD)),
        Pod(metadata=ObjectMeta(name="a", namespace="b", uid="c"), extra={"uid": ODD}),
        Pod(metadata=ObjectMeta(name="a", namespace="b")),
    ],
    ids=["label", "prefix", "unknown field", "no uid"],
)
def test_the_text_of_an_object_is_what_writing_it_gives(tmp_path: Path, pod: Pod) -> None:
    async def play(registry: Registry, pods: Resource) -> None:
        made = await registry.create(pods, pod)
        assert registry.text_of(made) in (encode_json(made), None)
        assert (registry.text_of(made) is None) is bool(pod.extra or not pod.metadata.uid)
        assert registry.text_of(replace(made)) is None  # another object, whatever it says

    asyncio.run(played(tmp_path, play))


def test_the_same_content_at_another_revision_is_another_object(tmp_path: Path) -> None:
    async def play(registry: Registry, pods: Resource) -> None:
        pod = Pod(metadata=ObjectMeta(name="a", namespace="b"))
        first = await registry.create(pods, pod)
        await registry.remove(pods, first)
        second = await registry.create(pods, pod)
        assert first.metadata.resource_version != second.metadata.resource_version
        assert (await registry.get(pods, "b", "a")) == second

    asyncio.run(played(tmp_path, play))

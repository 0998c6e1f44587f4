"""The API server in place of the model: plans are carried out by requests."""

from __future__ import annotations

from typing import Any

from moorage.api.catalogue import SERVED
from moorage.api.codec import decode_tree, to_tree
from moorage.client.indexer import object_key
from moorage.client.writes import Create, Delete, Patch, RecordEvent, Target, Update, Write
from moorage.controllers.controller import Lookup, ObjectChange
from tests.apiserver.client import MERGE_PATCH, Client, Reply
from tests.controllers.model import Model, RefusedError
from tests.controllers.things import NOW

_KINDS = {kind.struct: kind for kind in SERVED if kind.api_version == kind.hub_version}


class ServedModel(Model):
    """A server that takes writes as requests; the copy is brought up to date after each."""

    def __init__(self, client: Client) -> None:
        super().__init__(NOW)
        self._client = client
        client.now = NOW

    def get(self, struct: type[Any], namespace: str, name: str) -> Any:
        reply = self._client.get(_path(struct, namespace, name))
        return None if reply.status == 404 else _value(reply, struct)

    def answer(self, ask: Lookup) -> Any:
        return self.get(ask.struct, ask.namespace, ask.name)

    def write(self, write: Write) -> Any:
        match write:
            case RecordEvent():
                self.told.append(write)
                return None
            case Create(value=value):
                target = Target.of(value)
                path = _path(target.struct, target.namespace)
                reply = self._client.post(path, to_tree(value))
            case Update(value=value, subresource=part):
                target = Target.of(value)
                reply = self._client.put(_path_of(target, part), to_tree(value))
            case Patch(target=target, body=body, subresource=part):
                reply = self._client.patch(_path_of(target, part), body, MERGE_PATCH)
            case Delete(target=target):
                reply = self._client.delete(_path_of(target), _options(write))
            case _:
                raise AssertionError("no controller of workloads applies")
        if reply.status >= 400:
            raise RefusedError(reply.reason, reply.message)
        stored = None if isinstance(write, Delete) else _value(reply, target.struct)
        self._see(target if stored is None else Target.of(stored))
        return stored

    def _see(self, target: Target) -> None:
        new = self.get(target.struct, target.namespace, target.name)
        old = self.objects.get(target.struct, target.namespace, target.name)
        if new is not None:
            self.objects.put(new)
        elif old is not None:
            self.objects.remove(target.struct, *object_key(old))
        self.follow(ObjectChange(old, new))


def _path(struct: type[Any], namespace: str, name: str = "") -> str:
    kind = _KINDS[struct]
    root = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.api_version}"
    place = f"/namespaces/{namespace}" if kind.namespaced else ""
    return f"{root}{place}/{kind.plural}" + (f"/{name}" if name else "")


def _path_of(target: Target, part: str = "") -> str:
    path = _path(target.struct, target.namespace, target.name)
    return f"{path}/{part}" if part else path


def _options(write: Delete) -> dict[str, Any]:
    wanted = {"uid": write.target.uid, "resourceVersion": write.revision}
    options: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {key: value for key, value in wanted.items() if value},
    }
    if write.propagation:
        options["propagationPolicy"] = write.propagation
    if write.grace_s is not None:
        options["gracePeriodSeconds"] = write.grace_s
    return options


def _value(reply: Reply, struct: type[Any]) -> Any:
    if reply.status >= 400:
        raise RefusedError(reply.reason, reply.message)
    return decode_tree(reply.json, struct).value

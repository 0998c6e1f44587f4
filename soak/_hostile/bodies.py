"""Bodies of requests: objects as JSON, YAML and protobuf with their tricks, and patches."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import yaml

from moorage.api import protobuf
from moorage.api.kinds import Kind
from moorage.api.schema import find_kind
from soak._damage import damaged_bytes
from soak._hostile.grammar import Grammar
from soak._hostile.objects import good_objects
from soak._hostile.values import WRONG, copied, pick
from soak._requests import (
    APPLY,
    CBOR_APPLY,
    JSON,
    JSON_PATCH,
    MERGE,
    PROTOBUF,
    STRATEGIC,
    YAML,
    pointer,
    with_directives,
)

NAMES = ("a", "b", "c", "d")
GOOD, ONE, GROWN = (
    0.25,
    0.75,
    0.95,
)  # shares of objects: unchanged, mutated, with grown fields, grown
PATCHES = (MERGE, STRATEGIC, JSON_PATCH, APPLY)
MEDIA = (JSON, YAML, PROTOBUF, MERGE, STRATEGIC, JSON_PATCH, APPLY, CBOR_APPLY, "", "text/plain",
         "application/json; charset=utf-16", "application/x-www-form-urlencoded", "*/*",
         "a/b/c")  # fmt: skip

_METADATA: tuple[dict[str, Any], ...] = (
    {"generateName": "g-", "name": ""},
    {"finalizers": ["x/y"]},
    {"finalizers": ["foregroundDeletion"]},
    {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "1"}]},
    {"ownerReferences": [{"apiVersion": "v1", "kind": "Namespace", "name": "quiet", "uid": "1",
                          "controller": True, "blockOwnerDeletion": True}]},
    {"resourceVersion": "1"},
    {"resourceVersion": "x"},
    {"uid": "../../x"},
    {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 2**63 - 1},
    {"managedFields": [{"manager": "x", "operation": "Apply", "fieldsV1": {"f:spec": {}}}]},
    {"managedFields": [{"manager": "x", "operation": "Update", "fieldsV1": {"k:{": 1}}]},
    {"managedFields": [{"manager": "\x1b", "operation": "Apply", "fieldsType": "FieldsV1",
                        "time": "10000-01-01T00:00:00Z",
                        "fieldsV1": {"f:a": {"k:{\"a\":1}": {}}}}]},
    {"namespace": "quiet"},
    {"namespace": "kube-system"},
    {"annotations": {"x": "y" * 300_000}},
    {"labels": {"a": "\u202e"}},
    {"selfLink": "/x", "generation": -1},
)  # fmt: skip

# What YAML alone can say; each stands where a value stands.
_YAML_VALUES = (
    b"&a [*a]", b"*nowhere", b"!!python/object/apply:os.getpid []", b"!!binary eA==",
    b"!!set {a, b}",
    b"!!omap [a: 1]", b"!!timestamp 2026-01-01", b"!!int 0x", b"!<tag:x> y", b"! x", b"!!str",
    b".inf", b".nan", b"~", b"0o17", b"017", b"1_000", b"0b11", b"1:30:00", b"yes", b"{? [a] : b}",
    b"{a: 1, a: 2}",
    b"|-\n      x", b">\n      x\n\n      y", b'"\\x00\\ud800"', b"'\n'", b"- - - a", b"\xff\xfe",
    b"2026-01-01", b"[" * 300 + b"]" * 300, b"{a: " * 300 + b"}" * 300, b"&a x\n  b: &a y\n  c: *a",
)  # fmt: skip
_YAML_HEADS = (
    b"", b"", b"", b"%YAML 1.1\n---\n", b"%YAML 9.9\n---\n", b"%TAG ! tag:x,2000:\n---\n",
    b"---\n---\n", b"\xef\xbb\xbf", b"%X\n---\n",
    b"".join(b"%%TAG !t%d! tag:x:\n" % n for n in range(60)) + b"---\n",
)  # fmt: skip
_LAUGHS = b"".join(
    b"l%d: &l%d [%s]\n" % (n, n, b",".join([b"*l%d" % (n - 1)] * 9)) for n in range(1, 10)
)


class Bodies:
    """Makes bodies of a case."""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar

    # --- objects ------------------------------------------------------------------------------

    def tree(self, random: Random, kind: Kind, namespace: str, name: str = "") -> Any:
        """Return an object of a kind: good, or more or less mutated."""
        type_name = find_kind(kind.api_version, kind.name)
        assert type_name is not None
        chance = random.random()
        if chance > GROWN:
            tree = self.grammar.grow(random, type_name)
            tree |= {"apiVersion": kind.api_version, "kind": kind.name}
        else:
            tree = json.loads(pick(random, good_objects(kind)))
        metadata = tree.get("metadata")
        if not isinstance(metadata, dict):
            metadata = tree["metadata"] = {}
        metadata["name"] = name or pick(random, NAMES)
        if kind.namespaced:
            metadata["namespace"] = namespace
        else:
            metadata.pop("namespace", None)
        for about in ("involvedObject", "regarding"):  # events are where their object is
            if isinstance(tree.get(about), dict):
                tree[about]["namespace"] = namespace
        if random.random() < 0.12:
            metadata.update(copied(pick(random, _METADATA)))
        if chance >= GOOD:
            for _ in range(1 if chance < ONE else 1 + int(random.random() * 3)):
                self.grammar.mutate(random, tree, type_name)
        return tree

    def object_body(
        self, random: Random, kind: Kind, namespace: str, name: str = ""
    ) -> tuple[bytes, str]:
        """Return the bytes of an object, and their content type."""
        tree = self.tree(random, kind, namespace, name)
        chance = random.random()
        if chance < 0.80:
            data, media = json_bytes(random, tree), JSON
        elif chance < 0.86:
            data, media = self._yaml(random, tree), YAML
        elif chance < 0.96:
            data, media = self._protobuf(random, tree, kind), PROTOBUF
        else:
            data, media = damaged_bytes(random, json_bytes(random, tree)), JSON
        if random.random() < 0.02:
            media = pick(random, MEDIA)
        return data, media

    def _yaml(self, random: Random, tree: Any) -> bytes:
        chance = random.random()
        if chance < 0.3:
            return _dumped(tree)
        if chance < 0.4:
            return _LAUGHS + _dumped(tree)
        value = pick(random, _YAML_VALUES)
        if chance < 0.5:
            value = damaged_bytes(random, value)
        head = pick(random, _YAML_HEADS)
        return head + _dumped(tree).replace(b"name: ", b"trick: " + value + b"\n  name: ", 1)

    def _protobuf(self, random: Random, tree: Any, kind: Kind) -> bytes:
        chance = random.random()
        if chance < 0.3:
            return protobuf_bomb(random)
        try:
            data = protobuf.encode(tree)
        except Exception:  # a mutated object has no form in protobuf
            data = protobuf.encode(json.loads(good_objects(kind)[0]))
        return data if chance < 0.6 else damaged_bytes(random, data)

    # --- patches ------------------------------------------------------------------------------

    def patch_body(
        self, random: Random, kind: Kind, namespace: str, name: str
    ) -> tuple[bytes, str]:
        """Return the bytes of a patch, and their content type."""
        media = pick(random, PATCHES)
        tree = self.tree(random, kind, namespace, name)
        body: Any = tree
        if media == JSON_PATCH:
            count = pick(random, (0, 1, 1, 2, 4, 60))
            body = [self._operation(random, tree) for _ in range(count)]
        elif media == STRATEGIC:
            body = with_directives(random, tree)
        elif media == MERGE and isinstance(tree, dict) and tree:
            body = {
                key: tree[key] for key in random.sample(list(tree), 1 + int(random.random() * 2))
            }
        data = json_bytes(random, body)
        if media == APPLY and random.random() < 0.15:
            data = self._yaml(random, body)
        if random.random() < 0.04:
            data = damaged_bytes(random, data)
        if random.random() < 0.03:
            media = pick(random, MEDIA)
        return data, media

    def _operation(self, random: Random, tree: Any) -> Any:
        operation: dict[str, Any] = {
            "op": pick(random, ("add", "add", "remove", "replace", "move", "copy", "test", "x")),
            "path": pointer(random, tree),
        }
        if random.random() < 0.3:
            operation["from"] = pointer(random, tree)
        if random.random() < 0.85:
            is_string = random.random() < 0.5
            operation["value"] = (
                self.grammar.lexicon.string(random) if is_string else pick(random, WRONG)
            )
        return operation


def json_bytes(random: Random, tree: Any) -> bytes:
    """Return a tree as JSON, now and then with a trick of JSON."""
    text = json.dumps(tree)
    if random.random() > 0.06:
        return text.encode()
    match int(random.random() * 10):
        case 0:
            text = text.replace('"kind"', '"kind": "X", "kind"', 1)
        case 1:
            text = text.replace('"name"', '"name": null, "name": [], "name"', 1)
        case 2:
            text = "\ufeff" + text
        case 3:
            text += text
        case 4:
            text = text.replace(": 1", ": " + "1" * 5000, 1)
        case 5:
            text = text.replace(": 1", ": 1e999999", 1)
        case 8:
            deep = pick(random, (900, 5_000, 100_000))
            text = text.replace('": "', '": ' + '{"a":' * deep + "1" + "}" * deep + ', "y": "', 1)
        case 6:
            return text.encode("utf-16")
        case 7:
            return text.encode().replace(b"a", b"\xff", 1)
        case _:
            text = "[" * 20_000 + text
    return text.encode()


def _dumped(tree: Any) -> bytes:
    try:
        return yaml.dump(tree, Dumper=_DUMPER, sort_keys=False).encode(errors="replace")
    except (yaml.YAMLError, RecursionError, UnicodeError):
        return b"a: b"


_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

_HEAD = b"k8s\x00"


def protobuf_bomb(random: Random) -> bytes:
    """Return bytes that a reader of protobuf may stumble over."""
    varint = pick(
        random, (b"\xff" * 9 + b"\x01", b"\xff" * 30, b"\x80" * 5, b"\x00", b"\xff\xff\xff\xff\x07")
    )
    nested = b""
    for _ in range(pick(random, (3, 40, 2000))):
        nested = b"\x0a" + _varint(len(nested)) + nested
    choices = (
        _HEAD + varint,
        _HEAD + b"\x12" + varint,
        _HEAD + nested,
        _HEAD + b"\x0a\x09\x0a\x02v1\x12\x03Pod\x12" + _varint(len(nested)) + nested,
        _HEAD + b"\x0b" * 500,
        _HEAD + b"\x07",
        _HEAD + b"\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x04\x0a\x02\x0a" + varint,
        _HEAD + bytes(int(random.random() * 256) for _ in range(60)),
        _HEAD[:3],
        b"k8s\x01" + nested,
    )
    return pick(random, choices)


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes((*found, number))

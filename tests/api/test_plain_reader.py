"""The reader of plain JSON returns the same object as the careful one, or nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.catalogue import CATALOGUE
from moorage.api.codec import encode_json
from moorage.api.documents import expand_lists, read
from moorage.api.errors import ApiError
from moorage.api.gates import Gates
from moorage.api.object_reader import ReadObject, read_document, read_tree
from moorage.api.plain_reader import PLAIN_BYTES_MAX, PlainItems, read_plain_json

EXAMPLES = Path(__file__).parents[2] / "examples"
GATES = Gates.parse()
ODD: tuple[Any, ...] = (
    None,
    "",
    0,
    7,
    -1,
    1.5,
    10**30,
    True,
    [],
    [{}],
    {},
    {"a": 1},
    "x",
    "1Gi",
    "2026-01-01",
)
MORE = (
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "n", "labels": {"a": "b"}},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "k"}}]}},
        "status": {
            "allocation": {
                "devices": {
                    "results": [{"request": "r", "driver": "d", "pool": "p", "device": "x"}]
                },
                "allocationTimestamp": "2026-01-01T00:00:00Z",
            },
            "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
        },
    },
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "creationTimestamp": None},
        "spec": {
            "containers": [
                {
                    "name": "c",
                    "image": "i",
                    "resources": {"requests": {"cpu": "500m"}, "claims": [{"name": "r"}]},
                    "livenessProbe": {"httpGet": {"port": 80}, "periodSeconds": 3},
                }
            ],
            "volumes": [{"name": "v", "emptyDir": {}}],
            "resourceClaims": [{"name": "r", "resourceClaimName": "c"}],
        },
        "status": {"resourceClaimStatuses": [{"name": "r", "resourceClaimName": "c"}]},
    },
    {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "n"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "regarding": {"kind": "Pod", "name": "p"},
        "deprecatedFirstTimestamp": None,
    },
)


def _trees() -> list[Any]:
    found: list[Any] = list(MORE)
    for path in sorted(EXAMPLES.rglob("*.yaml")):
        for document in read(path.read_bytes(), source=path.name):
            trees = [item.tree for item in expand_lists(document)]
            found += [tree for tree in trees if _is_known(tree)]
    return found


def _is_known(tree: Any) -> bool:
    if not isinstance(tree, dict):
        return False
    return (str(tree.get("apiVersion")), str(tree.get("kind"))) in CATALOGUE


TREES = _trees()


def careful(data: bytes) -> ReadObject:
    (document,) = read(data, source="x")
    return read_document(document, gates=GATES)


def check(data: bytes, tree: Any) -> Any:
    """Read text with both readers; return the object if the quick one dared."""
    kind = CATALOGUE.find(tree["apiVersion"], tree["kind"])
    value = read_plain_json(data, kind)
    if value is not None:
        reading = careful(data)
        assert (reading.remarks, reading.problems) == ((), ())
        assert reading.value == value
        assert repr(reading.value) == repr(value)
        again = encode_json(value)
        of_struct = read_plain_json(again, kind, is_from_struct=True)
        assert repr(of_struct) == repr(read_plain_json(again, kind))
    return value


def places(tree: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = tree.items() if isinstance(tree, dict) else enumerate(tree)
    found = []
    for key, value in inner:
        found.append((*here, key))
        if isinstance(value, dict | list):
            found += places(value, (*here, key))
    return found


@st.composite
def texts(draw: st.DrawFn) -> tuple[bytes, Any]:
    """Return JSON text of an object in which a few values and keys are odd."""
    tree = json.loads(json.dumps(draw(st.sampled_from(TREES)), default=str))
    for _ in range(draw(st.integers(0, 2))):
        *above, last = draw(st.sampled_from([p for p in places(tree) if p[0] not in HEAD]))
        holder = tree
        for step in above:
            holder = holder[step]
        value = draw(st.sampled_from([*ODD, holder[last]]))
        holder[last] = value
        if isinstance(holder, dict) and draw(st.booleans()):
            holder[draw(st.sampled_from(["unknown", f"{last}s", last.upper()]))] = value
        tree = json.loads(json.dumps(tree))  # no value is shared
    text = json.dumps(tree, separators=draw(st.sampled_from([(",", ":"), (", ", ": ")])))
    if draw(st.booleans()):  # The first value of some key comes twice.
        key = draw(st.sampled_from([p[-1] for p in places(tree) if isinstance(p[-1], str)]))
        text = text.replace(f'"{key}":', f'"{key}":null,"{key}":', 1)
    return text.encode(), tree


HEAD = ("apiVersion", "kind")


@settings(max_examples=600)
@given(texts())
def test_it_reads_what_the_careful_reader_reads(case: tuple[bytes, Any]) -> None:
    data, tree = case
    try:
        check(data, tree)
    except ApiError as error:
        pytest.fail(f"only the careful reader refuses {data!r}: {error}")


@pytest.mark.parametrize("tree", MORE, ids=lambda tree: tree["kind"])
def test_usual_objects_are_plain(tree: Any) -> None:
    compact = json.dumps(tree, separators=(",", ":")).encode()
    assert check(compact, tree) is not None
    assert check(json.dumps(tree).encode(), tree) is not None


def test_doubtful_text_is_left_to_the_careful_reader() -> None:
    claim, pod, _ = MORE
    texts = {
        "a key twice": json.dumps(claim).replace('"name": "r"', '"name": "r", "name": "r"'),
        "an unknown field": json.dumps({**claim, "more": 1}),
        "another kind": json.dumps({**claim, "kind": "DeviceClass"}),
        "another version": json.dumps({**claim, "apiVersion": "resource.k8s.io/v1beta2"}),
        "an escaped character": json.dumps({**claim, "metadata": {"name": "\ud800"}}),
        "a fraction": json.dumps({**claim, "metadata": {"generation": 1.5}}),
        "much text": json.dumps(claim) + " " * PLAIN_BYTES_MAX,
        "depth": json.dumps(claim)[:-1] + ',"spec":' + "[" * 1000 + "]" * 1000 + "}",
    }
    for why, text in texts.items():
        assert check(text.encode(), claim) is None, why
    kep = {**pod, "status": {"extendedResourceClaimStatus": {"requestMapping": []}}}
    assert check(json.dumps(kep).encode(), pod) is None


# --- items of dumps ---------------------------------------------------------------------------

ITEMS = PlainItems(GATES, extensions=True)


def check_item(data: bytes) -> ReadObject | None:
    """Read an item with both readers; return the object if the quick one dared."""
    found = ITEMS.read_json(data)
    if found is not None:
        reading = careful(data)
        assert reading == found
        assert repr(reading) == repr(found)
    return found


def as_kubectl(tree: Any) -> bytes:
    """Return JSON as kubectl prints it, without its spaces."""
    text = json.dumps(tree, separators=(",", ":"), sort_keys=True)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text.encode()


@settings(max_examples=600)
@given(texts(), st.booleans())
def test_an_item_is_read_as_the_careful_reader_reads_it(
    case: tuple[bytes, Any], is_sorted: bool
) -> None:
    data, tree = case
    data = as_kubectl(tree) if is_sorted else msgspec.json.format(data, indent=-1)
    try:
        check_item(data)
        careful_tree = ITEMS.read_tree(tree)
        if careful_tree is not None and data.isascii():
            assert careful_tree == read_tree(tree, gates=GATES)
    except ApiError as error:
        pytest.fail(f"only the careful reader refuses {data!r}: {error}")


@pytest.mark.parametrize("tree", MORE[:2], ids=lambda tree: tree["kind"])
def test_usual_items_are_plain(tree: Any) -> None:
    assert check_item(as_kubectl(tree)) is not None


def test_what_go_escapes_is_read_and_nothing_else() -> None:
    claim = MORE[0]
    ask = {"name": "r", "exactly": {"deviceClassName": "k"}}
    for expression in ("1 < 2 && 3 > 2", r"'\u003c' == \"<\"", "device.name == 'x'", "ä"):
        selectors = [{"cel": {"expression": expression}}]
        exactly = {**ask["exactly"], "selectors": selectors}  # type: ignore[dict-item]
        tree = {**claim, "spec": {"devices": {"requests": [{**ask, "exactly": exactly}]}}}
        found = check_item(as_kubectl(tree))
        assert (found is not None) == (expression == "1 < 2 && 3 > 2"), expression


def test_an_item_with_a_key_twice_is_left_to_the_careful_reader() -> None:
    """Even if a field that is always written makes up for the key that is lost."""
    pod = MORE[1]
    one, other = '{"image":"i","name":"a"}', '{"image":"i","image":"j","name":"a"}'
    text = as_kubectl({**pod, "spec": {"containers": []}}).decode()
    for containers, is_plain in ((f"[{one}]", True), (f"[{other}]", False)):
        data = text.replace('"containers":[]', f'"containers":{containers}')
        assert (check_item(data.encode()) is not None) is is_plain
    statuses = '"status":{"containerStatuses":[{"name":"a","name":"a","ready":true},{"ready":true}]'
    assert check_item(text.replace('"status":{', f"{statuses},", 1).encode()) is None

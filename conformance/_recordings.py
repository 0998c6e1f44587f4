"""What recordings of a control plane replace, and how ours are compared with them.

Recordings have no uids, times and revisions. Made-up names are `<prefix><n>`, uids within texts
`<uid>`, shares `<share-n>`. Messages are equal if ours begins with theirs: ours may say more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

Tree = dict[str, Any]

UNNAMED = "<?>"  # a made-up name that never became an object
SIMILAR = "(combined from similar events): "
DROPPED = {"uid", "resourceVersion", "managedFields", "selfLink", "name", "namespace"}

_UID_OF = re.compile(r"\$\{uid:(\w+)/([^}]+)\}")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_SHARE = re.compile(r"<share-\d+>")
_SUFFIX = "[a-z0-9]{5}"


# --- names --------------------------------------------------------------------------------------


class Names:
    """Our generated names, by their placeholders in a recording."""

    def __init__(self) -> None:
        self.ours: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def learn(self, prefix: str, name: str) -> None:
        """Take note of an object with a made-up name; those of a prefix are numbered."""
        if prefix and name not in self.ours.values():
            number = self._counts[prefix] = self._counts.get(prefix, 0) + 1
            self.ours[f"{prefix}<{number}>"] = name

    def own(self, tree: Any, uid_of: Callable[[str, str], str]) -> Any:
        """Return a recorded tree with our names and uids."""
        text = json.dumps(tree)
        for theirs, ours in self.ours.items():
            text = text.replace(json.dumps(theirs)[1:-1], ours)
        return json.loads(_UID_OF.sub(lambda found: uid_of(found[1], found[2]), text))

    def recorded(self, tree: Any) -> Any:
        """Return a tree of ours with the names that a recording has."""
        text = json.dumps(tree)
        for theirs, ours in self.ours.items():
            text = text.replace(ours, json.dumps(theirs)[1:-1])
        return json.loads(text)


# --- compared parts of an object ----------------------------------------------------------------


def plain(tree: Any, *, is_metadata: bool = False) -> Any:
    """Return a tree without what recordings leave out: times, uids, revisions, absent values."""
    if isinstance(tree, Mapping):
        return {
            key: "<set>" if key == "deletionTimestamp" else plain(value)
            for key, value in tree.items()
            if not _is_dropped(key, value, is_metadata=is_metadata)
        }
    if isinstance(tree, list):
        return [plain(each) for each in tree]
    return tree


def plain_object(tree: Tree) -> Tree:
    """Return metadata, spec and status of an object, as recordings have them."""
    return {
        "metadata": plain(tree["metadata"], is_metadata=True),
        "spec": plain(tree.get("spec") or {}),
        "status": plain(tree.get("status") or {}),
    }


def _is_dropped(key: str, value: Any, *, is_metadata: bool) -> bool:
    if value is None or (is_metadata and key in DROPPED):
        return True
    if key in ("uid", "resourceVersion"):
        return True
    is_time = isinstance(value, str) and _TIME.fullmatch(value) is not None
    return is_time and key != "deletionTimestamp"


def plain_event(tree: Tree) -> Tree:
    """Return what recordings have of an event."""
    about = tree.get("regarding") or tree.get("involvedObject") or {}
    source = tree.get("source") or tree.get("deprecatedSource") or {}
    return {
        "type": tree.get("type", ""),
        "reason": tree.get("reason", ""),
        "message": (tree.get("message") or tree.get("note") or "").removeprefix(SIMILAR),
        "object": f"{about.get('kind')}/{about.get('name')}",
        "from": tree.get("reportingComponent") or source.get("component", ""),
    }


# --- comparing ----------------------------------------------------------------------------------


class Comparison:
    """Finds differences; a share's placeholder in a recording maps to one share of ours."""

    def __init__(self) -> None:
        self._shares: dict[str, str] = {}

    def differences(self, path: str, theirs: Any, ours: Any) -> Iterator[str]:
        """Give the differences between two trees, each as a line."""
        if isinstance(theirs, Mapping) and isinstance(ours, Mapping):
            for key in sorted({*theirs, *ours}):
                inner = f"{path}/{key}" if path else key
                if key not in ours or key not in theirs:
                    yield _line(inner, theirs.get(key, _ABSENT), ours.get(key, _ABSENT))
                else:
                    yield from self._field(inner, key, theirs[key], ours[key])
        elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
            for number, pair in enumerate(zip(theirs, ours, strict=True)):
                yield from self.differences(f"{path}[{number}]", *pair)
        elif not self._is_same(theirs, ours):
            yield _line(path, theirs, ours)

    def _field(self, path: str, key: str, theirs: Any, ours: Any) -> Iterator[str]:
        if key == "message" and isinstance(theirs, str) and isinstance(ours, str):
            if not says(ours, theirs):
                yield _line(path, theirs, ours)
            return
        if key == "reservedFor":  # a set
            theirs, ours = _sorted(theirs), _sorted(ours)
        yield from self.differences(path, theirs, ours)

    def _is_same(self, theirs: Any, ours: Any) -> bool:
        if isinstance(theirs, str) and _SHARE.fullmatch(theirs) and isinstance(ours, str):
            known = self._shares.setdefault(theirs, ours)
            return known == ours and list(self._shares.values()).count(ours) == 1
        return type(theirs) is type(ours) and theirs == ours


def says(ours: str, theirs: str) -> bool:
    """Return whether a message of ours says what theirs does, and perhaps more."""
    pattern = re.escape(theirs).replace(re.escape(UNNAMED), _SUFFIX)
    return re.match(pattern, _UUID.sub("<uid>", ours)) is not None


def is_same_event(theirs: Tree, ours: Tree) -> bool:
    """Return whether an event of ours is a recorded one."""
    keys = ("type", "reason", "object", "from")
    return all(theirs[k] == ours[k] for k in keys) and says(ours["message"], theirs["message"])


def without(tree: Any, paths: Iterable[str]) -> Any:
    """Return a copy of a tree without the values at some paths; / separates their parts."""
    tree = json.loads(json.dumps(tree))
    for path in paths:
        *above, last = path.split("/")
        place = tree
        for part in above:
            place = place.get(part) if isinstance(place, dict) else None
        if isinstance(place, dict):
            place.pop(last, None)
    return tree


def _sorted(values: Sequence[Any]) -> list[Any]:
    return sorted(values, key=lambda each: json.dumps(each, sort_keys=True))


class _Absent:
    """The placeholder for a key that one side does not have."""


_ABSENT = _Absent()
_SHOWN_MAX = 600


def _line(path: str, theirs: Any, ours: Any) -> str:
    return f"{path}: Kubernetes {_shown(theirs)}, Moorage {_shown(ours)}"


def _shown(value: Any) -> str:
    if value is _ABSENT:
        return "has none"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"

"""Pod groups and the composite groups above them: a forest, kept by name.

    CompositePodGroup training          a root: nothing is above it
      ├── CompositePodGroup workers
      │     ├── PodGroup workers-0      a leaf: it has pods
      │     └── PodGroup workers-1
      └── PodGroup launcher

A group names its parent, which may not exist: its pods then wait. Pods of all leaves below a root
are tried together.
"""

from __future__ import annotations

from collections.abc import Iterator

from moorage.api.scheduling import CompositePodGroup, PodGroup

GROUP = "group"
COMPOSITE = "composite"
DEPTH_MAX = 5  # of a tree, as in Kubernetes

GroupKey = tuple[str, str, str]  # GROUP or COMPOSITE, namespace, name
AnyGroup = PodGroup | CompositePodGroup


def key_of(group: AnyGroup) -> GroupKey:
    """Return the key of a group or composite group."""
    kind = GROUP if isinstance(group, PodGroup) else COMPOSITE
    return kind, group.metadata.namespace, group.metadata.name


class GroupForest:
    """All groups and composite groups; without the feature, every group is a root."""

    def __init__(self, *, has_composites: bool) -> None:
        self.groups: dict[tuple[str, str], PodGroup] = {}
        self.composites: dict[tuple[str, str], CompositePodGroup] = {}
        self._has_composites = has_composites
        self._children: dict[GroupKey, set[GroupKey]] = {}

    def put(self, group: AnyGroup) -> None:
        """Add a group, or its newer version."""
        self.remove(group)
        name = group.metadata.namespace, group.metadata.name
        if isinstance(group, PodGroup):
            self.groups[name] = group
        else:
            self.composites[name] = group
        if (parent := self._parent_of(group)) is not None:
            self._children.setdefault(parent, set()).add(key_of(group))

    def remove(self, group: AnyGroup) -> None:
        """Remove a group; those below it stay."""
        key = key_of(group)
        old = self.get(key)
        if old is None:
            return
        if (parent := self._parent_of(old)) is not None:
            children = self._children[parent]
            children.discard(key)
            if not children:
                del self._children[parent]
        if isinstance(group, PodGroup):
            del self.groups[key[1:]]
        else:
            del self.composites[key[1:]]

    def get(self, key: GroupKey) -> AnyGroup | None:
        """Return a group, if it exists."""
        kind, *name = key
        namespace, own = name
        if kind == GROUP:
            return self.groups.get((namespace, own))
        return self.composites.get((namespace, own))

    def upwards(self, key: GroupKey) -> Iterator[AnyGroup]:
        """Yield a group and those above it, as far as they exist."""
        for _ in range(DEPTH_MAX):
            group = self.get(key)
            if group is None:
                return
            yield group
            parent = self._parent_of(group)
            if parent is None:
                return
            key = parent

    def root_of(self, key: GroupKey) -> GroupKey:
        """Return the root above a group: the last one named, whether it exists or not."""
        for group in self.upwards(key):
            key = self._parent_of(group) or key_of(group)
        return key

    def is_complete(self, key: GroupKey) -> bool:
        """Return whether a group and all groups above it exist."""
        return (root := self.get(self.root_of(key))) is not None and self._parent_of(root) is None

    def children(self, key: GroupKey) -> list[AnyGroup]:
        """Return the groups right below a composite group, the oldest first."""
        found = [each for each in map(self.get, self._children.get(key, ())) if each is not None]
        return sorted(found, key=_age)

    def leaves(self, key: GroupKey, depth_left: int = DEPTH_MAX) -> Iterator[PodGroup]:
        """Yield the pod groups in the tree below a group, or the group itself."""
        group = self.get(key)
        if isinstance(group, PodGroup):
            yield group
        elif depth_left > 1:
            for child in self.children(key):
                yield from self.leaves(key_of(child), depth_left - 1)

    def _parent_of(self, group: AnyGroup) -> GroupKey | None:
        name = group.spec.parent_composite_pod_group_name if self._has_composites else None
        return None if not name else (COMPOSITE, group.metadata.namespace, name)


def _age(group: AnyGroup) -> tuple[str, str]:
    created = group.metadata.creation_timestamp
    return "" if created is None else str(created), group.metadata.name

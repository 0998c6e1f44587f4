"""What structs and fields are for, in our own words: one table a group.

STRUCT
  FIELD: words
  FIELD FIELD: words that fit both
*
  FIELD: words, for every struct that has no others
"""

from __future__ import annotations

from functools import cache

from mooring.apiserver.openapi.descriptions import core, meta, pods, resource, scheduling

_ANY = "*"

_CORE = f"{core.CORE}{pods.PODS}"

# The other groups are core and those that are made of its pods.
_TABLES = {
    "resource.k8s.io": resource.RESOURCE,
    "scheduling.k8s.io": scheduling.SCHEDULING,
}

Words = dict[tuple[str, str], str]  # by struct and field


def describe_field(group: str, struct: str, field: str) -> str:
    """Return what a field is for; nothing if there are no words for it."""
    for words in (_words(_TABLES.get(group, _CORE)), _words(meta.META)):
        if found := words.get((struct, field)) or words.get((_ANY, field)):
            return found
    return ""


@cache
def _words(text: str) -> Words:
    found: Words = {}
    struct = ""
    for line in text.splitlines():
        head, _, words = line.partition(":")
        if line.startswith(" "):
            found.update({(struct, field): words.strip() for field in head.split()})
        else:
            struct = head
    return found

from __future__ import annotations

from typing import Any

from mooring.api.protobuf.maketable import HEADER, table

FIELDS: dict[str, Any] = {
    "meta/v1": {
        "package": "k8s.io.apimachinery.pkg.apis.meta.v1",
        "messages": {"Time": {"seconds": [1, "optional", "int64"]}},
    },
    "core/v1": {
        "package": "k8s.io.api.core.v1",
        "messages": {
            "Thing": {
                "uID": [3, "optional", "string"],
                "made": [1, "optional", "k8s.io.apimachinery.pkg.apis.meta.v1.Time"],
                "source": [2, "optional", "Source"],
                "count": [4, "optional", "int32"],
                "parts": [5, "repeated", "Source"],
                "labels": [6, "map", "string", "string"],
            },
            "Source": {"path": [1, "optional", "string"]},
            "NobodyUses": {"path": [1, "optional", "string"]},
        },
    },
}
PRESENCE: dict[str, Any] = {
    "meta/v1": {"Time": {"fields": {}}},
    "core/v1": {
        "Thing": {
            "kind": True,
            "fields": {
                "made": {"number": 1, "json": "made", "omitempty": True},
                "source": {"number": 2, "json": "", "inline": True},
                "uID": {"number": 3, "json": "uid"},
                "count": {"number": 4, "json": "count", "pointer": True, "omitempty": True},
                "parts": {"number": 5, "json": "parts"},
                "labels": {"number": 6, "json": "labels", "omitempty": True},
            },
        },
        "Source": {"fields": {"path": {"number": 1, "json": "path", "omitempty": True}}},
    },
}


THING = (
    "Thing! made:1:time :2:~Source uid:3:+string count:4:*int32 parts:5:[]Source labels:6:{}string"
)


def test_the_table_says_names_numbers_types_and_presence() -> None:
    assert list(table(FIELDS, PRESENCE)) == [
        *HEADER.splitlines(),
        "= core/v1",
        THING,
        "Source path:1:string",
    ]

"""The options of a request for the log of a container."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from moorage.api.errors import DecodeError
from moorage.api.go_integers import parse_int64
from moorage.api.timestamp import Timestamp

ALL_STREAMS = "All"


class PodLogOptions(Struct, frozen=True):
    """Which log to return, and how much of it."""

    container: str = ""
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    since_seconds: int | None = None
    since_time: Timestamp | None = None
    tail_lines: int | None = None
    limit_bytes: int | None = None
    stream: str = ALL_STREAMS

    @property
    def query(self) -> dict[str, str]:
        """The query of the same request to a node, whose path names the container."""
        flags = {"follow": self.follow, "previous": self.previous, "timestamps": self.timestamps}
        values = {
            "sinceSeconds": self.since_seconds,
            "sinceTime": self.since_time,
            "tailLines": self.tail_lines,
            "limitBytes": self.limit_bytes,
        }
        return {
            **{name: "true" for name, is_set in flags.items() if is_set},
            **{name: str(value) for name, value in values.items() if value is not None},
            **({"stream": self.stream} if self.stream != ALL_STREAMS else {}),
        }


def read_log_options(query: Mapping[str, str]) -> PodLogOptions:
    """Return the options in a query, or raise DecodeError."""
    since = query.get("sinceTime", "")
    return PodLogOptions(
        container=query.get("container", ""),
        follow=_flag(query, "follow"),
        previous=_flag(query, "previous"),
        timestamps=_flag(query, "timestamps"),
        since_seconds=_number(query, "sinceSeconds"),
        since_time=Timestamp.parse(since) if since else None,
        tail_lines=_number(query, "tailLines"),
        limit_bytes=_number(query, "limitBytes"),
        stream=query.get("stream") or ALL_STREAMS,
    )


def _flag(query: Mapping[str, str], name: str) -> bool:
    return name in query and query[name].lower() not in ("0", "false")


def _number(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name, "")
    if not text:
        return None
    number = parse_int64(text)
    if number is None:
        raise DecodeError(f'strconv.ParseInt: parsing "{text[:32]}": invalid syntax')
    return number

"""API objects in protobuf, the binary form that Kubernetes' own programs speak.

decode          body → apiVersion, kind and a tree (or JSON text) as a body in JSON would give
encode          tree → body, byte for byte as Kubernetes writes it
encode_object   the same for an object
encode_event    one event of a watch, with its length in front
decode_event    and back; split_events cuts a stream into messages

Modules: envelope (bodies and events), reader and writer (messages, by the schema), values
(scalars), wire (tags, varints and lengths).
"""

from moorage.api.protobuf.envelope import (
    ProtobufBody,
    WatchEvent,
    decode,
    decode_event,
    encode,
    encode_event,
    encode_object,
    is_protobuf,
    split_events,
)

CONTENT_TYPE = "application/vnd.kubernetes.protobuf"
WATCH_CONTENT_TYPE = f"{CONTENT_TYPE};stream=watch"

__all__ = [
    "CONTENT_TYPE",
    "WATCH_CONTENT_TYPE",
    "ProtobufBody",
    "WatchEvent",
    "decode",
    "decode_event",
    "encode",
    "encode_event",
    "encode_object",
    "is_protobuf",
    "split_events",
]

"""Distinguishes JSON from YAML and reads a stream, as kubectl does.

0. One plain JSON object, which most input is, is decoded at once.
1. A stream that begins with `{"` or `{}`, spaces aside, is read as JSON: one value, or several.
2. If that fails, the stream is read as YAML from that document on, because `{"a": b}` is YAML too,
   and so is everything after a `---`. If it is neither, the error is that of the JSON.
3. Everything else is YAML.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mooring.api.documents.document import Document, PlacedError
from mooring.api.documents.json_reader import JsonReader, NotJsonError, plain_document
from mooring.api.documents.scalars import CORE, Schema
from mooring.api.documents.stream import DEFAULT_LIMITS, DocumentStream, Limits, decode_text
from mooring.api.documents.yaml_reader import yaml_documents

_SPACE = re.compile(r"\s*+")
# To a YAML reader `...` ends the document, and so it does here.
_SPACE_AFTER_JSON = re.compile(r"\s*+(?:\.\.\.(?!\S)\s*+)?")
_JSON_OBJECT = re.compile(r'\{\s*+["}]')
# What YAML allows after a JSON value: a separator, a comment, `{a: b}`.
_YAML_AFTER_JSON = ("---", "#", "{")


def read(
    data: bytes, *, source: str, limits: Limits = DEFAULT_LIMITS, schema: Schema = CORE
) -> Iterator[Document]:
    """Yield the documents of a stream of YAML or JSON as they are read.

    Documents before a faulty one are yielded before DocumentError is raised.
    """
    if len(data) > limits.bytes_max:
        fact = f"{len(data)} bytes are more than the {limits.bytes_max} that are read"
        raise PlacedError(source, None, fact)
    if document := plain_document(data, source=source, limits=limits):
        yield document
        return
    text, fault = decode_text(data, source=source)
    stream = DocumentStream(text, source, limits, schema)
    start = _skip(_SPACE, text, 0)
    if _JSON_OBJECT.match(text, start):
        yield from _json_documents(stream, start)
    elif start < len(text):
        yield from yaml_documents(stream, start=0, count=0)
    if fault is not None:
        raise fault


def _json_documents(stream: DocumentStream, start: int) -> Iterator[Document]:
    reader = JsonReader(stream)
    count = 0
    while _JSON_OBJECT.match(stream.text, start):
        try:
            document, end = reader.read(start, count)
        except NotJsonError as error:
            yield from _as_yaml(stream, start, count, error)
            return
        count += 1
        stream.check_count(count, start)
        yield document
        start = _skip(_SPACE_AFTER_JSON, stream.text, end)
    if stream.text.startswith(_YAML_AFTER_JSON, start):
        yield from yaml_documents(stream, start=start, count=count)
    elif start < len(stream.text):
        fact = f"found {stream.text[start]!r} after a JSON value: expected `{{` or a `---` line"
        raise stream.fault(start, fact)


def _as_yaml(
    stream: DocumentStream, start: int, count: int, error: NotJsonError
) -> Iterator[Document]:
    """Read as YAML what is not JSON; if the first document fails, raise the better error."""
    if error.is_final:
        raise error.fault
    documents = yaml_documents(stream, start=start, count=count)
    try:
        first = next(documents)
    except PlacedError as yaml_fault:
        raise error.fault if error.is_placed else yaml_fault from None
    yield first
    yield from documents


def _skip(pattern: re.Pattern[str], text: str, start: int) -> int:
    found = pattern.match(text, start)
    return found.end() if found else start

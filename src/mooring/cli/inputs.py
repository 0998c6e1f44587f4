"""What `-f` names: files, directories and standard input, read with bounds.

for source in find_sources(paths, recursive=True):
    for document in source.documents(): …
"""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from mooring.api.documents import DEFAULT_LIMITS, Document, Limits, Schema, expand_lists, read
from mooring.api.errors import DocumentError

SUFFIXES = (".json", ".yaml", ".yml")  # what kubectl takes from a directory
STDIN = "-"
TAR_MAGIC, TAR_MAGIC_AT = b"ustar", 257
ARCHIVE_HINT = "an archive, not YAML or JSON; the name of a snapshot must end in .tar.gz or .tgz"
GZIP_MAGIC = b"\x1f\x8b"  # no text begins like this


class UnreadableError(Exception):
    """A source that cannot be read; the message gives place and fact."""


class Source(NamedTuple):
    """One file, or standard input."""

    name: str
    path: Path | None  # None is standard input

    def data(self, limits: Limits = DEFAULT_LIMITS) -> bytes:
        """Return the content, unpacked if it is packed, or raise UnreadableError."""
        content = self.packed(limits)
        return self._unpacked(content, limits) if content.startswith(GZIP_MAGIC) else content

    def packed(self, limits: Limits = DEFAULT_LIMITS) -> bytes:
        """Return the content as it is, or raise UnreadableError."""
        try:
            if self.path is None:
                content = sys.stdin.buffer.read(limits.bytes_max + 1)
            else:
                with self.path.open("rb") as file:
                    content = file.read(limits.bytes_max + 1)
        except OSError as error:
            raise UnreadableError(f"{self.name}: {error.strerror or error}") from None
        if len(content) > limits.bytes_max:
            raise self._too_large(limits)
        return content

    def _unpacked(self, content: bytes, limits: Limits) -> bytes:
        """Return what gzip packed; no more of it is unpacked than is read."""
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
                unpacked = file.read(limits.bytes_max + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise UnreadableError(f"{self.name}: not a whole gzip file: {error}") from None
        if len(unpacked) > limits.bytes_max:
            raise self._too_large(limits)
        if unpacked.startswith(TAR_MAGIC, TAR_MAGIC_AT):
            raise UnreadableError(f"{self.name}: {ARCHIVE_HINT}")
        return unpacked

    def _too_large(self, limits: Limits) -> UnreadableError:
        limit = f"{limits.bytes_max // 2**20} MiB"
        return UnreadableError(f"{self.name}: larger than {limit}, which is all that is read")

    def documents(self, *, schema: Schema) -> Iterator[Document]:
        """Yield the documents, items of lists one by one, until one cannot be read."""
        try:
            for document in read(self.data(), source=self.name, schema=schema):
                yield from expand_lists(document)
        except DocumentError as error:
            raise UnreadableError(str(error)) from None


def find_sources(names: Iterable[str], *, recursive: bool) -> Iterator[Source]:
    """Yield what the names stand for, files of a directory in the order of their names."""
    for name in names:
        if name == STDIN:
            yield Source("<stdin>", None)
            continue
        path = Path(name)
        if path.is_dir():
            yield from _directory(path, recursive=recursive)
        elif path.exists():
            yield Source(name, path)
        else:
            raise UnreadableError(f"{name}: no such file or directory")


def _directory(folder: Path, *, recursive: bool) -> Iterator[Source]:
    pattern = folder.rglob("*") if recursive else folder.glob("*")
    files = sorted(path for path in pattern if _is_manifest(path) and path.is_file())
    if not files:
        hint = "" if recursive else "; -R looks into subdirectories, too"
        raise UnreadableError(f"{folder}: no {', '.join(SUFFIXES)} files in it{hint}")
    for path in files:
        yield Source(str(path), path)


def _is_manifest(path: Path) -> bool:
    return path.name.removesuffix(".gz").endswith(SUFFIXES)

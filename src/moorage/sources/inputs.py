"""Inputs of `-f` and `--on`: files, directories, archives and standard input, with bounds.

    for source in find_sources(paths, recursive=True):
        for part in source.parts(skipped):
            for document in part.documents(schema=CORE, skipped=skipped): …

    # part: an input that is read at once: a file, a member of a tar or zip, or a snapshot

The content of a file decides its type, not its name. Files that belong to manifest tools
(kustomizations, Helm charts) are not objects; they are recognized and skipped.
"""

from __future__ import annotations

import codecs
import gzip
import io
import os
import re
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from moorage.api.documents import (
    Document,
    ItemReader,
    Limits,
    ObjectList,
    Schema,
    expand_lists,
    json_list,
    read,
    yaml_list,
)
from moorage.api.documents.document import Tree
from moorage.api.errors import DocumentError
from moorage.insight.errors import ArchiveError, UnknownMomentError
from moorage.insight.history.recording import is_recording
from moorage.insight.messages import Concern, counted, listed
from moorage.insight.snapshot.archive import Archive, is_snapshot, read_archive
from moorage.insight.snapshot.bundle import BYTES_MAX, GZIP_MAGIC, is_bundle, read_bundle
from moorage.sources.errors import NoManifestsError, UnreadableError
from moorage.sources.large_files import FileText, large_json
from moorage.sources.recordings import RecordedMoment, recorded_moment

SUFFIXES = (".json", ".yaml", ".yml")  # what kubectl takes from a directory
ARCHIVE_SUFFIXES = (".tar", ".tar.gz", ".tgz", ".zip")
STDIN = "-"
TEXT_HEAD_BYTES = 4096  # enough to tell whether a file is text
NAME_SHOWN_MAX = 255  # longer names are not file names
# Dumps of large clusters, and archives: kubectl prints 5,000 nodes with pods in 290 MiB.
FILE_LIMITS = Limits(bytes_max=384 * 1024 * 1024, nodes_max=10_000_000)
# How compressed files of other tools begin, and which tools those are.
OTHER_PACKINGS = {
    b"BZh": "bzip2",
    b"\xfd7zXZ\0": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"7z\xbc\xaf\x27\x1c": "7-Zip",
}


class Skipped(NamedTuple):
    """A file that contains no objects, and what to do about it."""

    name: str
    what: str
    remedy: str


class DocumentPart(NamedTuple):
    """An input that is read at once, or a list in a large file."""

    name: str
    content: bytes | Archive | FileText | RecordedMoment

    def documents(
        self, *, schema: Schema, skipped: list[Skipped], objects: ItemReader | None = None
    ) -> Iterator[Document]:
        """Yield the documents, with the items of lists one by one, until one cannot be read.

        Documents that belong to known tools are recorded as skipped. `objects` may read the items
        of dumps directly from their text.
        """
        try:
            if isinstance(self.content, Archive | RecordedMoment):
                for place, line in self.content.lines():
                    yield from read(line, source=f"{self.name}!{place}", schema=schema)
            elif isinstance(self.content, FileText):
                yield from self._read_stored(self.content, schema, skipped, objects)
            else:
                yield from self._read(self.content, schema, skipped, objects)
        except DocumentError as error:
            raise UnreadableError(str(error)) from None

    def _read_stored(
        self, text: FileText, schema: Schema, skipped: list[Skipped], objects: ItemReader | None
    ) -> Iterator[Document]:
        dump = json_list(text, source=self.name, limits=FILE_LIMITS, objects=objects)
        if dump is not None:
            yield from self._items(dump, skipped)
        else:
            content = text.part(0, text.bytes_count)
            yield from self._read(content, schema, skipped, objects)

    def _read(
        self,
        content: bytes,
        schema: Schema,
        skipped: list[Skipped],
        objects: ItemReader | None,
    ) -> Iterator[Document]:
        documents: Iterable[Document] = read(
            content, source=self.name, limits=FILE_LIMITS, schema=schema
        )
        if is_template(self.name, content):
            skipped.append(Skipped(self.name, *HELM_TEMPLATE))
            return
        dump = json_list(content, source=self.name, limits=FILE_LIMITS, objects=objects)
        if dump is None:
            dump = yaml_list(
                content, source=self.name, schema=schema, limits=FILE_LIMITS, objects=objects
            )
        if dump is not None:
            yield from self._items(dump, skipped)
            return
        if may_be_template(self.name, content):
            try:
                documents = list(documents)
            except DocumentError:
                skipped.append(Skipped(self.name, *HELM_TEMPLATE))
                return
        for document in documents:
            if what := tool_file(self.name, document.tree):
                skipped.append(Skipped(self.name, *what))
            else:
                yield from expand_lists(document)

    def _items(self, dump: ObjectList, skipped: list[Skipped]) -> Iterator[Document]:
        if what := tool_file(self.name, dump.head):
            skipped.append(Skipped(self.name, *what))
        else:
            yield from dump.documents()


class InputSource(NamedTuple):
    """One file, or standard input."""

    name: str
    path: Path | None  # None is standard input

    def parts(self, skipped: list[Skipped], at: str = "") -> Iterator[DocumentPart]:
        """Yield the parts, or raise UnreadableError; record skipped files.

        Of a recording, the part is the moment `at`.
        """
        if self.path is not None and not self.name.endswith(ARCHIVE_SUFFIXES):
            text = large_json(self.name, self.path, FILE_LIMITS.bytes_max)
            if text is not None:
                yield DocumentPart(self.name, text)
                return
        content = self.packed()
        try:
            if is_recording(content):
                yield DocumentPart(self.name, recorded_moment(content, at))
            elif is_snapshot(content):
                yield DocumentPart(self.name, read_archive(content))
            elif is_bundle(content):
                yield from self._bundled(content, skipped)
            else:
                plain = self._plain(content)
                self._check_text(plain)
                yield DocumentPart(self.name, plain)
        except (ArchiveError, UnknownMomentError) as error:
            raise UnreadableError(f"{self.name}: {error}") from None

    def _check_text(self, content: bytes) -> None:
        """Raise UnreadableError for a file that is named like an archive and contains no text.

        The errors of a YAML reader would be misleading.
        """
        if not self.name.endswith(ARCHIVE_SUFFIXES):
            return
        if not content:
            raise UnreadableError(f"{self.name}: an empty file, not an archive")
        if not content.strip(b"\0"):
            raise UnreadableError(f"{self.name}: an archive without files")
        if b"\0" in content[:TEXT_HEAD_BYTES] or not _is_text(content[:TEXT_HEAD_BYTES]):
            fact = "named like an archive, but its content is no tar, zip or text"
            raise UnreadableError(f"{self.name}: {fact}")

    def documents(self, *, schema: Schema) -> Iterator[Document]:
        """Yield the documents of one plain file until one cannot be read."""
        yield from DocumentPart(self.name, self._plain(self.packed())).documents(
            schema=schema, skipped=[]
        )

    def packed(self, limits: Limits = FILE_LIMITS) -> bytes:
        """Return the content as it is, or raise UnreadableError."""
        try:
            if self.path is None:
                content = sys.stdin.buffer.read(limits.bytes_max + 1)
            else:
                with self.path.open("rb") as file:
                    if os.fstat(file.fileno()).st_size > limits.bytes_max:
                        raise self._too_large(limits)
                    content = file.read(limits.bytes_max + 1)
        except OSError as error:
            raise UnreadableError(f"{self.name}: {error.strerror or error}") from None
        if len(content) > limits.bytes_max:
            raise self._too_large(limits)
        return content

    def _bundled(self, content: bytes, skipped: list[Skipped]) -> Iterator[DocumentPart]:
        bundle = read_bundle(content, _is_manifest)
        skipped += (Skipped(f"{self.name}!{name}", *LINK) for name in bundle.left_out)
        if not bundle.files:
            links = "; links in it are not followed" if bundle.left_out else ""
            raise NoManifestsError(f"{self.name}: no {', '.join(SUFFIXES)} files in it{links}")
        left = BYTES_MAX  # its members may be compressed, too
        for file in bundle.files:
            inner = InputSource(f"{self.name}!{file.name}", None)
            content = inner._plain(file.content)
            left -= len(content)
            if left < 0:
                limit = f"{BYTES_MAX // 2**20} MiB"
                raise ArchiveError(f"has more than {limit} to read, which is all that is read")
            yield DocumentPart(inner.name, content)

    def _plain(self, content: bytes, limits: Limits = FILE_LIMITS) -> bytes:
        """Return the text, decompressed if necessary, or raise UnreadableError."""
        for magic, packing in OTHER_PACKINGS.items():
            if content.startswith(magic):
                fact = f"packed by {packing}, which is not read; use gzip or zip, or unpack it"
                raise UnreadableError(f"{self.name}: {fact}")
        if content.startswith(GZIP_MAGIC):
            content = self._unpacked(content, limits)
        if len(content) > limits.bytes_max:
            raise self._too_large(limits)
        return content

    def _unpacked(self, content: bytes, limits: Limits) -> bytes:
        """Return a stream that decompresses gzip while it is read."""
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
                return file.read(limits.bytes_max + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise UnreadableError(f"{self.name}: not a whole gzip file: {error}") from None

    def _too_large(self, limits: Limits) -> UnreadableError:
        limit = f"{limits.bytes_max // 2**20} MiB"
        return UnreadableError(f"{self.name}: larger than {limit}, which is all that is read")


def _is_text(head: bytes) -> bool:
    """Return whether bytes are UTF-8, perhaps cut off within a character."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def archive_at(path: Path) -> Archive:
    """Return the snapshot in a file, or raise UnreadableError."""
    try:
        return read_archive(InputSource(str(path), path).packed())
    except ArchiveError as error:
        raise UnreadableError(f"{path}: {error}") from None


def find_sources(names: Iterable[str], *, recursive: bool) -> Iterator[InputSource]:
    """Yield the sources of these names; files of a directory are sorted by name."""
    for name in names:
        if name == STDIN:
            yield InputSource("<stdin>", None)
            continue
        path = Path(name)
        try:
            if path.is_dir():
                yield from _directory(path, recursive=recursive)
            elif path.exists():
                yield InputSource(name, path)
            else:
                raise UnreadableError(f"{name}: {_absence(name)}")
        except OSError as error:  # an unreadable directory, or a name that is too long
            fact = error.strerror or error
            raise UnreadableError(f"{name[:NAME_SHOWN_MAX]}: {fact}") from None


def _absence(name: str) -> str:
    if name.startswith(("http://", "https://")):  # kubectl fetches these
        return "addresses are not fetched: curl -sL ADDRESS | moor … -f - reads one"
    return "no such file or directory"


def _directory(folder: Path, *, recursive: bool) -> Iterator[InputSource]:
    pattern = sorted(folder.rglob("*") if recursive else folder.glob("*"))
    files = [path for path in pattern if _is_manifest(path.name) and path.is_file()]
    if not files:
        archives = [path for path in pattern if path.name.endswith(ARCHIVE_SUFFIXES)]
        hint = "" if recursive else "; -R looks into subdirectories, too"
        hint = f"; {archives[0]} is an archive: name it itself" if archives else hint
        raise NoManifestsError(f"{folder}: no {', '.join(SUFFIXES)} files in it{hint}")
    for path in files:
        yield InputSource(str(path), path)


def _is_manifest(name: str) -> bool:
    """Return whether to read a file of a directory or archive, judged by its name."""
    # The files that macOS adds to archives begin with the latter.
    return name.removesuffix(".gz").endswith(SUFFIXES) and not _base(name).startswith("._")


# --- files of tools -----------------------------------------------------------------------

# The type of a file, and the advice for it; DIR means the folder of the tool.
KUSTOMIZATION = ("Kustomization", "give what `kubectl kustomize DIR` builds of it")
PATCH = ("JSON patch file", "give what `kubectl kustomize DIR` builds of it")
HELM_FILE = ("Helm chart file", "give what `helm template DIR` makes of it")
HELM_TEMPLATE = ("Helm template", "give what `helm template DIR` makes of it")
KUBECONFIG = ("kubeconfig", "use it with --kubeconfig")
LINK = ("archived link", "put the file itself into the archive")

TEMPLATE_BYTES_MAX = 256 * 1024
_VALUES = re.compile(r"(.*[-_.])?values([-_.].*)?\.(json|ya?ml)")
_CHART = re.compile(r"(Chart|requirements)\.ya?ml")
_KUSTOMIZATION = re.compile(r"kustomization\.ya?ml")
# An action at the beginning of a line or value, and names that only Helm has.
_ACTION = re.compile(rb"^[ \t]*(?:- +)*(?:[\w./\"'-]+:[ \t]+)?\{\{", re.MULTILINE)
_HELM = re.compile(
    rb"\{\{[^}\n]{0,200}?(?:\.(?:Values|Release|Chart|Capabilities|Files|Template)\b"
    rb"|(?:include|template) \")"
)


def tool_file(name: str, tree: Tree) -> tuple[str, str] | None:
    """Return the tool that a document belongs to, and the remedy, or None."""
    match tree:
        case [{"op": str(), "path": str()}, *_]:
            return PATCH
        case {"apiVersion": str(version)} if version.startswith("kustomize.config.k8s.io/"):
            return KUSTOMIZATION
        case {"apiVersion": "v1", "kind": "Config", "clusters": _}:
            return KUBECONFIG
        case dict() if not tree.get("kind"):
            return _tool_file_by_name(_base(name), tree)
        case _:
            return None


def _tool_file_by_name(base: str, tree: Mapping[str, Tree]) -> tuple[str, str] | None:
    if _KUSTOMIZATION.fullmatch(base):
        return KUSTOMIZATION
    is_chart = _CHART.fullmatch(base) and ("name" in tree or "dependencies" in tree)
    if is_chart or (_VALUES.fullmatch(base) and "apiVersion" not in tree):
        return HELM_FILE
    return None


def is_template(name: str, content: bytes) -> bool:
    """Return whether a file is a template of a Helm chart, even if it is valid YAML."""
    is_small = len(content) <= TEMPLATE_BYTES_MAX
    return is_small and _is_in_templates(name) and bool(_HELM.search(content))


def may_be_template(name: str, content: bytes) -> bool:
    """Return whether a file that is not YAML may be a Helm template."""
    if len(content) > TEMPLATE_BYTES_MAX or not _ACTION.search(content):
        return False
    return _is_in_templates(name) or bool(_HELM.search(content))


def _is_in_templates(name: str) -> bool:
    return "templates" in PurePosixPath(_path(name)).parts[:-1]


def skipped_concerns(skipped: Iterable[Skipped]) -> Iterator[Concern]:
    """Yield one concern for each kind of skipped file."""
    by_sort: dict[tuple[str, str], list[str]] = {}
    for name, what, remedy in dict.fromkeys(skipped):
        by_sort.setdefault((what, remedy), []).append(name)
    for (what, remedy), names in by_sort.items():
        fact = f"{counted(len(names), what)} skipped ({listed(names)})"
        yield Concern("skipped-file", fact, remedy.replace("DIR", _tool_folder(names[0])))


def _tool_folder(name: str) -> str:
    """Return the folder argument of a tool for one of its files."""
    path = PurePosixPath(name)
    if "!" in name or name.startswith("<") or path.parent == path:
        return "DIR"
    above = [folder.parent for folder in path.parents if folder.name == "templates"]
    return str(above[-1] if above else path.parent)


def _base(name: str) -> str:
    return PurePosixPath(_path(name).removesuffix(".gz")).name


def _path(name: str) -> str:
    return name.replace("!", "/")

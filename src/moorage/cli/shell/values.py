"""Values of options and arguments: profiles, gates, kinds, and names of objects.

Objects are those of the files that the command line names with -f, --on and the like, and those of
the cluster of --live.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final, NamedTuple

from moorage.cli.shell import sources
from moorage.cli.shell.names import FoundObject, names_in_files
from moorage.cli.shell.words import CommandLine

_FILE_OPTIONS: Final = ("--filename", "--on", "--add", "--replace-slices", "--rule")
_LIVE_OPTIONS: Final = ("--live", "--kubeconfig", "--context")
_KINDS: Final = {
    sources.CLAIMS: "ResourceClaim",
    sources.CLASSES: "DeviceClass",
    sources.NODES: "Node",
    sources.PODS: "Pod",
    sources.RULES: "DeviceTaintRule",
}
# The kinds to complete if the word names none.
_SUBJECTS: Final = ("Pod", "ResourceClaim", "ResourceClaimTemplate", "Deployment", "Job")
_NAMESPACED: Final = (sources.CLAIMS, sources.PODS)  # as [NAMESPACE/]NAME
_DEFAULT: Final = "default"


class Candidate(NamedTuple):
    """A candidate for the last word."""

    text: str
    help: str = ""


class Values:
    """The values for one command line."""

    def __init__(self, line: CommandLine, known: Mapping[str, Any]) -> None:
        self._line = line
        self._known = known  # values in the table: profiles, gates, kinds, words

    def of(self, source: str, current: str) -> Iterator[Candidate]:
        """Yield the values of a source."""
        match source:
            case sources.PROFILES:
                for name, profile in self._known["profiles"].items():
                    yield Candidate(name, profile["title"])
            case sources.GATES:
                yield from self._gates(current)
            case sources.KINDS:
                yield from map(Candidate, self._known["kinds"])
            case sources.CONTEXTS:
                yield from self._contexts()
            case sources.NAMESPACES:
                yield from self._namespaces()
            case sources.OBJECTS:
                yield from self._subjects(current)
            case _:
                yield from self._names(source)

    # --- lists ----------------------------------------------------------------------------------

    def _gates(self, current: str) -> Iterator[Candidate]:
        """Yield candidates such as `A=true,B=`: the list so far, completed with a gate."""
        head, comma, last = current.rpartition(",")
        given = {each.partition("=")[0] for each in head.split(",")}
        name, equals, _ = last.partition("=")
        if equals:
            yield from (Candidate(f"{head}{comma}{name}={value}") for value in ("true", "false"))
            return
        for gate, help_text in self._known["gates"].items():
            if gate not in given:
                yield Candidate(f"{head}{comma}{gate}=", help_text)

    def _contexts(self) -> Iterator[Candidate]:
        from moorage.cli.shell.live_names import contexts  # imports the reader of kubeconfigs

        yield from map(Candidate, contexts(self._last("--kubeconfig")))

    def _last(self, option: str) -> str:
        given = self._line.values_of(option)
        return given[-1] if given else ""

    # --- objects --------------------------------------------------------------------------------

    @cached_property
    def _in_files(self) -> list[FoundObject]:
        names = self._line.values_of(*_FILE_OPTIONS)
        return names_in_files(names, recursive="--recursive" in self._line.used) if names else []

    def _objects(self, *kinds: str) -> list[FoundObject]:
        found = [each for each in self._in_files if each.kind in kinds]
        if any(option in self._line.used for option in _LIVE_OPTIONS):
            from moorage.cli.shell.live_names import live_names  # imports the HTTP client

            found += live_names([*kinds], self._last("--kubeconfig"), self._last("--context"))
        return found

    def _names(self, source: str) -> Iterator[Candidate]:
        for each in self._objects(_KINDS[source]):
            is_named = source in _NAMESPACED and self._is_elsewhere(each)
            yield Candidate(f"{each.namespace}/{each.name}" if is_named else each.name)
        if source == sources.CLASSES:
            for name in self._line.values_of("--profile"):
                profile = self._known["profiles"].get(name.partition("=")[0], {})
                yield from map(Candidate, profile.get("classes", ()))

    def _namespaces(self) -> Iterator[Candidate]:
        found = self._objects("Namespace")
        names = {each.name for each in found} | {each.namespace for each in self._in_files}
        yield from map(Candidate, sorted(filter(None, names)))

    def _subjects(self, current: str) -> Iterator[Candidate]:
        """Yield KIND/NAME, the names of the kind before the slash, or kinds."""
        words: Mapping[str, str] = self._known["words"]
        given = self._line.arguments
        if given:
            if len(given) == 1 and given[0].lower() in words:
                for each in self._objects(words[given[0].lower()]):
                    yield Candidate(self._name(each))
            return
        word, slash, _ = current.partition("/")
        kind = words.get(word.partition(".")[0].lower())
        if slash:
            for each in self._objects(kind) if kind else ():
                yield Candidate(f"{word}/{self._name(each)}")
            return
        short: dict[str, str] = {}
        for each_word, each_kind in words.items():
            short.setdefault(each_kind, each_word)
        found = self._objects(*([kind] if kind else _SUBJECTS))
        yield from (Candidate(f"{short[each.kind]}/{self._name(each)}") for each in found)
        if not found:
            yield from (Candidate(f"{each}/") for each in short.values())

    def _name(self, each: FoundObject) -> str:
        return f"{each.namespace}/{each.name}" if self._is_elsewhere(each) else each.name

    def _is_elsewhere(self, each: FoundObject) -> bool:
        """Whether the command line must name the object's namespace."""
        here = self._last("--namespace") or _DEFAULT
        everywhere = "--all-namespaces" in self._line.used
        return bool(each.namespace) and each.namespace != here and not everywhere

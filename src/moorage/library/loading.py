"""`load`: reads files, dumps, snapshots, profiles, running clusters and mappings into a World."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from os import PathLike, fspath
from pathlib import Path as FilePath
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeVar

import msgspec

from moorage.api.documents import CORE, KUBERNETES, Document, Schema, expand_lists, read
from moorage.api.gates import Gate, Gates, Preset
from moorage.api.timestamp import Timestamp
from moorage.hardware.attributes import NumaNodeForm, numa_form_problem
from moorage.insight.messages import counted
from moorage.kit.errors import MoorageError, MoorageWarning
from moorage.library.results import check_type
from moorage.library.world import World
from moorage.sources.cluster_sources import ClusterSource, FileSource, Profiles, Taker
from moorage.sources.errors import ObjectsRefusedError, UnreadableError
from moorage.sources.given_cluster import GivenCluster, read_given
from moorage.sources.inputs import FILE_LIMITS
from moorage.sources.scheduler_file import read_scheduler_file
from moorage.validation.strategy import Context

if TYPE_CHECKING:
    from moorage.sources.live_source import Live

Path = str | PathLike[str]
Source = Path | Mapping[str, Any]
T = TypeVar("T")
WARNINGS_SHOWN_MAX: Final = 20
STDIN: Final = "-"
OF_MAPPINGS: Final = "<mapping {}>"


def load(
    *sources: Source,
    on: Path | Sequence[Path] = (),
    profile: str | Sequence[str] = (),
    live: bool = False,
    kubeconfig: Path = "",
    context: str = "",
    namespace: str | None = None,
    recursive: bool = False,
    numa_node: Literal["scalar", "list"] = "scalar",
    feature_gates: Mapping[str, bool] | None = None,
    gates_preset: Literal["moorage", "kubernetes-1.37"] = "moorage",
    emulated_version: str = "1.37",
    strict: bool = False,
    scheduler_config: Path | None = None,
    now: datetime | None = None,
    on_refused: Literal["raise", "keep"] = "raise",
) -> World:
    """Return a cluster, and manifests to plan on it.

    Each source is a file, directory or archive of manifests, or a manifest as a mapping. All other
    parameters describe the cluster: `on` takes dumps and files that `moor snapshot` wrote,
    `profile` adds machines of hardware profiles, such as `dgx-h100x4`, and `live` reads the cluster
    that kubectl is configured for (`kubeconfig` and `context` choose another one). The remaining
    parameters are the options of `moor plan`.

    Issues MoorageWarning for suspicious objects; `World.warnings` lists them all. Raises
    UnreadableError if a source cannot be read. Raises ObjectsRefusedError for manifests that an API
    server would reject; with `on_refused="keep"`, their pods are pending and `explain` names the
    mistake.
    """
    gates = (feature_gates, gates_preset, emulated_version)
    around = context_of(*gates, now, strict=strict, scheduler_config=scheduler_config)
    _check_choice("on_refused", on_refused, ("raise", "keep"))
    gathering = gathered(
        sources,
        around,
        on=on,
        profile=profile,
        live=live,
        kubeconfig=kubeconfig,
        kube_context=context,
        namespace=namespace,
        recursive=recursive,
        numa_node=numa_node,
    )
    call = partial(
        read_given,
        cluster=gathering.cluster,
        manifests=gathering.manifests,
        context=around,
        namespace=gathering.namespace,
    )
    given = outside_loop(call) if gathering.is_live else call()
    return World(_checked(given, keeps_refused=on_refused == "keep"), form=gathering.form)


class Gathering(NamedTuple):
    """Where the objects of a call come from."""

    cluster: list[ClusterSource]
    manifests: list[ClusterSource]
    namespace: str
    form: NumaNodeForm
    is_live: bool


def gathered(
    sources: Iterable[Source],
    around: Context,
    *,
    on: Path | Sequence[Path],
    profile: str | Sequence[str],
    live: bool,
    kubeconfig: Path,
    kube_context: str,
    namespace: str | None,
    recursive: bool,
    numa_node: str,
) -> Gathering:
    """Return where the objects come from that the parameters of `load` name."""
    form = _numa_form(numa_node, around.gates)
    reading = _Reading(CORE if around.extensions else KUBERNETES, recursive)
    cluster = reading.files(_several(on))
    asks = live or bool(kubeconfig or kube_context)
    if asks:
        found = _find_live(fspath(kubeconfig), kube_context, namespace)
        cluster.append(found)
        namespace = namespace or found.namespace
    cluster += _machines(profile, form)
    manifests = reading.manifests(sources)
    if not (cluster or manifests):
        raise MoorageError("nothing to load: give manifests, on=, profile= or live=True")
    return Gathering(cluster, manifests, namespace or "default", form, asks)


def context_of(
    feature_gates: Mapping[str, bool] | None,
    gates_preset: str,
    emulated_version: str,
    now: datetime | None,
    *,
    strict: bool,
    scheduler_config: Path | None = None,
) -> Context:
    """Return gates, time and extensions as the parameters of `load` say, or raise MoorageError."""
    check_type("feature_gates", feature_gates, Mapping, NoneType)
    check_type("emulated_version", emulated_version, str)
    check_type("now", now, datetime, NoneType)
    gates = _gates(feature_gates or {}, gates_preset, emulated_version)
    return _context(gates, now, scheduler_config, strict=strict)


def _machines(profile: str | Sequence[str], form: NumaNodeForm) -> list[ClusterSource]:
    """Return the source of the machines of profiles; none for no profiles."""
    check_type("profile", profile, str, Iterable)
    profiles = (profile,) if isinstance(profile, str) else tuple(profile)
    for each in profiles:
        check_type("profile", each, str)
    return [Profiles(profiles, form)] if profiles else []


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise MoorageError(f"{name}: {value!r}: must be one of {', '.join(choices)}")


def _numa_form(name: str, gates: Gates) -> NumaNodeForm:
    _check_choice("numa_node", name, ("scalar", "list"))
    form = NumaNodeForm[name.upper()]
    if problem := numa_form_problem(form, gates):
        remedy = f"feature_gates={{'{Gate.DRA_LIST_TYPE_ATTRIBUTES}': True}}"
        raise MoorageError(f"numa_node='list': {problem}; use numa_node='scalar', or {remedy}")
    return form


def _gates(feature_gates: Mapping[str, bool], preset: str, emulated_version: str) -> Gates:
    """Return the gates, and warn of notes on them."""
    _check_choice("gates_preset", preset, tuple(each.value for each in Preset))
    for name, value in feature_gates.items():
        if not isinstance(value, bool):
            raise MoorageError(f"feature_gates: {name}: {value!r}: must be True or False")
    found = Gates.from_mapping(
        dict(feature_gates), preset=preset, emulated_version=emulated_version
    )
    for note in found.notes():
        warnings.warn(note, MoorageWarning, stacklevel=5)
    return found


def _find_live(kubeconfig: str, context: str, namespace: str | None) -> Live:
    """Return the cluster that kubectl is configured for."""
    from moorage.sources import live_source  # imports the HTTP client

    return live_source.find_live(kubeconfig, context, namespace)


def _context(
    gates: Gates, now: datetime | None, scheduler_config: Path | None, *, strict: bool
) -> Context:
    instant = datetime.now(UTC) if now is None else now
    if instant.tzinfo is None:
        raise MoorageError("now: needs a time zone, such as datetime.UTC")
    found = Context(gates=gates, now=Timestamp(instant.astimezone(UTC)), extensions=not strict)
    if scheduler_config is None:
        return found
    file, faults = read_scheduler_file(FilePath(scheduler_config), gates)
    if file is None:
        raise UnreadableError("\n".join(faults))
    return found._replace(scheduler=file)


class _Reading(NamedTuple):
    """How files are read."""

    schema: Schema
    recursive: bool

    def files(self, names: Iterable[Path]) -> list[ClusterSource]:
        """Return the source that reads the files; none for no files."""
        found = names_of(names)
        return [FileSource(found, self.recursive, self.schema)] if found else []

    def manifests(self, sources: Iterable[Source]) -> list[ClusterSource]:
        """Return the sources of the manifests, in order."""
        found: list[ClusterSource] = []
        for number, each in enumerate(sources, 1):
            if isinstance(each, Mapping):
                found.append(Mappings(each, OF_MAPPINGS.format(number), self.schema))
            else:
                check_type(f"source {number}", each, str, PathLike, Mapping)
                found += self.files([each])
        return found


def names_of(names: Iterable[Path]) -> tuple[str, ...]:
    """Return the names of files, or raise MoorageError for standard input."""
    found = tuple(fspath(name) for name in names)
    if STDIN in found:
        raise MoorageError('"-": standard input is for commands; pass its content instead')
    return found


class Mappings(NamedTuple):
    """A manifest, or a List of them, as a mapping."""

    tree: Mapping[str, Any]
    name: str
    schema: Schema

    def give(self, intake: Taker) -> None:
        """Pass on the object, or the items of a List."""
        try:
            for each in mapping_documents(self.tree, self.name, self.schema):
                intake.add_document(each)
        except UnreadableError as error:
            intake.unreadable.append(str(error))


def mapping_documents(tree: Mapping[str, Any], name: str, schema: Schema) -> Iterator[Document]:
    """Yield the object of a mapping, or the items of a List; raise UnreadableError otherwise."""
    try:
        text = msgspec.json.encode(tree)
        for document in read(text, source=name, limits=FILE_LIMITS, schema=schema):
            yield from expand_lists(document)
    except (MoorageError, TypeError, ValueError, RecursionError) as error:
        raise UnreadableError(f"{name}: {error}") from None


def _several(value: Path | Sequence[Path]) -> tuple[Path, ...]:
    if isinstance(value, str | PathLike):
        return (value,)
    return tuple(value)


def outside_loop(call: Callable[[], T]) -> T:
    """Return the result of a call that runs an event loop; notebooks already run one."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return call()
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(call).result()


def _checked(given: GivenCluster, *, keeps_refused: bool) -> GivenCluster:
    if given.unreadable:
        raise UnreadableError("\n".join(given.unreadable))
    if given.refused and not keeps_refused:
        raise ObjectsRefusedError(given.refused)
    for concern in given.warnings[:WARNINGS_SHOWN_MAX]:
        warnings.warn(str(concern), MoorageWarning, stacklevel=3)
    more = len(given.warnings) - WARNINGS_SHOWN_MAX
    if more > 0:
        text = f"{counted(more, 'more warning')}: World.warnings lists all of them"
        warnings.warn(text, MoorageWarning, stacklevel=3)
    return given

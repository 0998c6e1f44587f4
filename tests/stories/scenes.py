"""What stories must come to: `outcome.toml` in each folder of `examples/stories`.

A scene is a title, the manifests that are applied to the cluster of the folder (examples of the
seeds, then files of its own), and what becomes of each pod. `moor plan` and a live cluster must
both come to it. A claim or template that no pod uses is tried with a pod that asks for nothing
else; it is told as `claim/NAME`. The pods of a workload are told as `NAME-*`, in any order.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct, convert

from tests.stories.tellers import NOW, SEEDS, STORIES

OUTCOME = "outcome.toml"


class Played(Struct, frozen=True, forbid_unknown_fields=True):
    """What became of a pod."""

    pod: str
    node: str = ""
    devices: dict[str, str] = {}  # by request
    pending: str = ""  # how the message begins, if there is no node
    times: int = 1  # how many pods this became of
    quiet: bool = False  # it has no node, and nothing says so: it waits for other pods


class Scene(Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Manifests, and what must become of the pods."""

    title: str
    pods: tuple[Played, ...] = ()
    seeds: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    namespace: str = "default"
    profile: str = ""
    numa_node: str = "scalar"
    preempted: tuple[str, ...] = ()  # the pods of the cluster that are evicted for others
    then: tuple[Played, ...] = ()  # what becomes of the pods once these have left
    refused: str = ""  # what the server says of a manifest that it does not take


class Story(Struct, frozen=True, forbid_unknown_fields=True):
    """The scenes of a folder, and the document that they are from."""

    document: str
    scene: tuple[Scene, ...]


class Told(NamedTuple):
    """A scene and where it is played."""

    name: str
    document: str
    scene: Scene

    @property
    def cluster(self) -> tuple[Path, ...]:
        path = STORIES / self.name / "cluster.yaml"
        return (path,) if path.exists() else ()

    @property
    def manifests(self) -> tuple[Path, ...]:
        seeds = (SEEDS / f"{seed}.yaml" for seed in self.scene.seeds)
        return (*seeds, *(STORIES / self.name / f"{file}.yaml" for file in self.scene.files))

    @property
    def options(self) -> tuple[str, ...]:
        """The options of `moor plan` for the scene."""
        return self.options_on(self.cluster)

    def options_on(self, cluster: Iterable[Path]) -> tuple[str, ...]:
        """Return the options for the scene on files of another cluster."""
        scene = self.scene
        words = [word for path in self.manifests for word in ("-f", str(path))]
        words += [word for path in cluster for word in ("--on", str(path))]
        if scene.profile:
            words += ["--profile", scene.profile, "--numa-node", scene.numa_node]
        return (*words, "-n", scene.namespace, *NOW)


class Ended(NamedTuple):
    """What a scene came to."""

    pods: list[Played]
    preempted: tuple[str, ...] = ()
    then: list[Played] | None = None

    def faults(self, scene: Scene) -> list[Any]:
        """Return what is wanted and not found, and what is found and not wanted."""
        found = [
            each
            for wanted, became in ((scene.pods, self.pods), (scene.then, self.then or []))
            for side in differences(wanted, became)
            for each in side
        ]
        return found + sorted({*scene.preempted} ^ {*self.preempted})


def story_of(name: str) -> Story:
    text = (STORIES / name / OUTCOME).read_text(encoding="utf-8")
    return convert(tomllib.loads(text), Story)


def all_scenes() -> Iterator[Told]:
    """Yield all scenes of all stories, by the name of the folder."""
    for path in sorted(STORIES.glob(f"*/{OUTCOME}")):
        story = story_of(path.parent.name)
        for scene in story.scene:
            yield Told(path.parent.name, story.document, scene)


def shown_device(
    device: str, *, is_admin: bool = False, share: str = "", consumed: dict[str, Any] | None = None
) -> str:
    """Return a device as outcomes have it: `eth1(bandwidth=1G)`, `cat(admin)`."""
    marks = ["admin"] if is_admin else []
    amounts = [f"{name.rpartition('/')[2]}={value}" for name, value in (consumed or {}).items()]
    marks += sorted(amounts) or (["share"] if share else [])
    return f"{device}({','.join(marks)})" if marks else device


def by_request(devices: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the devices of each request, with spaces between; claims may use one name."""
    found: dict[str, list[str]] = {}
    for request, device in devices:
        found.setdefault(request, []).append(device)
    return {request: " ".join(names) for request, names in found.items()}


def shown_pod(name: str, workloads: frozenset[str]) -> str:
    """Return the name of a pod as outcomes have it."""
    for workload in workloads:
        if name.startswith(f"{workload}-"):
            return f"{workload}-*"
    return name


def differences(wanted: tuple[Played, ...], found: list[Played]) -> tuple[list[Any], list[Any]]:
    """Return what is wanted and not found, and what is found and not wanted."""
    missing, rest = [], list(found)
    for want in (each for each in wanted for _ in range(each.times)):
        match = next((each for each in rest if _is_met(want, each)), None)
        if match is None:
            missing.append(want)
        else:
            rest.remove(match)
    return missing, rest


def _is_met(wanted: Played, found: Played) -> bool:
    same = (wanted.pod, wanted.node, wanted.devices) == (found.pod, found.node, found.devices)
    said = found.pending.startswith(wanted.pending) and wanted.quiet <= found.quiet
    return same and said and not (wanted.node and found.pending)

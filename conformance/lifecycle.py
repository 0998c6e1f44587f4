"""Recorded lives of claims, pods and groups, step by step, in a whole cluster of ours.

A file is one scenario: steps, each something that is done to a cluster, and the state of all
objects when nothing changed any more. A scenario is played from its beginning in a cluster of its
own, with server, controllers and scheduler; time is simulated. A case is a step. After it the
answer, all objects and the events that are new must be those recorded, but for what differed
between recordings (`varied`). See `_recordings` for the replacements.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from conformance._live import (
    LOOK_EVERY_S,
    PATCH_TYPES,
    Live,
    RefusedError,
    credentials_folder,
    gates_of,
    impersonation,
    kind_of,
    live_cluster,
    path_of,
)
from conformance._recordings import (
    Comparison,
    Names,
    is_same_event,
    plain_event,
    plain_object,
    without,
)
from conformance.runner import EQUAL, Case, Mismatch, Outcome, Suite, UnreadableError, UsageError
from moorage.api.catalogue import SERVED
from moorage.api.kinds import Kind
from moorage.api.resource.v1 import ResourceClaim
from moorage.kit.clock import run_simulated

Tree = dict[str, Any]

# Of the spec of a pod recordings have this, if it is there.
POD_SPEC = ("nodeName", "resourceClaims", "schedulingGroup", "schedulingGates")
REQUEST_S = 0.01  # what a request took: a scheduler acts between two of them
SCENARIO_S_MAX = 24 * 3600.0  # in simulated time


def open_suite() -> Suite:
    """Return the suite."""
    return LifecycleSuite()


class LifecycleSuite(Suite):
    """A case is one step of a scenario."""

    def __init__(self) -> None:
        self._folder = credentials_folder()
        self._played: tuple[str, list[Outcome]] = ("", [])

    def fits(self, case: Case) -> bool:
        """Return whether the case is a step."""
        return "step" in case.fields

    def cases(self, target: Path) -> Iterator[Case]:
        """Give the steps of all scenarios of a folder, or of one file."""
        if not target.exists():
            raise UsageError(f"{target}: no such file or folder")
        for path in sorted(target.glob("*.json")) if target.is_dir() else [target]:
            scenario = _read(path)
            for number, _ in enumerate(scenario["steps"]):
                fields = {"step": number, "scenario": scenario, "path": str(path)}
                yield Case(f"{scenario.get('name', path.stem)} step {number}", fields, b"")

    def compare(self, case: Case) -> Outcome:
        """Play the scenario of a step, once, and return what became of the step."""
        path = case.fields["path"]
        if self._played[0] != path:
            scenario = case.fields["scenario"]
            self._played = path, run_simulated(_play(scenario, self._folder))
        outcome: Outcome = self._played[1][case.fields["step"]]
        return outcome


def _read(path: Path) -> Tree:
    try:
        scenario = json.loads(path.read_bytes())
    except (OSError, ValueError) as fault:
        raise UnreadableError(f"{path}: cannot be read: {fault}") from fault
    if not isinstance(scenario, dict) or not isinstance(scenario.get("steps"), list):
        raise UnreadableError(f"{path}: not a scenario: it has no steps")
    return scenario


async def _play(scenario: Tree, folder: Path) -> list[Outcome]:
    """Return the outcome of each step."""
    async with live_cluster(folder, gates_of(scenario.get("gates"))) as live:
        replay = Replay(live, scenario.get("namespace") or "default")
        await live.make_nodes()
        await live.make_namespace(replay.namespace)
        async with asyncio.timeout(SCENARIO_S_MAX):
            return [await _outcome(replay, step) for step in scenario["steps"]]


async def _outcome(replay: Replay, step: Tree) -> Outcome:
    try:
        found = await replay.play(step)
    except Exception as fault:  # the steps after it are still of interest
        found = [f"raised {type(fault).__name__}: {fault}"]
    return Mismatch(tuple(found)) if found else EQUAL


class Replay:
    """One scenario in a cluster."""

    def __init__(self, live: Live, namespace: str) -> None:
        self.namespace = namespace
        self._live = live
        self._names = Names()
        self._comparison = Comparison()
        self._recorded: list[Tree] = []  # events of all steps so far
        self._told: list[Tree] = []  # ours

    async def play(self, step: Tree) -> list[str]:
        """Do a step, let time pass, and return the differences from the recording."""
        refused = None
        try:
            await self._do(step["do"])
        except RefusedError as error:
            refused = error.status
        await self._let_pass(step["settle_s"])
        return [
            *self._comparison.differences("answer", step["expectError"], self._plain(refused)),
            *await self._state_differences(step),
        ]

    # --- doing ------------------------------------------------------------------------------------

    async def _do(self, do: Tree) -> None:
        options: dict[str, Any] = {}
        if "as" in do:
            options["headers"] = impersonation(do["as"], do.get("asExtra") or {})
        if "dryRun" in do:
            options["dryRun"] = do["dryRun"]
        match do["verb"]:
            case "create":
                for tree in do["objects"] if "objects" in do else [do["object"]]:
                    await self._create(tree, options)
            case "delete":
                await self._delete(do, options)
            case "patch":
                await self._patch(do, "", options)
            case "patch-status":
                await self._patch(do, "/status", options)
            case "wait":
                pass
            case verb:
                raise UnreadableError(f"no verb {verb}")

    async def _create(self, tree: Tree, options: dict[str, Any]) -> None:
        own = self._own(tree)
        await self._live.create(own, self.namespace, fieldValidation="Strict", **options)
        await asyncio.sleep(REQUEST_S)

    async def _delete(self, do: Tree, options: dict[str, Any]) -> None:
        body: Tree = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if "gracePeriodSeconds" in do:
            body["gracePeriodSeconds"] = do["gracePeriodSeconds"]
        await self._live.ask("DELETE", self._path(do["target"]), body, **options)

    async def _patch(self, do: Tree, part: str, options: dict[str, Any]) -> None:
        content_type = PATCH_TYPES[do.get("patchType", "merge")]
        path = self._path(do["target"]) + part
        patch = self._own(do["patch"])
        await self._live.ask("PATCH", path, patch, content_type=content_type, **options)

    def _path(self, target: Tree) -> str:
        kind = kind_of(target["kind"])
        api_version = target.get("apiVersion", kind.api_version)
        name = str(self._names.ours.get(target["name"], target["name"]))
        return path_of(api_version, kind.name, target.get("namespace", self.namespace), name)

    def _own(self, tree: Tree) -> Tree:
        own: Tree = self._names.own(tree, self._uid_of)
        return own

    def _uid_of(self, kind_name: str, name: str) -> str:
        kind = kind_of(kind_name)
        struct: type[Any] = kind.struct
        place = self.namespace if kind.namespaced else "", self._names.ours.get(name, name)
        copies = (self._live.objects, self._live.cluster.scheduling.informers.objects)
        found = next(filter(None, (objects.get(struct, *place) for objects in copies)), None)
        if found is None:
            raise UnreadableError(f"no {kind_name} {name}, of which the uid is wanted")
        return str(found.metadata.uid)

    async def _let_pass(self, seconds: float) -> None:
        """Let time pass; claims are numbered as they come."""
        end = asyncio.get_running_loop().time() + seconds
        while (left := end - asyncio.get_running_loop().time()) > 0:
            await asyncio.sleep(min(left, LOOK_EVERY_S))
            self._learn_names()

    def _learn_names(self) -> None:
        claims = [
            claim.metadata
            for claim in self._live.objects.list(ResourceClaim)
            if claim.metadata.namespace == self.namespace and claim.metadata.generate_name
        ]
        for metadata in sorted(claims, key=lambda each: (str(each.creation_timestamp), each.name)):
            self._names.learn(metadata.generate_name, metadata.name)

    # --- comparing --------------------------------------------------------------------------------

    async def _state_differences(self, step: Tree) -> list[str]:
        varied = step.get("varied") or []
        theirs, ours = dict(step["state"]), {}
        events = theirs.pop("events", None) or []
        for plural, recorded in theirs.items():
            ours[plural] = await self._objects(plural, recorded or {})
            theirs[plural] = recorded or {}
        paths = [each["path"] for each in varied if each["path"] != "events"]
        some = [event for each in varied for event in each.get("seenInSomeRuns", ())]
        return [
            *self._comparison.differences("", without(theirs, paths), without(ours, paths)),
            *await self._event_differences(events, some),
        ]

    async def _objects(self, plural: str, recorded: Tree) -> Tree:
        kind = _kind_of_plural(plural)
        namespace = self.namespace if kind.namespaced else ""
        found: Tree = {}
        for tree in await self._live.all(kind.api_version, kind.name, namespace):
            name = self._plain(tree["metadata"]["name"])
            found[name] = self._plain(plain_object(tree))
            if kind.name == "Pod":
                shown = {*POD_SPEC, *recorded.get(name, {}).get("spec", {})}
                spec = found[name]["spec"]
                found[name]["spec"] = {key: spec[key] for key in spec if key in shown}
        return found

    async def _event_differences(self, recorded: list[Tree], some: list[Tree]) -> Iterator[str]:
        """Give the events of this step that only one side has; repeated ones are not new."""
        trees = await self._live.all("v1", "Event", self.namespace)
        now = [self._plain(plain_event(tree)) for tree in trees]
        new = [event for event in now if event not in self._told]
        self._told += new
        known = [*self._recorded, *recorded, *some]
        self._recorded += [*recorded, *some]
        return _one_sided(recorded, new, known)

    def _plain(self, tree: Any) -> Any:
        return self._names.recorded(tree)


def _one_sided(recorded: list[Tree], new: list[Tree], known: list[Tree]) -> Iterator[str]:
    for theirs in recorded:
        if not any(is_same_event(theirs, ours) for ours in new):
            yield f"events: Kubernetes {json.dumps(theirs)}, Moorage has none"
    shown: list[Tree] = []
    for ours in new:
        if ours not in shown and not any(is_same_event(theirs, ours) for theirs in known):
            shown.append(ours)
            yield f"events: Kubernetes has none, Moorage {json.dumps(ours)}"


def _kind_of_plural(plural: str) -> Kind:
    found = {kind.plural: kind.name for kind in SERVED}
    if plural not in found:
        raise UnreadableError(f"no kind {plural}")
    return kind_of(found[plural])

"""A fix made in a running cluster: the server tries every step before any is made.

    changes ─► objects read afresh ─► dry run ─► steps ─► shown and agreed ─► made

Specs of claims and templates cannot be changed, and hardly anything of pods and jobs can. Such an
object is deleted and created anew, unless that would take something from somebody: devices from a
claim, a node from a pod, or an object from its controller.

# step: one write, with the object before and after it as plain JSON
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from moorage.api.catalogue import CATALOGUE
from moorage.api.codec import to_tree
from moorage.api.core.pod import Pod
from moorage.api.resource.v1 import POD_CLAIM_ANNOTATION, ResourceClaim
from moorage.claims.pod_claims import controller_of, group_name
from moorage.client.api_client import ApiClient
from moorage.client.contract import Request
from moorage.client.decoder import read_object
from moorage.client.errors import ClientError, ConflictError, InvalidError, NotFoundError
from moorage.client.rest_mapper import Endpoint
from moorage.insight.answer.changes.edits import ObjectChange, edited_tree, without_server_fields
from moorage.insight.answer.finding import Fix
from moorage.insight.answer.groups import AnsweredPods
from moorage.insight.snapshot.snapshot import Snapshot, is_new, key_of

MANAGER: Final = "fieldManager=moor"
DRY_RUN: Final = f"{MANAGER}&dryRun=All"
NAME_LENGTH_MAX: Final = 50  # of a name that the server completes, for dry runs
REPLACED: Final = ("Pod", "ResourceClaim", "ResourceClaimTemplate", "Job")
# Controllers that leave pods as they are when their template changes.
KEEPS_PODS: Final = ("ReplicaSet", "ReplicationController", "StatefulSet")


class NotPossibleError(Exception):
    """The fix cannot be made in the cluster; nothing was changed."""


class Step(Struct, frozen=True):
    """One write."""

    verb: Literal["change", "create", "replace", "delete"]
    struct: type[Any]
    namespace: str
    name: str
    before: Any = None
    after: Any = None
    note: str = ""

    def __str__(self) -> str:
        """Return kind and name of the object."""
        return f"{self.struct.__name__} {'/'.join(filter(None, (self.namespace, self.name)))}"


class LiveFix:
    """Plans and makes the steps of one fix through a client."""

    def __init__(
        self, client: ApiClient, snapshot: Snapshot, answered: AnsweredPods, fix: Fix
    ) -> None:
        self._client = client
        self._snapshot = snapshot
        self._existing = {key_of(each): each for each in snapshot.objects()}
        self._pods = [each.pod for each in answered.pods if not is_new(each.pod)]
        self._fix = fix

    async def steps(self) -> list[Step]:
        """Return all steps; the server has tried each, or NotPossibleError is raised."""
        steps = [await self._step(change) for change in self._fix.changes]
        for value, note in self._left_behind(steps):
            steps.append(await self._deletion(value, note))
        return steps

    async def make(self, step: Step) -> None:
        """Make a step, or raise ClientError."""
        match step.verb:
            case "change":
                await self._put(step, MANAGER)
            case "create":
                await self._create(step, step.after, MANAGER)
            case "replace":
                await self._delete(step, MANAGER)
                try:
                    await self._create(step, step.after, MANAGER)
                except ClientError as error:
                    raise HalfReplacedError(step, error) from None
            case "delete":
                await self._delete(step, MANAGER)

    # --- planning -----------------------------------------------------------------------------

    async def _step(self, change: ObjectChange) -> Step:
        if change.new is not None:
            struct = CATALOGUE.find(change.new["apiVersion"], change.new["kind"]).struct
            step = Step("create", struct, change.namespace, change.name, after=change.new)
            await self._tried(self._create(step, change.new, DRY_RUN), step)
            return step
        value = self._existing[change.key]
        before = await self._read(value)
        try:
            after = edited_tree(before, change.edits)
        except (LookupError, TypeError):  # The server may keep what is meant in another form.
            raise NotPossibleError(f"{change} is written otherwise: use --write-fix") from None
        step = Step("change", type(value), *change.key[1:], before, after, _manager(before))
        try:
            await self._put(step, DRY_RUN)
        except InvalidError as error:
            if value.kind not in REPLACED:
                raise _refused(step, error) from None
            return await self._replacement(step, value)
        except ClientError as error:
            raise _refused(step, error) from None
        return step

    async def _replacement(self, step: Step, value: Any) -> Step:
        """Return the step that deletes an object and creates it anew."""
        if (reason := self._bar(value, step.before)) is not None:
            raise NotPossibleError(f"{step} cannot be changed, only replaced, but {reason}")
        step = msgspec.structs.replace(
            step,
            verb="replace",
            after=_fresh(step.after),
            note="it cannot be changed, so it is deleted and created anew",
        )
        await self._tried(self._delete(step, DRY_RUN), step)
        # Its name is taken as long as it is there: another one shows whether it would be accepted.
        metadata = {k: v for k, v in step.after["metadata"].items() if k != "name"}
        metadata["generateName"] = f"{step.name[:NAME_LENGTH_MAX]}-"
        tried = {**step.after, "metadata": metadata}
        await self._tried(self._create(step, tried, DRY_RUN), step)
        return step

    def _bar(self, value: Any, tree: Any) -> str | None:
        """Return why an object must not be deleted; None if nobody loses anything."""
        owner = controller_of(value.metadata)
        if owner is not None:
            return f"it belongs to {owner.kind} {owner.name}: change that"
        if tree["metadata"].get("finalizers"):
            return f"its finalizers hold it: {', '.join(tree['metadata']['finalizers'])}"
        status = tree.get("status") or {}
        match value.kind:
            case "ResourceClaim" if status.get("allocation") or status.get("reservedFor"):
                return "it is in use"
            case "Pod" if value.spec.node_name:
                return f"it has node {value.spec.node_name}"
            case "Job":
                return self._work_of(value, status)
        return None

    def _work_of(self, job: Any, status: Any) -> str | None:
        if status.get("succeeded") or status.get("failed"):
            return "some of its pods are done, and their work would be lost"
        for pod in self._snapshot.pods:
            owner = controller_of(pod.metadata)
            if owner is not None and owner.uid == job.metadata.uid and pod.spec.node_name:
                return f"its pod {pod.metadata.name} runs on {pod.spec.node_name}"
        return None

    def _left_behind(self, steps: list[Step]) -> Iterator[tuple[Any, str]]:
        """Yield objects that controllers made of what is changed, and would leave as they are."""
        kinds = {step.struct.__name__: step for step in steps}
        holder = next((kind for kind in KEEPS_PODS if kind in kinds), None)
        if holder is not None:
            for pod in self._pods:
                yield pod, f"{kinds[holder]} creates it anew"
            return
        templates = {
            (step.namespace, step.name)
            for step in steps
            if step.struct.__name__ == "ResourceClaimTemplate" and step.verb == "replace"
        }
        if not templates or any(
            kind in kinds for kind in ("Pod", "Deployment", "DaemonSet", "Job")
        ):
            return
        for claim in self._snapshot.claims:
            template = self._template_of(claim)
            if template in templates and claim.status.allocation is None:
                yield claim, f"a new one is made from ResourceClaimTemplate {'/'.join(template)}"

    def _template_of(self, claim: ResourceClaim) -> tuple[str, str] | None:
        """Return the template that a claim of one of the pods, or of their group, was made from."""
        namespace, owner = claim.metadata.namespace, controller_of(claim.metadata)
        if owner is None:
            return None
        entry = claim.metadata.annotations.get(POD_CLAIM_ANNOTATION, "")
        for user in (*self._pods, *self._groups()):
            if user.metadata.uid == owner.uid:
                for each in user.spec.resource_claims:
                    if each.name == entry and each.resource_claim_template_name:
                        return namespace, each.resource_claim_template_name
        return None

    def _groups(self) -> Iterator[Any]:
        names = {(pod.metadata.namespace, group_name(pod)) for pod in self._pods}
        for group in self._snapshot.groups:
            if (group.metadata.namespace, group.metadata.name) in names:
                yield group

    async def _deletion(self, value: Pod | ResourceClaim, note: str) -> Step:
        before = await self._read(value)
        namespace, name = value.metadata.namespace, value.metadata.name
        step = Step("delete", type(value), namespace, name, before, note=note)
        await self._tried(self._delete(step, DRY_RUN), step)
        return step

    async def _tried(self, attempt: Any, step: Step) -> None:
        try:
            await attempt
        except ClientError as error:
            raise _refused(step, error) from None

    # --- requests -----------------------------------------------------------------------------

    async def _read(self, value: Any) -> Any:
        """Return an object as the server has it, if it is still the one that was explained."""
        endpoint, metadata = await self._endpoint(type(value)), value.metadata
        name = f"{value.kind} {'/'.join(filter(None, (metadata.namespace, metadata.name)))}"
        try:
            response = await self._client.send(
                Request("GET", endpoint.object(metadata.namespace, metadata.name))
            )
        except NotFoundError:
            raise NotPossibleError(f"{name} is not in the cluster any more") from None
        found = read_object(response.body, endpoint)
        is_same = found.metadata.resource_version == metadata.resource_version
        if not is_same and _said(found) != _said(value):  # A new status changes nothing.
            raise NotPossibleError(f"{name} was changed meanwhile: explain it again")
        return msgspec.json.decode(response.body)

    async def _endpoint(self, struct: type[Any]) -> Endpoint:
        endpoint = await self._client.endpoint(struct)
        if not endpoint.is_hub:
            raise NotPossibleError(
                f"the server has {struct.__name__} in {endpoint.kind.api_version} only: "
                "use --write-fix"
            )
        return endpoint

    async def _put(self, step: Step, query: str) -> None:
        path = (await self._endpoint(step.struct)).object(step.namespace, step.name)
        await self._client.send(Request("PUT", path, query, msgspec.json.encode(step.after)))

    async def _create(self, step: Step, tree: Any, query: str) -> None:
        path = (await self._endpoint(step.struct)).collection(step.namespace)
        await self._client.send(Request("POST", path, query, msgspec.json.encode(tree)))

    async def _delete(self, step: Step, query: str) -> None:
        """Delete an object, if it is the one that was read."""
        metadata = step.before["metadata"]
        options = {
            "preconditions": {name: metadata[name] for name in ("uid", "resourceVersion")},
            "propagationPolicy": "Background",
        }
        path = (await self._endpoint(step.struct)).object(step.namespace, step.name)
        await self._client.send(Request("DELETE", path, query, msgspec.json.encode(options)))


class HalfReplacedError(Exception):
    """An object was deleted, but the server refused to create it anew."""

    def __init__(self, step: Step, error: ClientError) -> None:
        super().__init__(str(error))
        self.step = step


def failure_text(step: Step, error: ClientError) -> str:
    """Return why a step was not made, in the server's words."""
    if isinstance(error, ConflictError):
        return f"{step} was changed meanwhile: {error}; explain it again"
    return f"{step}: {error}"


def _refused(step: Step, error: ClientError) -> NotPossibleError:
    return NotPossibleError(failure_text(step, error))


def _manager(tree: Any) -> str:
    """Return who would undo a change of an object, if that is known."""
    metadata = tree["metadata"]
    for owner in metadata.get("ownerReferences") or ():
        if owner.get("controller"):
            return f"{owner['kind']} {owner['name']} manages it and may undo the change"
    label = (metadata.get("labels") or {}).get("app.kubernetes.io/managed-by")
    return f"{label} manages it: make the change there, too" if label else ""


def _fresh(tree: Any) -> Any:
    """Return an object as it can be created again."""
    found = without_server_fields(tree)
    found["metadata"].pop("ownerReferences", None)
    return found


def _said(value: Any) -> Any:
    """Return what users say about an object, to see whether that changed."""
    return without_server_fields(to_tree(value))

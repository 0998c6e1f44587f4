"""Answers as the JSON that `moor explain -o json` prints; its schema is published and kept.

`docs/reference/explain.schema.json` is made from these types. A field that is there stays, with its
meaning; new ones may come.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from moorage.api.codec import to_tree
from moorage.insight.answer.changes.edits import ObjectChange, json_patch
from moorage.insight.answer.finding import Fix, FixRank
from moorage.insight.answer.groups import AnsweredPods
from moorage.insight.explain.diagnosis import Diagnosis
from moorage.insight.explain.funnel import Funnel
from moorage.insight.explain.phrases import member_text, rejection_text
from moorage.insight.explain.pods import Explanation
from moorage.insight.explain.report import nearest_first
from moorage.insight.explain.verdicts import NodeVerdict
from moorage.insight.messages import full_name
from moorage.insight.snapshot.snapshot import Snapshot, key_of
from moorage.insight.snapshot.stand_ins import stands_for

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
Rank = Literal[
    "repair",
    "give",
    "order",
    "less",
    "administrator",
    "free",
    "hardware",
    "advice",
    "giveUp",
]
RANKS: Final[Mapping[FixRank, Rank]] = {
    FixRank.REPAIR: "repair",
    FixRank.GIVE: "give",
    FixRank.ORDER: "order",
    FixRank.LESS: "less",
    FixRank.ADMINISTRATOR: "administrator",
    FixRank.FREE: "free",
    FixRank.HARDWARE: "hardware",
    FixRank.ADVICE: "advice",
    FixRank.GIVE_UP: "giveUp",
}


class _Shown(Struct, frozen=True, rename="camel"):
    """A part of the document."""


class ShownEdit(_Shown, frozen=True, omit_defaults=True):
    """One operation of a JSON patch (RFC 6902)."""

    op: Literal["add", "replace", "remove"]
    path: Annotated[str, Meta(description="A JSON pointer into the object.")]
    value: Annotated[
        Any, Meta(description="The new value; an operation that removes has none.")
    ] = msgspec.UNSET


class ShownChange(_Shown, frozen=True, omit_defaults=True):
    """What a fix does to one object: edits of one that exists, or a new one."""

    kind: str
    name: str
    namespace: Annotated[str, Meta(description="Missing for objects without a namespace.")] = ""
    edits: Annotated[
        tuple[ShownEdit, ...],
        Meta(description="A JSON patch of the object as an API server stores it."),
    ] = ()
    create: Annotated[
        dict[str, Any] | msgspec.UnsetType, Meta(description="The whole object, if it is new.")
    ] = msgspec.UNSET


class ShownHolder(_Shown, frozen=True, omit_defaults=True):
    """Who has what the pods wait for."""

    pods: Annotated[tuple[str, ...], Meta(description="That have to end, as namespace/name.")] = ()
    claim: Annotated[str, Meta(description="That they use, as namespace/name.")] = ""
    is_unused: Annotated[
        bool, Meta(description="Nobody uses the claim any more: it has to be deleted.")
    ] = False


class ShownFix(_Shown, frozen=True, omit_defaults=True):
    """Something to do, the best first. Changes were validated and tried."""

    number: Annotated[int, Meta(description="For --write-fix and --apply-fix.")]
    text: str
    kind: Annotated[
        Literal["change", "advice"],
        Meta(description="`change` if `changes` make the pod fit; `advice` if no change does."),
    ]
    rank: Annotated[
        Rank,
        Meta(
            description="What it means: `repair` a mistake, `give` what is missing, another "
            "`order` in which nobody has less, ask for `less`, a change for an `administrator`, "
            "`free` something, more `hardware`, other `advice`, `giveUp` something that was asked "
            "for."
        ),
    ]
    changes: tuple[ShownChange, ...] = msgspec.field()
    node: Annotated[
        str, Meta(description="The node that the first pod gets with a change, or after a wait.")
    ] = ""
    waits_for: Annotated[
        tuple[ShownHolder, ...],
        Meta(description="Who has to go first; just these went when the advice was tried."),
    ] = ()
    gives_up: Annotated[
        str, Meta(description="What the pods have less of then, and which; missing if nothing.")
    ] = ""


class ShownPool(_Shown, frozen=True):
    """A pool whose devices cannot be allocated."""

    pool: str
    state: str
    reason: str


class ShownDevice(_Shown, frozen=True):
    """The device that passed the most checks, and what it failed."""

    device: str
    stage: Annotated[str, Meta(description="The check that the device did not pass.")]
    text: str


class ShownFunnel(_Shown, frozen=True):
    """How many devices are left for a request after each check, in the order of the fields."""

    claim: str
    request: str
    wanted: Annotated[int | None, Meta(description="Null: all that are selected.")]
    in_fleet: int
    on_node: int
    of_class: int
    selected: int
    free: int
    tolerated: int
    fitting: int
    together: int
    nearest: Annotated[ShownDevice | None, Meta(description="Null if enough devices pass.")]


class ShownMember(_Shown, frozen=True):
    """A requirement or a claim with devices."""

    text: str


class ShownConflict(_Shown, frozen=True):
    """Requirements that cannot all be satisfied; without any one of them the others can."""

    is_minimal: Annotated[bool, Meta(description="False: not all may be needed.")]
    members: tuple[ShownMember, ...]


class ShownDiagnosis(_Shown, frozen=True):
    """Why claims cannot be allocated on a node."""

    node: str
    message: Annotated[str, Meta(description="The error that ended the attempt, if any.")]
    node_only: Annotated[bool, Meta(description="Whether other nodes may fit.")]
    pools: Annotated[tuple[ShownPool, ...], Meta(description="Pools that cannot be used.")]
    requests: tuple[ShownFunnel, ...]
    conflict: ShownConflict
    trials: Annotated[int, Meta(description="How often the allocator was asked.")]
    trials_given_up: int
    ended_by: Annotated[str, Meta(description="What interrupted the diagnosis, if anything.")]


class ShownVerdict(_Shown, frozen=True):
    """What nodes say alike."""

    nodes: tuple[str, ...]
    reasons: Annotated[
        tuple[str, ...], Meta(description="Kubernetes' reasons; none if the nodes would do.")
    ]
    facts: Annotated[
        tuple[str, ...], Meta(description="Behind the reasons, on the first of the nodes.")
    ]
    diagnosis: Annotated[
        ShownDiagnosis | None, Meta(description="Of the claims, on the first of the nodes.")
    ]
    is_behind: Annotated[
        bool,
        Meta(description="The diagnosis is not why the nodes reject the pod, but comes next."),
    ]


class ShownEvidence(_Shown, frozen=True):
    """What is behind a cause."""

    pod: str
    stands_for: Annotated[
        str | None, Meta(description="The claim or template that the pod stands for, if any.")
    ]
    stopped_by: Annotated[str, Meta(description="What stops the pod on every node, if anything.")]
    facts: tuple[str, ...]
    verdicts: Annotated[tuple[ShownVerdict, ...], Meta(description="The nearest nodes first.")]
    companion: Annotated[
        ShownEvidence | None,
        Meta(description="The pod of the group that gets no node beside the others."),
    ]
    message: Annotated[str, Meta(description="Kubernetes' message; empty if it writes none.")]
    written: Annotated[
        tuple[str, ...],
        Meta(description="What Kubernetes writes where its scheduler has no message."),
    ]


class ShownAnswer(_Shown, frozen=True):
    """Pods that wait for the same reason: the cause, the fixes, and the evidence."""

    title: Annotated[str, Meta(description="`pod team/train`, `97 pods of deployment train`.")]
    cause: Annotated[str, Meta(max_length=160, description="One sentence.")]
    fixes: tuple[ShownFix, ...]
    pods: Annotated[tuple[str, ...], Meta(description="All of them, as namespace/name.")]
    pod: Annotated[str, Meta(description="The first of them, which the evidence is about.")]
    stands_for: str | None
    stopped_by: str
    facts: tuple[str, ...]
    verdicts: tuple[ShownVerdict, ...]
    companion: ShownEvidence | None
    message: str
    written: tuple[str, ...]


class ShownExplanations(_Shown, frozen=True):
    """What `moor explain -o json` prints."""

    placed: Annotated[
        tuple[str, ...], Meta(description="Pods, claims and templates that get a node.")
    ]
    pending: tuple[ShownAnswer, ...]


def shown_explanations(
    placed: Iterable[str],
    answers: Iterable[AnsweredPods],
    snapshot: Snapshot,
    *,
    namespace: str = "",
) -> ShownExplanations:
    """Return all answers as JSON shows them; titles do not name the namespace that is given."""
    existing = {key_of(each): each for each in snapshot.objects()}
    shown = tuple(_shown(each, existing, namespace) for each in answers)
    return ShownExplanations(tuple(placed), shown)


def _shown(answered: AnsweredPods, existing: Mapping[Any, Any], namespace: str) -> ShownAnswer:
    evidence = shown_evidence(answered.explanation)
    fixes = enumerate(answered.answer.fixes, 1)
    return ShownAnswer(
        title=answered.title(namespace),
        cause=answered.answer.cause,
        fixes=tuple(_fix(number, fix, existing) for number, fix in fixes),
        pods=tuple(full_name(each.pod) for each in answered.pods),
        **{name: getattr(evidence, name) for name in ShownEvidence.__struct_fields__},
    )


def _fix(number: int, fix: Fix, existing: Mapping[Any, Any]) -> ShownFix:
    changes = tuple(_change(change, existing) for change in fix.changes)
    kind: Literal["change", "advice"] = "change" if changes else "advice"
    waits_for = tuple(
        ShownHolder(each.pods, "/".join(each.claim or ()), each.is_unused) for each in fix.waits_for
    )
    return ShownFix(
        number, fix.text, kind, RANKS[fix.rank], changes, fix.node, waits_for, fix.gives_up
    )


def _change(change: ObjectChange, existing: Mapping[Any, Any]) -> ShownChange:
    value = existing.get(change.key)
    operations = json_patch(to_tree(value), change.edits) if value is not None else []
    return ShownChange(
        kind=change.kind,
        name=change.name,
        namespace=change.namespace,
        edits=tuple(ShownEdit(**each) for each in operations),
        create=msgspec.UNSET if change.new is None else change.new,
    )


def shown_evidence(explanation: Explanation) -> ShownEvidence:
    """Return the evidence for a cause."""
    pending, companion = explanation.pending, explanation.companion
    return ShownEvidence(
        pod=full_name(pending.pod),
        stands_for=stands_for(pending.pod),
        stopped_by=explanation.stopped_by,
        facts=explanation.facts,
        verdicts=tuple(map(_verdict, nearest_first(explanation.verdicts))),
        companion=None if companion is None else shown_evidence(companion),
        message=pending.message,
        written=explanation.written,
    )


def _verdict(verdict: NodeVerdict) -> ShownVerdict:
    diagnosis = verdict.diagnosis
    return ShownVerdict(
        nodes=verdict.nodes,
        reasons=verdict.texts,
        facts=verdict.facts,
        diagnosis=None if diagnosis is None else shown_diagnosis(diagnosis),
        is_behind=verdict.is_behind,
    )


def shown_diagnosis(diagnosis: Diagnosis) -> ShownDiagnosis:
    """Return a diagnosis with the texts of its members."""
    situation, conflict = diagnosis.situation, diagnosis.conflict
    members = (member_text(each, situation, diagnosis.obstacles) for each in conflict.members)
    return ShownDiagnosis(
        node=situation.node.metadata.name,
        message=diagnosis.message,
        node_only=diagnosis.node_only,
        pools=tuple(ShownPool(each.pool, each.state, each.reason) for each in diagnosis.pools),
        requests=tuple(map(_funnel, diagnosis.funnels)),
        conflict=ShownConflict(conflict.is_minimal, tuple(map(ShownMember, members))),
        trials=diagnosis.trials,
        trials_given_up=diagnosis.trials_given_up,
        ended_by=diagnosis.ended_by,
    )


def _funnel(funnel: Funnel) -> ShownFunnel:
    device = None
    if (near := funnel.nearest) is not None:
        device = ShownDevice(near.device, near.stage, rejection_text(near.refusal))
    counts = {name: getattr(funnel, name) for name in _COUNTS}
    return ShownFunnel(
        claim=funnel.claim,
        request=funnel.request,
        wanted=funnel.wanted,
        nearest=device,
        **counts,
    )


_COUNTS: Final = tuple(
    name
    for name in ShownFunnel.__struct_fields__
    if name not in ("claim", "request", "wanted", "nearest")
)


def explain_schema() -> dict[str, Any]:
    """Return the JSON schema of what `moor explain -o json` prints."""
    schema = msgspec.json.schema(ShownExplanations)
    types = schema["$defs"]
    evidence = types[ShownEvidence.__name__]["properties"]
    for name, field in types[ShownAnswer.__name__]["properties"].items():
        described = evidence.get(name, {}).get("description")
        if described is not None:  # An answer has the fields of its evidence.
            field.setdefault("description", described)
    text = msgspec.json.encode({"$schema": DIALECT, **schema}).replace(b"Shown", b"")
    named: dict[str, Any] = msgspec.json.decode(text)
    return named

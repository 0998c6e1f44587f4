"""`moor explain`: why does a pod get no node, and what would help?"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import click

from moorage.cli import CONTEXT
from moorage.cli.cluster_options import ClusterInput, Sources, manifest_source_options, read_sources
from moorage.cli.errors import DOES_NOT_FIT, FITS, UNREADABLE
from moorage.cli.object_argument import objects_of, parse_subject, subject_argument
from moorage.cli.output import (
    Progress,
    output_option,
    print_answer,
    print_table,
    print_tree,
    yaml_text,
)
from moorage.cli.plan import planned
from moorage.cli.scheduler_file import scheduler_config_option
from moorage.cli.terminal import echo, echo_paragraph, printable, printable_lines
from moorage.insight.answer.answer import answers as answers_for
from moorage.insight.answer.changes.sources import Sources as ObjectSources
from moorage.insight.answer.consequences import sibling_notes
from moorage.insight.answer.document import shown_explanations
from moorage.insight.answer.finding import Answer, Fix
from moorage.insight.answer.groups import AnsweredPods, grouped, workload_of
from moorage.insight.answer.manifests import FixedDocument, fixed_manifests
from moorage.insight.answer.output import Tone, answer_lines
from moorage.insight.errors import UnreadError, UnwritableFixError
from moorage.insight.explain.pods import DiagnosisTimeLimit, Explanation
from moorage.insight.explain.report import name_of, placed_line
from moorage.insight.messages import counted, full_name
from moorage.insight.object_names import ObjectName as Subject
from moorage.insight.object_names import no_such, pod_name
from moorage.insight.plan.document import decisive
from moorage.insight.plan.placements import chosen_results
from moorage.insight.plan.planner import Plan, Result
from moorage.insight.plan.refused import refused_results, with_refused, with_unscheduled
from moorage.insight.plan.unknown import is_undecided
from moorage.insight.rows import CAUSE_COLUMNS, cause_rows
from moorage.insight.snapshot.stand_ins import stands_for, unused_in
from moorage.scheduler.reservation import Reservation
from moorage.scheduler.scheduling_cycle import Pending

PLACED_SHOWN_MAX = 5
CAUSES = ("POD", "CAUSE", "BEST FIX")
CAUSES_WIDE = (*CAUSES, "KIND", "NODE", "FIXES", "KUBERNETES WRITES")
_COLOURS = {Tone.CAUSE: ("", "red"), Tone.FIX: ("green", ""), Tone.HINT: ("", "cyan")}


@click.command(
    context_settings=CONTEXT,
    epilog="Exit status: 0 every pod gets a node, or the fix is written or applied; 1 some "
    "pods get none, or the fix is not applied; 2 usage error or no such object; 3 an "
    "input could not be read or has no objects.",
)
@subject_argument
@click.option(
    "-A",
    "--all-namespaces",
    "is_everywhere",
    is_flag=True,
    help="Look for [KIND/NAME] in all namespaces. Without [KIND/NAME], all namespaces "
    "are always explained.",
)
@click.option(
    "-v",
    "--verbose",
    "is_full",
    is_flag=True,
    help="Show all pods of a group by name, and all nodes in detail, not only the nearest.",
)
@click.option(
    "--write-fix",
    "written_number",
    type=click.IntRange(min=1),
    metavar="N",
    help="Print the manifests with fix N applied, and the objects of the cluster that it changes. "
    "Each cause has its own fixes: N is one of the first cause, so name the pod if there are more.",
)
@click.option(
    "--apply-fix",
    "applied_number",
    type=click.IntRange(min=1),
    metavar="N",
    help="Apply fix N to the cluster of --live: show the changes, ask for confirmation, and apply "
    "them. The server tries all of them in a dry run first.",
)
@click.option(
    "-y",
    "--yes",
    "is_sure",
    is_flag=True,
    help="Do not ask before --apply-fix changes the cluster.",
)
@output_option("text", default="text", names="the pods without a node")
@manifest_source_options
@scheduler_config_option
def command(
    sources: Sources,
    subject: str | None,
    is_everywhere: bool,
    is_full: bool,
    written_number: int | None,
    applied_number: int | None,
    is_sure: bool,
    output: str,
) -> None:
    """Explain why pods get no node: the cause, what to do about it, and the evidence.

    [KIND/NAME] is a pod, a claim, a template, or an object that creates pods (deployment/train).
    Without it, the command explains every pod of the manifests that gets no node; pods with the
    same cause are explained together. The cause comes first. Then come the fixes, the best first,
    each with the node that the pod would get: Moorage has tried each change; advice is for what no
    change of objects can do. The evidence follows: what each node says, the nearest first; for each
    request, how many devices remain after each check and which came closest; and which requirements
    conflict. Kubernetes' own message comes last.

    \b
    moor explain -f training.yaml --profile dgx-h100x2
    moor explain pod/train-4 --on cluster.yaml
    moor explain pod/train-4 -f training.yaml --on cluster.yaml --write-fix 1
    moor explain pod/train-4 --live --apply-fix 1
    moor explain claim/gpus -f claim.yaml --on cluster.yaml -o json
    """
    _check_usage(sources, written_number, applied_number, is_sure=is_sure, output=output)
    given = read_sources(sources)
    namespace = "" if is_everywhere else given.namespace
    about = None if subject is None else parse_subject(subject, namespace=namespace)
    plan = _plan(given, about)
    pods, stand_ins = _chosen(plan, given, about)
    results = [*pods, *stand_ins]
    pending = [each for each in results if isinstance(each, Pending)]
    answers = grouped(explained(plan, given, pending), plan.before)
    if written_number is not None:
        fix = _chosen_fix("--write-fix", answers, written_number, given.namespace)
        _write_fix(given, plan, fix, output)
        for note in sibling_notes(plan, fix, (each.pod for each in answers[0].pods)):
            echo(f"note: {printable(note)}", err=True)
        sys.exit(UNREADABLE if given.unreadable else FITS)
    if applied_number is not None:
        if given.unreadable:
            sys.exit(UNREADABLE)
        fix = _chosen_fix("--apply-fix", answers, applied_number, given.namespace)
        assert sources.live is not None
        from moorage.cli.apply_fix import apply_fix  # needs what talks HTTP

        sys.exit(apply_fix(sources.live, plan, answers[0], fix, is_sure=is_sure))
    if output == "text":
        _print_text(results, answers, given, is_full=is_full, is_live=sources.live is not None)
    else:
        _print_data(results, answers, plan, given.namespace, output)
    sys.exit(_exit_status(given, decisive(pods, stand_ins)))


def _exit_status(given: ClusterInput, decided: Sequence[Result]) -> int:
    are_unknown = not (decided or given.unread.knows("Pod"))
    if are_unknown or any(map(is_undecided, decided)):
        return UNREADABLE
    fails = any(isinstance(each, Pending) for each in decided)
    return given.exit_status(DOES_NOT_FIT if fails else FITS)


def _plan(given: ClusterInput, about: Subject | None) -> Plan:
    """Return the plan, with what is refused or kept from the scheduler."""
    everything = given.everything
    unused = unused_in(given.manifests, everything)
    if about is not None:
        found = unused_in(everything, everything)
        unused = tuple(each for each in found if about.is_of(each))
    plan = with_refused(planned(given, unused), given.refused_objects)
    return plan if about is None else with_unscheduled(plan)


def _check_usage(
    sources: Sources, written: int | None, applied: int | None, *, is_sure: bool, output: str
) -> None:
    if is_sure and applied is None:
        raise click.UsageError("--yes answers the question of --apply-fix: give that, too")
    if written is not None and output not in ("text", "yaml", "json"):
        raise click.UsageError(f"--write-fix prints manifests, with -o yaml or json, not {output}")
    if applied is None:
        return
    if written is not None:
        raise click.UsageError("give --write-fix or --apply-fix, not both")
    if output != "text":
        raise click.UsageError("--apply-fix prints a diff: -o is for explanations and --write-fix")
    if sources.live is None:
        raise click.UsageError("--apply-fix changes a running cluster: give --live")
    if sources.manifests or len(sources.cluster) > 1:
        raise click.UsageError(
            "--apply-fix works on the cluster alone: give --live without -f, --on and --profile"
        )


def explained(
    plan: Plan, given: ClusterInput, pending: list[Pending]
) -> Iterator[tuple[list[Pending], Explanation, Answer]]:
    """Yield the answers for all pods, within the time that diagnoses may take."""
    limit = DiagnosisTimeLimit(time.monotonic)
    with Progress("nodes looked at") as progress:
        yield from answers_for(
            plan,
            pending,
            given.context,
            refused=given.refused_objects,
            dropped=given.dropped_fields,
            effort=limit.effort,
            progress=progress,
        )


# --- the subject --------------------------------------------------------------------------


def _chosen(
    plan: Plan, given: ClusterInput, subject: Subject | None
) -> tuple[list[Result], list[Result]]:
    """Return the results that the command is about: of pods, and of stand-ins."""
    stand_ins = list(plan.stand_ins)
    if subject is None:
        if not any(given.manifests.objects()):
            return list(plan.results), stand_ins
        chosen = chosen_results(plan.results, given.manifests)
        return [*refused_results(plan), *chosen], stand_ins
    objects = ObjectSources(plan.before)
    found = [each for each in plan.results if _is_about(each, subject, objects)]
    if not found and not stand_ins:
        _explain_absence(plan, given, subject)
    return found, stand_ins


def _is_about(result: Result, subject: Subject, objects: ObjectSources) -> bool:
    pod = result.pod
    if not subject.is_in(pod.metadata.namespace):
        return False
    match subject.kind:
        case "Pod":
            return pod.metadata.name == subject.name
        case "ResourceClaim":
            return subject.name in _claims(result)
        case "ResourceClaimTemplate":
            entries = (e.resource_claim_template_name for e in pod.spec.resource_claims)
            return subject.name in entries
        case "PodGroup":
            group = pod.spec.scheduling_group
            return group is not None and group.pod_group_name == subject.name
        case kind:
            owners = [(each.kind, each.name) for each in pod.metadata.owner_references]
            workload = workload_of(pod, objects)  # of a pod of a replica set, the deployment
            if workload is not None:
                owners.append((workload.kind, workload.name))
            return (kind, subject.name) in owners


def _claims(result: Result) -> set[str]:
    pod = result.pod
    named = {entry.resource_claim_name for entry in pod.spec.resource_claims}
    made = {each.resource_claim_name for each in pod.status.resource_claim_statuses or ()}
    return {name for name in named | made if name is not None}


def _explain_absence(plan: Plan, given: ClusterInput, subject: Subject) -> None:
    """Say why there is nothing to explain: the object is not there, or all is well with it."""
    snapshot = plan.before
    of_kind = {
        "Pod": snapshot.pods,
        "ResourceClaim": snapshot.claims,
        "ResourceClaimTemplate": snapshot.templates,
        "PodGroup": snapshot.groups,
    }.get(subject.kind)
    if of_kind is None:
        of_kind = tuple(each for each in snapshot.controllers if each.kind == subject.kind)
    for each in of_kind:
        namespace, _, name = full_name(each).partition("/")
        if name == subject.name and subject.is_in(namespace):
            echo(printable(_well(each, subject._replace(namespace=namespace))))
            sys.exit(FITS)
    with objects_of(given):
        raise no_such(subject, snapshot)


def _well(value: Any, subject: Subject) -> str:
    node = getattr(value.spec, "node_name", "")
    if node:
        return f"{subject} has a node: {node}."
    if subject.kind == "ResourceClaim" and value.status.allocation is not None:
        return f"{subject} has its devices; moor claims lists them."
    return f"{subject} has no pods that look for a node."


# --- fixes --------------------------------------------------------------------------------


def _chosen_fix(option: str, answers: list[AnsweredPods], number: int, namespace: str) -> Fix:
    """Return a fix of the first cause that is a change."""
    if not answers:
        raise click.UsageError(f"{option} {number}: every pod gets a node; there is nothing to fix")
    first, *others = answers
    about = first.title(namespace)
    if others:
        text = f"{option} {number} is about {about}, the first of {len(answers)} causes"
        example = f"moor explain {others[0].subject(namespace)} … {option} {number}"
        echo(f"note: {printable(text)}; name a pod for another: {printable(example)}", err=True)
    fixes = first.answer.fixes
    if number > len(fixes):
        offered = f"{len(fixes)} fixes are" if len(fixes) != 1 else "one fix is"
        raise click.UsageError(
            f"{option} {number}: {offered if fixes else 'no fix is'} offered for {about}"
        )
    fix = fixes[number - 1]
    if not fix.changes:
        raise click.UsageError(
            f"{option} {number}: fix {number} for {about} is advice, which no change of objects "
            f"can do: {fix.text}"
        )
    return fix


def _write_fix(given: ClusterInput, plan: Plan, fix: Fix, output: str) -> None:
    """Print the manifests with a fix applied."""
    try:
        fixed = fixed_manifests(fix, given.documents, plan.before, given.context)
    except UnwritableFixError as error:
        raise click.UsageError(f"the fix cannot be written: {error}") from None
    if output == "json":
        print_tree({"apiVersion": "v1", "kind": "List", "items": [each.tree for each in fixed]})
        return
    echo(fix_text(fixed), nl=False)


def fix_text(fixed: Iterable[FixedDocument]) -> str:
    """Return manifests with a fix made as YAML, in their author's words where these can stay."""
    return "---\n".join(
        each.text
        if each.text is not None and each.text == printable_lines(each.text)
        else f"{yaml_text([each.tree])}\n"
        for each in fixed
    )


# --- printing -----------------------------------------------------------------------------


def _print_text(
    results: list[Result],
    answers: list[AnsweredPods],
    given: ClusterInput,
    *,
    is_full: bool,
    is_live: bool,
) -> None:
    if not results and not given.unreadable:
        if hidden := given.unread.hidden(("Pod",)):
            raise UnreadError(hidden, "which pods look for a node")
        echo("Nothing to explain: there are no pods that look for a node.")
    hint = ""
    for number, answered in enumerate(answers):
        if number:
            echo("")
        is_first, hint = not hint, hint or _hint(answered, given, is_live=is_live)
        lines = answer_lines(
            answered,
            namespace=given.namespace,
            hint=hint if is_first else "",
            is_full=is_full,
        )
        for line in lines:
            lead_colour, colour = _COLOURS.get(line.tone, ("", ""))
            echo_paragraph(line.lead, line.text, lead_colour=lead_colour, colour=colour)
    placed = [each for each in results if isinstance(each, Reservation)]
    if placed and answers:
        echo("")
    for each in placed if is_full else placed[:PLACED_SHOWN_MAX]:
        echo(printable(placed_line(each)))
    more = len(placed) - PLACED_SHOWN_MAX
    if more > 0 and not is_full:
        echo(f"{counted(more, 'more pod')} {'gets' if more == 1 else 'get'} a node: moor plan")


def _print_data(
    results: list[Result], answers: list[AnsweredPods], plan: Plan, namespace: str, output: str
) -> None:
    placed = [name_of(each) for each in results if isinstance(each, Reservation)]
    shown = shown_explanations(placed, answers, plan.before, namespace=namespace)
    pods = (each.pod for answered in answers for each in answered.pods)
    print_answer(
        output,
        table=lambda is_wide: print_table(
            CAUSES_WIDE if is_wide else CAUSES,
            (_cause_row(row, is_wide=is_wide) for row in cause_rows(shown.pending)),
            is_wide=is_wide,
        ),
        document=lambda: shown,
        rows=lambda: cause_rows(shown.pending),
        names=lambda: (pod_name(full_name(each), stands_for(each)) for each in pods),
        columns=CAUSE_COLUMNS,
    )


def _cause_row(row: dict[str, Any], *, is_wide: bool) -> tuple[str, ...]:
    cells = (row["stands_for"] or row["pod"], row["cause"], row["fix"] or "")
    more = (row["fix_kind"] or "", row["fix_node"] or "", str(row["fixes"]), row["message"] or "")
    return (*cells, *more) if is_wide else cells


def _hint(answered: AnsweredPods, given: ClusterInput, *, is_live: bool) -> str:
    """Return how to use the fixes, once for all causes; nothing if none is a change."""
    for number, fix in enumerate(answered.answer.fixes, 1):
        if fix.changes:
            option = "--apply-fix" if is_live and not given.documents else "--write-fix"
            does = "makes" if option == "--apply-fix" else "prints the manifests with"
            command = f"moor explain {answered.subject(given.namespace)} … {option} {number}"
            return f"({command} {does} fix {number})"
    return ""

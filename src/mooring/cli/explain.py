"""`moor explain`: why does a pod get no node, and what would help?"""

from __future__ import annotations

import sys
import time
from typing import Any

import click

from mooring.cli import CONTEXT
from mooring.cli.cluster_options import ClusterInput, cluster_options
from mooring.cli.errors import DOES_NOT_FIT, FITS
from mooring.cli.object_argument import Subject, no_such, parse_subject, subject_argument
from mooring.cli.output import Progress, output_option, print_tree, print_trees
from mooring.cli.plan import planned
from mooring.cli.terminal import echo, printable
from mooring.insight.answer.answer import AnsweredPods, answers
from mooring.insight.answer.output import answer_lines, answer_tree, fixed_manifests
from mooring.insight.explain.pods import DiagnosisTimeLimit
from mooring.insight.explain.report import name_of, placed_line
from mooring.insight.messages import counted, full_name
from mooring.insight.plan.placements import chosen_results, stand_ins, stands_for
from mooring.insight.plan.planner import Plan, Result
from mooring.scheduler.reservation import Reservation
from mooring.scheduler.scheduling_cycle import Pending


@click.command(
    context_settings=CONTEXT,
    epilog="Exit status: 0 every pod gets a node, 1 some do not, 2 usage error or no such "
    "object, 3 an input could not be read.",
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
    "--write-fix",
    "fix_number",
    type=click.IntRange(min=1),
    metavar="N",
    help="Print the manifests with fix N of the first pending pod made.",
)
@output_option("text", "json", "yaml")
@cluster_options
def command(
    given: ClusterInput,
    subject: str | None,
    is_everywhere: bool,
    fix_number: int | None,
    output: str,
) -> None:
    """Explain why pods get no node: per node, per request, down to the device.

    [KIND/NAME] is a pod, a claim, a template, or an object that creates pods (deployment/train).
    Without it, the command explains every pod of the manifests that gets no node. It prints a
    verdict for each node; for each request, how many devices remain after each check and which
    came closest; which requirements conflict; and the smallest changes that would make the pod
    fit, each of which has been tried. Kubernetes' own message comes last.

    \b
    moor explain -f training.yaml --profile dgx-h100x2
    moor explain pod/train-4 --on cluster.yaml
    moor explain -A --live
    moor explain claim/gpus -f claim.yaml --on cluster.yaml -o json
    """
    everything = given.everything
    added = stand_ins(given.manifests if subject is None else everything, everything)
    plan = planned(given, everything.with_objects(added))
    namespace = "" if is_everywhere else given.namespace
    about = None if subject is None else parse_subject(subject, namespace=namespace)
    results = _chosen(plan, given, added, about)
    pending = [each for each in results if isinstance(each, Pending)]
    found = _answers(plan, given, pending)
    if fix_number is not None:
        _write_fix(given, plan, found, fix_number)
        return
    if output == "text":
        _print_text(results, found)
    else:
        print_tree(_tree(results, found), output)
    sys.exit(given.exit_status(DOES_NOT_FIT if pending else FITS))


def _answers(plan: Plan, given: ClusterInput, pending: list[Pending]) -> list[AnsweredPods]:
    """Return the answers for all pods, within the time that diagnoses may take."""
    limit = DiagnosisTimeLimit(time.monotonic)
    with Progress("nodes looked at") as progress:
        return answers(
            plan,
            pending,
            given.context,
            refused=given.refused_objects,
            unread=given.unread,
            effort=limit.effort,
            progress=progress,
        )


# --- the subject --------------------------------------------------------------------------


def _chosen(
    plan: Plan, given: ClusterInput, added: tuple[Any, ...], subject: Subject | None
) -> list[Result]:
    """Return the results that the command is about."""
    if subject is None:
        if not any(given.manifests.objects()):
            return list(plan.results)
        return chosen_results(plan.results, given.manifests.with_objects(added))
    found = [each for each in plan.results if _is_about(each, subject)]
    if not found:
        _explain_absence(plan, subject)
    return found


def _is_about(result: Result, subject: Subject) -> bool:
    pod = result.pod
    if not subject.is_in(pod.metadata.namespace):
        return False
    match subject.kind:
        case "Pod":
            return pod.metadata.name == subject.name
        case "ResourceClaim":
            return stands_for(pod) == f"claim/{subject.name}" or subject.name in _claims(result)
        case "ResourceClaimTemplate":
            entries = (e.resource_claim_template_name for e in pod.spec.resource_claims)
            return stands_for(pod) == f"template/{subject.name}" or subject.name in entries
        case "PodGroup":
            group = pod.spec.scheduling_group
            return group is not None and group.pod_group_name == subject.name
        case kind:
            owners = pod.metadata.owner_references
            return any((o.kind, o.name) == (kind, subject.name) for o in owners)


def _claims(result: Result) -> set[str]:
    pod = result.pod
    named = {entry.resource_claim_name for entry in pod.spec.resource_claims}
    made = {each.resource_claim_name for each in pod.status.resource_claim_statuses or ()}
    return {name for name in named | made if name is not None}


def _explain_absence(plan: Plan, subject: Subject) -> None:
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
            echo(_well(each, subject._replace(namespace=namespace)))
            sys.exit(FITS)
    raise no_such(subject, map(full_name, of_kind))


def _well(value: Any, subject: Subject) -> str:
    node = getattr(value.spec, "node_name", "")
    if node:
        return f"{subject} has a node: {node}."
    if subject.kind == "ResourceClaim" and value.status.allocation is not None:
        return f"{subject} has its devices; moor claims lists them."
    return f"{subject} has no pods that look for a node."


def _write_fix(given: ClusterInput, plan: Plan, answers: list[AnsweredPods], number: int) -> None:
    """Print the manifests with a fix made."""
    if not answers:
        raise click.UsageError("every pod gets a node: there is nothing to fix")
    fixes = answers[0].answer.fixes
    if number > len(fixes):
        raise click.UsageError(f"--write-fix {number}: {counted(len(fixes), 'fix')[:-1]} offered")
    fix = fixes[number - 1]
    if fix.kind != "change":
        raise click.UsageError(f"--write-fix {number}: this is advice, no change: {fix.text}")
    trees = fixed_manifests(fix, given.documents, plan.before, namespace=given.namespace)
    print_trees(trees)


# --- printing -----------------------------------------------------------------------------


def _print_text(results: list[Result], answers: list[AnsweredPods]) -> None:
    if not results:
        echo("Nothing to explain: there are no pods that look for a node.")
    for each in results:
        if isinstance(each, Reservation):
            echo(printable(placed_line(each)))
    for number, answered in enumerate(answers):
        if number or any(isinstance(each, Reservation) for each in results):
            echo("")
        for line in answer_lines(*answered):
            echo(printable(line))


def _tree(results: list[Result], answers: list[AnsweredPods]) -> dict[str, Any]:
    placed = [name_of(each) for each in results if isinstance(each, Reservation)]
    return {"placed": placed, "pending": [answer_tree(*each) for each in answers]}

"""Laws that try what was said: one more replica, a fix, the end of a wait."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any, Final

from soak._agreement.doors import Doors
from soak._agreement.fleet import Tree
from soak._agreement.words import ASKED_MAX, name_of, running_pods
from soak._agreement.work import PRIORITIES
from soak._agreement.worlds import NAMESPACE

REPLICAS_MAX: Final = 12
SIZED: Final = ("Deployment", "StatefulSet", "Job")
_WAIT: Final = re.compile(r"wait until (.+?) (?:frees? |free enough|leaves? |ends)")
_PART: Final = re.compile(r"^(claim|pod) (?:(\S+)/)?([^\s/,]+)(?: of pod ([^\s,]+))?")


def fit_is_what_a_plan_places(doors: Doors) -> Iterator[str]:
    """A plan places as many replicas as `fit` says, where they come last, and not one more."""
    for subject in _sized_subjects(doors)[:ASKED_MAX]:
        metadata, kind = subject["metadata"], subject["kind"]
        about = f"{kind.lower()}/{metadata['name']}"
        words = ("fit", about, "-n", metadata["namespace"], "--max", str(REPLICAS_MAX))
        answer = doors.ask(*words)
        found = answer.tree
        total = found["total"]
        if answer.status != int(total == 0):
            yield f"{about}: exit status {answer.status}, {total} fit"
        if sum(each["replicas"] for each in found["places"]) != total:
            yield f"{about}: {total} fit, on nodes {found['places']}"
        if total:
            placed = _placed_of(doors, subject, total)
            if placed != total:
                yield f"{about}: fit says {total}, a plan of as many places {placed}"
        if not found["isMore"] and total < REPLICAS_MAX:
            placed = _placed_of(doors, subject, total + 1)
            if placed != total:
                yield f"{about}: fit says {total}, a plan of one more places {placed}"


def fixes_place_pods(doors: Doors) -> Iterator[str]:
    """A fix that `explain` offers, as `--write-fix` writes it, lets `plan` place the pod."""
    for answer in doors.explanation.tree["pending"][:ASKED_MAX]:
        changes = [each for each in answer["fixes"] if each["kind"] == "change"]
        if answer["standsFor"] or not changes or _has_placed_siblings(doors, answer):
            continue
        fix = changes[0]
        space, name = name_of(answer["pod"])
        written = doors.asked(
            *("explain", f"pod/{name}", "-n", space, "--write-fix", str(fix["number"])),
            *("--on", doors.cluster, "-f", doors.manifests),
        )
        path = doors.folder / f"fixed-{name}.yaml"
        path.write_text(written.text, encoding="utf-8")
        plan = doors.asked(
            *("plan", "--all", "-n", NAMESPACE, "-o", "json"),
            *("--on", doors.cluster, "-f", f"{path}"),
        )
        pods = {each["pod"]: each for each in plan.tree["pods"]}
        result = pods.get(answer["pod"])
        if result is None and not fix["text"].startswith("run "):
            yield f"{answer['pod']}: gone with fix {fix['text']!r}"
        elif result is not None and not result.get("node"):
            yield f"{answer['pod']}: with fix {fix['text']!r} no node: {result.get('message')}"


def waits_end_when_they_say(doors: Doors) -> Iterator[str]:
    """A pod that waits for others, as `explain` says, is placed by `whatif` without these."""
    waiting = {_full_name(each) for each in (*doors.world.cluster, *doors.world.manifests)}
    for answer in doors.explanation.tree["pending"]:
        # What is deleted and created again comes before pods that controllers still have to create.
        for fix in answer["fixes"] if answer["pod"] in waiting else ():
            named = _WAIT.search(fix["text"])
            if fix["kind"] != "advice" or not fix["text"].startswith("wait until") or not named:
                continue
            yield from _wait_faults(doors, answer, fix["text"], named[1])


def _wait_faults(doors: Doors, answer: Tree, text: str, named: str) -> Iterator[str]:
    space = name_of(answer["pod"])[0]
    options: list[str] = []
    for part in re.split(r", (?=claim |pod )| and (?=claim |pod )", named):
        found = _PART.search(part)
        if found is None or "more" in named:
            return  # More are meant than are named.
        kind, where, name, user = found.groups()
        if user is not None:
            kind, name = "pod", user
        running = running_pods(doors).get(f"{where or space}/{name}")
        if kind == "pod" and (running is None or running[1]):
            return  # It is planned, too, or its controller creates it again.
        options += [f"--delete-{kind}", f"{where or space}/{name}"]
    after = doors.ask("whatif", "-n", NAMESPACE, *options)
    changed = {each["pod"]: each for each in after.tree["pods"]}
    result = changed.get(answer["pod"], {})
    if not (result.get("after") or {}).get("node"):
        shown = " ".join(options)
        yield f"{answer['pod']}: {text!r}, but whatif {shown}: {result.get('turn', 'no change')}"


# --- words ------------------------------------------------------------------------------------


def _sized_subjects(doors: Doors) -> list[Tree]:
    """Return the new workloads that come last in a plan if they are last in the files."""
    waiting = [each for each in doors.world.cluster if _is_pending(each)]
    makers = [each for each in doors.world.manifests if _pod_spec(each) is not None]
    if any(each["kind"] == "ResourceQuota" for each in doors.world.cluster):
        return []  # A quota counts the replicas that a controller creates, not those that fit.
    least = min((_priority(each) for each in (*waiting, *makers)), default=0)
    return [each for each in makers if each["kind"] in SIZED and _priority(each) == least]


def _placed_of(doors: Doors, subject: Tree, replicas: int) -> int:
    """Return how many of so many replicas a plan places, if all others come before them."""
    sized = copy.deepcopy(subject)
    if subject["kind"] == "Job":
        sized["spec"] |= {"parallelism": replicas, "completions": replicas}
    else:
        sized["spec"]["replicas"] = replicas
    others = [each for each in doors.world.manifests if each is not subject]
    name = subject["metadata"]["name"]
    manifests = doors.write_manifests(f"{name}-{replicas}.yaml", [*others, sized])
    plan = doors.asked(
        *("plan", "-n", NAMESPACE, "-o", "json", "--on", doors.cluster, "-f", manifests)
    )
    start = f"{subject['metadata']['namespace']}/{name}-"
    pods = [each for each in plan.tree["pods"] if each["pod"].startswith(start)]
    return sum(bool(each.get("node")) for each in pods)


def _full_name(tree: Tree) -> str:
    """Return namespace and name of a pod; "" for anything else."""
    metadata = tree["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if tree["kind"] == "Pod" else ""


def _has_placed_siblings(doors: Doors, answer: Tree) -> bool:
    """Return whether some replicas are placed: the fix changes them, too, and they come first."""
    start = answer["pod"].rpartition("-")[0]
    makers = [each for each in doors.world.manifests if each["kind"] in (*SIZED, "DaemonSet")]
    names = [f"{each['metadata']['namespace']}/{each['metadata']['name']}" for each in makers]
    own = [name for name in names if start.startswith(name)]
    return any(
        each.get("node") and each["pod"].startswith(f"{name}-")
        for name in own
        for each in doors.plan.tree["pods"]
    )


def _is_pending(tree: Tree) -> bool:
    return tree["kind"] == "Pod" and not tree["spec"].get("nodeName")


def _pod_spec(tree: Tree) -> Any:
    spec = tree.get("spec") or {}
    return spec if tree["kind"] == "Pod" else (spec.get("template") or {}).get("spec")


def _priority(tree: Tree) -> int:
    return PRIORITIES.get(_pod_spec(tree).get("priorityClassName", ""), 0)

"""Laws about pods: plan, explain, what-if and the library."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from soak._agreement.doors import Doors, Name
from soak._agreement.fleet import Tree
from soak._agreement.words import (
    ASKED_MAX,
    FREE,
    UNUSED,
    differ,
    entries_of,
    is_of_daemon,
    makes_pods,
    running_pods,
    title_of,
    without_change,
)
from soak._agreement.worlds import NAMESPACE


def placed_or_pending(doors: Doors) -> Iterator[str]:
    """A pod that `plan` places is not pending for `explain`, and the other way round."""
    plan, said = doors.plan.tree, doors.explanation.tree
    shown = [*plan["pods"], *plan["standIns"]]
    placed = {title_of(each) for each in shown if each.get("node")}
    explained = {each.removesuffix(UNUSED) for each in said["placed"]}
    yield from differ("placed", placed, explained, "plan", "explain")
    pending = {each["pod"] for each in shown if not each.get("node")}
    waiting = [pod for answer in said["pending"] for pod in answer["pods"]]
    yield from differ("pending", pending, set(waiting), "plan", "explain")
    yield from (f"explained twice: {pod}" for pod, n in Counter(waiting).items() if n > 1)
    messages = {each["pod"]: each.get("message", "") for each in shown}
    for answer in said["pending"]:
        message = messages.get(answer["pod"])
        if message != answer["message"]:
            yield f"{answer['pod']}: plan says {message!r}, explain {answer['message']!r}"
    counts = Counter(bool(each.get("node")) for each in plan["pods"])
    summary = plan["summary"]
    if (summary["placed"], summary["pending"]) != (counts[True], counts[False]):
        yield f"the summary of plan counts {summary}, its rows {counts}"


def one_pod_or_all(doors: Doors) -> Iterator[str]:
    """`explain pod/NAME` gives the cause that `explain` gives for all, and so does a placed pod."""
    said = doors.explanation.tree
    for answer in said["pending"][:ASKED_MAX]:
        if answer["standsFor"]:
            continue
        space, _, name = answer["pod"].partition("/")
        alone = doors.ask("explain", f"pod/{name}", "-n", space)
        causes = [each["cause"] for each in alone.tree["pending"]]
        if causes != [answer["cause"]] or alone.status != 1:
            yield f"{answer['pod']}: alone {causes}, among all {answer['cause']!r}"
    placed = [each for each in said["placed"] if each.startswith("pod ")]
    for title in placed[:1]:
        space, _, name = title.removeprefix("pod ").partition("/")
        alone = doors.ask("explain", f"pod/{name}", "-n", space)
        if alone.status != 0 or title not in alone.tree["placed"]:
            yield f"{title}: placed among all, alone {alone.status} {alone.tree['pending']}"


def exit_statuses(doors: Doors) -> Iterator[str]:
    """An exit status says what the contents say."""
    plan = doors.plan.tree
    judged = plan["pods"] or plan["standIns"]
    wanted = int(any(not each.get("node") for each in judged))
    if doors.plan.status != wanted:
        yield f"plan: {doors.plan.status}, contents {wanted}"
    if doors.explanation.status != wanted:
        yield f"explain: {doors.explanation.status}, contents {wanted}"
    lint = doors.ask("lint")
    summary = lint.tree["summary"]
    if lint.status != int(bool(summary["errors"] + summary["warnings"])):
        yield f"lint: {lint.status}, contents {summary}"
    severities = Counter(each["severity"] for each in lint.tree["findings"])
    for word in ("error", "warning", "note"):
        if severities[word] != summary[f"{word}s"]:
            yield f"lint: {severities[word]} findings are {word}s, the summary says {summary}"


def library_as_commands(doors: Doors) -> Iterator[str]:
    """The library answers what the commands print."""
    world = doors.library
    plan = world.plan()
    if plan.to_dict() != doors.plan.tree:
        yield "plan"
    if world.devices().to_dict()["devices"] != doors.devices:
        yield "devices"
    if world.claims().to_dict()["claims"] != doors.claims:
        yield "claims"
    said = {tuple(each["pods"]): each["cause"] for each in doors.explanation.tree["pending"]}
    for found in plan.explain():
        tree = found.to_dict()
        if said.get(tuple(tree["pods"])) != tree["cause"]:
            yield f"explain: {tree['pods']}: {tree['cause']}"


def nothing_changes_nothing(doors: Doors) -> Iterator[str]:
    """`whatif` of a change that concerns nobody changes nothing, and counts what is planned."""
    found = without_change(doors)
    if found["pods"] or found["summary"]["freeBefore"] != found["summary"]["freeAfter"]:
        yield f"an empty namespace changes {found['pods']} {found['summary']}"
    if found["leavingAnyway"]:
        return  # pods that taints evict leave in what-if, and stay in a plan
    page = Counter[Name]()
    for (driver, _, _), device in doors.shown_page.devices.items():
        page[device.node, driver] += device.state == FREE
    for row in found["devices"]:
        key = (row["node"], row["driver"])
        if key in page and page[key] != row["freeBefore"]:
            yield f"free once planned on {key}: whatif {row['freeBefore']}, page {page[key]}"


def drained_nodes_are_empty(doors: Doors) -> Iterator[str]:
    """`whatif --drain` moves exactly the pods that run there, and leaves only those of daemons."""
    running = running_pods(doors)
    nodes = sorted({node for node, _ in running.values()})
    for node in nodes[:ASKED_MAX]:
        found = doors.ask("whatif", "-n", NAMESPACE, "--drain", node).tree
        anyway = set(found["leavingAnyway"])
        wanted = {
            pod
            for pod, (where, owner) in running.items()
            if where == node and owner != "DaemonSet" and pod not in anyway
        }
        drained = {each["pod"] for each in found["pods"] if "drained" in each.get("why", "")}
        yield from differ(f"drained from {node}", wanted, drained, "runs there", "whatif")
        for each in found["pods"]:
            after = each.get("after") or {}
            if after.get("node") == node and not is_of_daemon(doors, each["pod"]):
                yield f"{each['pod']} is on {node} after it is drained"


def mistyped_classes_have_one_name(doors: Doors) -> Iterator[str]:
    """`lint` names each class that `explain` says does not exist, and no pod is placed with it."""
    findings = doors.ask("lint").tree["findings"]
    known = {
        each["metadata"]["name"] for each in doors.world.cluster if each["kind"] == "DeviceClass"
    }
    linted = {
        name
        for each in findings
        if each["rule"] == "unknown-class"
        for name in re.findall(r"[\w.-]+\.(?:com|org)", each["message"])
        if name not in known
    }
    said = {
        name
        for answer in doors.explanation.tree["pending"]
        for name in re.findall(r"device class (\S+) does not exist", answer["cause"])
    }
    yield from differ("classes that do not exist", said - linted, set(), "explain", "lint")
    spoiled = {
        (each["kind"], each["name"])
        for each in findings
        if each["rule"] == "unknown-class" and ".exactly." in each["field"]
    }
    for maker in filter(makes_pods, doors.world.manifests):
        space = maker["metadata"]["namespace"]
        if spoiled.isdisjoint(_uses(each, space) for each in entries_of(maker)):
            continue
        own = f"{space}/{maker['metadata']['name']}"
        for each in doors.plan.tree["pods"]:
            if each.get("node") and (each["pod"] == own or each["pod"].startswith(f"{own}-")):
                yield f"{each['pod']} is placed, though lint says that its class does not exist"


def _uses(entry: Tree, space: str) -> tuple[str, str]:
    """Return the kind and the name of the claim or template that an entry of a pod names."""
    if "resourceClaimName" in entry:
        return "ResourceClaim", f"{space}/{entry['resourceClaimName']}"
    return "ResourceClaimTemplate", f"{space}/{entry.get('resourceClaimTemplateName')}"

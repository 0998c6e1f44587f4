"""What `lint` looks at, and what it found, as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from moorage.insight.expressions.evaluation import compiler_for
from moorage.insight.expressions.published_devices import PublishedDevices
from moorage.insight.lint import Finding, LintContext, ObjectIndex, Severity, lacking
from moorage.insight.lint.subjects import LintObject
from moorage.insight.snapshot.unread import Unread, unread_tree
from moorage.sources.collection import Collected
from moorage.validation.strategy import Context


class LintInput(NamedTuple):
    """The objects to lint, and the cluster around them."""

    subjects: list[LintObject]  # the manifests; without them, all of the cluster
    world: LintContext
    files: int | None  # with subjects; None if those are of the cluster
    ignored: int  # objects among the subjects that no rule looks at
    unreadable: list[str]
    unwritten: set[str]  # sources whose objects have no line and column


def lint_input(cluster: Collected, manifests: Collected | None, context: Context) -> LintInput:
    """Return the manifests in a cluster, or the cluster itself."""
    objects, parts = cluster.objects, [cluster]
    if manifests is not None:
        replaced = set(map(_key, manifests.objects))
        objects = [each for each in objects if _key(each) not in replaced] + manifests.objects
        parts.append(manifests)
    looked_at = parts[-1]
    return LintInput(
        subjects=looked_at.objects,
        world=_world(objects, context, Unread(tuple(cluster.unread))),
        files=None if manifests is None else manifests.files,
        ignored=looked_at.ignored,
        unreadable=[message for each in parts for message in each.unreadable],
        unwritten={source for each in parts for source in each.unwritten},
    )


def _key(found: LintObject) -> tuple[str, str]:
    return found.kind.name, found.full_name


def _world(objects: list[LintObject], context: Context, unread: Unread) -> LintContext:
    return LintContext(
        PublishedDevices(
            [each.stored for each in objects if each.stored is not None], names=context.extensions
        ),
        (each.value for each in objects if each.kind.name == "DeviceClass"),
        compiler_for(context.gates, extensions=context.extensions),
        ObjectIndex(objects, context),
        unread,
    )


def lint_tree(findings: Sequence[Finding], given: LintInput) -> dict[str, Any]:
    """Return findings as `moor lint -o json` prints them."""
    counts = Counter(finding.severity for finding in findings)
    return {
        "findings": [finding_tree(finding, given) for finding in findings],
        "unreadable": given.unreadable,
        "summary": {
            "files": given.files or 0,
            "objects": len(given.subjects),
            "devices": len(given.world.devices),
            "classes": len(given.world.classes),
            "objectsIgnored": given.ignored,
            "errors": counts[Severity.ERROR],
            "warnings": counts[Severity.WARNING],
            "notes": counts[Severity.NOTE],
            "rulesNotApplied": [rule.id for rule in lacking(given.subjects, given.world)],
        },
        **unread_tree(given.world.unread),
    }


def finding_tree(finding: Finding, given: LintInput) -> dict[str, Any]:
    """Return a finding, without line and column where its object is not from a text."""
    facts = finding._asdict()
    if finding.source in given.unwritten:
        del facts["line"], facts["column"]
    return {"file": facts.pop("source"), **facts}

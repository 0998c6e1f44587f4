"""Short helpers for lint: texts in, findings out."""

from __future__ import annotations

from moorage.api.documents import CORE, expand_lists, read
from moorage.api.gates import Gates
from moorage.api.timestamp import Timestamp
from moorage.insight.expressions.evaluation import compiler_for
from moorage.insight.expressions.published_devices import PublishedDevices
from moorage.insight.lint import KINDS, Finding, LintContext, ObjectIndex, lint
from moorage.insight.lint.subjects import LintObject, read_object, read_slice, resource_kind
from moorage.validation.strategy import Context

NOW = Timestamp.parse("2026-01-01T00:00:00Z")


def context_of(gates: str = "", preset: str = "moorage", version: str = "1.37") -> Context:
    chosen = Gates.parse(gates, preset=preset, emulated_version=version)
    return Context(gates=chosen, now=NOW)


def objects_of(text: str, context: Context) -> list[LintObject]:
    return [
        (read_slice if resource_kind(item) == "ResourceSlice" else read_object)(item, context)
        for document in read(text.encode(), source="file.yaml", schema=CORE)
        for item in expand_lists(document)
        if resource_kind(item) in KINDS
    ]


def world_of(objects: list[LintObject], context: Context) -> LintContext:
    return LintContext(
        PublishedDevices(found.stored for found in objects if found.stored is not None),
        (found.value for found in objects if found.kind.name == "DeviceClass"),
        compiler_for(context.gates, extensions=True),
        ObjectIndex(objects, context),
    )


def findings(*texts: str, context: Context | None = None) -> list[Finding]:
    context = context or context_of()
    objects = objects_of("\n---\n".join(texts), context)
    return lint(objects, world_of(objects, context))


def rules(*texts: str, context: Context | None = None) -> list[str]:
    return [finding.rule for finding in findings(*texts, context=context)]

"""Laws of lint: whatever is read, no rule raises; what it says does not depend on other things."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from moorage.api.apps import DaemonSet, Deployment, ReplicaSet, StatefulSet
from moorage.api.batch import Job
from moorage.api.codec import encode_json
from moorage.api.core import Namespace, Node, Pod
from moorage.api.errors import DecodeError
from moorage.api.resource.v1 import (
    CounterSet,
    Device,
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourcePool,
    ResourceSlice,
)
from moorage.api.scheduling import PodGroup
from moorage.insight.lint import KINDS, Severity, lint
from moorage.insight.lint.subjects import LintObject
from moorage.validation.strategy import Context
from tests.corpus import corpus
from tests.insight.linting import context_of, objects_of, world_of
from tests.strategies import instances

STRUCTS: tuple[type[Struct], ...] = (
    DaemonSet,
    Deployment,
    DeviceClass,
    DeviceTaintRule,
    Job,
    Namespace,
    Node,
    Pod,
    PodGroup,
    ReplicaSet,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
    StatefulSet,
)
FEW = st.sampled_from(("a", "b"))
NUMBERS = st.integers(0, 2)
EVERY = 10  # one recorded write of so many, for the sake of time
EXAMPLES = Path(__file__).parents[3] / "examples"
CONTEXTS = {
    "everything": context_of(),
    "kubernetes": context_of(preset="kubernetes-1.37"),
    "old": context_of(preset="kubernetes-1.37", version="1.34"),
}


def test_the_law_is_about_every_kind_that_lint_takes() -> None:
    assert {struct.__name__ for struct in STRUCTS} == KINDS


@pytest.mark.parametrize("gates", CONTEXTS)
@settings(max_examples=100)
@given(
    values=st.lists(st.one_of(*(instances(struct) for struct in STRUCTS)), min_size=1, max_size=5)
)
def test_no_rule_raises_on_any_objects(gates: str, values: list[Any]) -> None:
    context = CONTEXTS[gates]
    objects = []
    for value in values:
        with suppress(DecodeError):  # parts that structs keep as JSON may be of any type here
            objects += objects_of(encode_json(value).decode(), context)
    for finding in lint(objects, world_of(objects, context)):
        assert finding.line >= 1
        assert finding.message
        assert finding.remedy


@st.composite
def pools(draw: st.DrawFn) -> list[ResourceSlice]:
    """Return slices of few pools, whose devices and counter sets have few names."""
    slices = []
    for slice_ in draw(st.lists(instances(ResourceSlice), min_size=1, max_size=4)):
        devices = draw(st.lists(instances(Device), max_size=4))
        sets = draw(st.lists(instances(CounterSet), max_size=2))
        pool = ResourcePool(
            name=draw(FEW), generation=draw(NUMBERS), resource_slice_count=draw(NUMBERS)
        )
        spec = replace(
            slice_.spec,
            driver=draw(FEW),
            pool=pool,
            devices=tuple(replace(device, name=draw(FEW)) for device in devices),
            shared_counters=tuple(replace(set_, name=draw(FEW)) for set_ in sets) or None,
        )
        metadata = replace(slice_.metadata, name=draw(FEW))
        slices.append(replace(slice_, metadata=metadata, spec=spec))
    return slices


@settings(max_examples=200)
@given(slices=pools())
def test_no_rule_raises_on_slices_of_few_pools(slices: list[ResourceSlice]) -> None:
    context = context_of()
    texts = (encode_json(slice_).decode() for slice_ in slices)
    objects = [found for text in texts for found in objects_of(text, context)]
    assert isinstance(lint(objects, world_of(objects, context)), list)


def lint_folder(folder: Path, gates: str) -> int:
    """Lint every file by itself, then all together; return how many objects there were."""
    context = CONTEXTS[gates]
    together: list[LintObject] = []
    for path in sorted(folder.rglob("*.yaml")):
        objects = objects_that_are_read(path.read_text(encoding="utf-8"), context)
        lint(objects, world_of(objects, context))
        together += objects
    lint(together, world_of(together, context))
    return len(together)


def objects_that_are_read(text: str, context: Context) -> list[LintObject]:
    try:
        return objects_of(text, context)
    except DecodeError:
        return []


@pytest.mark.parametrize("gates", CONTEXTS)
def test_no_rule_raises_on_the_examples(gates: str) -> None:
    assert lint_folder(EXAMPLES, gates) > 50


@pytest.mark.parametrize("gates", CONTEXTS)
def test_no_rule_raises_on_what_a_cluster_was_given(gates: str) -> None:
    assert lint_folder(corpus("golden", "manifests"), gates) > 100


def test_no_rule_raises_on_recorded_writes() -> None:
    context = context_of()
    lines = corpus("validation", "public.jsonl").read_text(encoding="utf-8").splitlines()
    for line in lines[::EVERY]:
        objects = objects_that_are_read(json.dumps(json.loads(line)["object"]), context)
        lint(objects, world_of(objects, context))


def test_the_examples_give_no_warning_but_of_their_forms() -> None:
    context = context_of()
    for path in sorted(EXAMPLES.rglob("*.yaml")):
        objects = objects_that_are_read(path.read_text(encoding="utf-8"), context)
        found = lint(objects, world_of(objects, context), disabled=["deprecated-form"])
        # That is their story.
        stories = {"composite-group", "gang", "refused", "scheduler-bypass", "extended-resource"}
        is_odd = stories & {*path.parts}
        assert is_odd or not [each for each in found if each.severity is not Severity.NOTE]

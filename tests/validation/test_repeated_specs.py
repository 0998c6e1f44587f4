"""Specs that come again are defaulted and validated once, and errors are never forgotten."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from moorage.api.catalogue import CATALOGUE
from moorage.api.codec import decode_tree, to_tree
from moorage.api.core.pod import PodSpec
from moorage.api.gates import Gates
from moorage.api.timestamp import Timestamp
from moorage.validation import resource_claim
from moorage.validation.pod import spec as pod_spec
from moorage.validation.registry import RegistryResult, before_create, before_update
from moorage.validation.repeated_specs import SPECS_MAX, RepeatedSpecs
from moorage.validation.strategy import Context

NOW = Timestamp.parse("2026-01-01T00:00:00Z")
GATES = Gates.parse()
CLAIM = {"devices": {"requests": [{"name": "repeated", "exactly": {"deviceClassName": "k"}}]}}
POD = {"containers": [{"name": "repeated", "image": "i"}]}


def create(
    api_version: str, kind: str, spec: Any, name: str, gates: Gates = GATES
) -> RegistryResult:
    found = CATALOGUE.find(api_version, kind)
    metadata = {"name": name, "namespace": "default"}
    tree = {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}
    value = decode_tree(tree, found.struct).value
    return before_create(value, found, Context(gates=gates, now=NOW, verb="create"))


@pytest.mark.parametrize(
    ("module", "check", "about"),
    [
        (resource_claim, "validate_claim_spec", ("resource.k8s.io/v1", "ResourceClaim", CLAIM)),
        (pod_spec, "_validate_parts", ("v1", "Pod", POD)),
    ],
)
def test_equal_specs_are_validated_once(
    monkeypatch: pytest.MonkeyPatch, module: Any, check: str, about: tuple[str, str, Any]
) -> None:
    calls: list[Any] = []
    before = getattr(module, check)

    def counted(*given: Any, **named: Any) -> Any:
        calls.append(given)
        return before(*given, **named)

    monkeypatch.setattr(module, check, counted)
    first, *others = (create(*about, f"name-{number}") for number in range(5))
    assert len(calls) == 1
    assert not first.errors
    assert all(other.stored.spec == first.stored.spec for other in others)


def test_errors_come_every_time() -> None:
    spec = {"devices": {"requests": [{"name": "Wrong!", "exactly": {"deviceClassName": ""}}]}}
    first, second = (create("resource.k8s.io/v1", "ResourceClaim", spec, "c") for _ in range(2))
    assert first.errors
    assert first.errors == second.errors
    faulty = {"containers": [{"name": "Wrong!", "image": ""}]}
    first, second = (create("v1", "Pod", faulty, "p") for _ in range(2))
    assert first.errors
    assert first.errors == second.errors


def test_other_gates_drop_fields_of_a_spec_that_is_known() -> None:
    exactly = {"deviceClassName": "k", "tolerations": [{"key": "t", "operator": "Exists"}]}
    spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    about = ("resource.k8s.io/v1", "ResourceClaim", spec, "c")
    off = Gates.parse("DRADeviceTaints=false,DRADeviceTaintRules=false")

    def tolerations(gates: Gates) -> Any:
        return create(*about, gates=gates).stored.spec.devices.requests[0].exactly.tolerations

    assert [len(tolerations(gates)) for gates in (GATES, off, GATES, off)] == [1, 0, 1, 0]


def test_a_name_that_does_not_fit_is_an_error_of_a_known_spec() -> None:
    template = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {}}}
    volume = {"name": "v", "ephemeral": {"volumeClaimTemplate": template}}
    spec = {**POD, "volumes": [volume]}
    good, long = (create("v1", "Pod", spec, name) for name in ("p", "p" * 253))
    assert len(long.errors) > len(good.errors)


def test_few_specs_are_remembered() -> None:
    specs = RepeatedSpecs[PodSpec](lambda spec: replace(spec, scheduler_name="s"))
    made = [specs.defaulted(PodSpec(node_name=f"n{number}")) for number in range(2 * SPECS_MAX)]
    assert len(specs) <= SPECS_MAX
    assert specs.defaulted(PodSpec(node_name=f"n{2 * SPECS_MAX - 1}")) is made[-1]
    large = PodSpec(node_name="n" * 10_000)
    assert specs.defaulted(large) is not specs.defaulted(large)
    specs.note(large, "fact")
    assert not specs.has(large, "fact")


def test_a_spec_that_is_written_back_is_the_one_that_is_stored() -> None:
    about = ("resource.k8s.io/v1", "ResourceClaim")
    kind = CATALOGUE.find(*about)
    spec = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "stored"}}]}}
    stored = create(*about, spec, "stored").stored
    stored = replace(stored, metadata=replace(stored.metadata, uid="1", resource_version="5"))
    read: Any = decode_tree(to_tree(stored), kind.struct).value
    assert read.spec is not stored.spec
    held = replace(read, metadata=replace(read.metadata, finalizers=("example.com/f",)))
    updated = before_update(held, stored, kind, Context(gates=GATES, now=NOW))
    assert not updated.errors
    assert updated.stored.spec is stored.spec

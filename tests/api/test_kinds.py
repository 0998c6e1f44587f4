"""Which kinds there are, which a server may have besides, and which are mistyped."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from moorage.api.built_in_kinds import BUILT_IN_KINDS
from moorage.api.catalogue import CATALOGUE, KINDS, OTHER_KINDS
from moorage.api.kinds import Kind
from tests.corpus import corpus

# Kinds that Kubernetes serves only when --runtime-config asks for them.
ON_REQUEST = {
    ("coordination.k8s.io/v1beta1", "LeaseCandidate"),
    ("internal.apiserver.k8s.io/v1alpha1", "StorageVersion"),
    ("lifecycle.k8s.io/v1alpha1", "Eviction"),
    ("lifecycle.k8s.io/v1alpha1", "EvictionRequest"),
    *(
        (f"admissionregistration.k8s.io/{version}", f"MutatingAdmissionPolicy{what}")
        for version in ("v1beta1", "v1alpha1")
        for what in ("", "Binding")
    ),
}


def test_the_built_in_kinds_are_those_that_kubernetes_serves() -> None:
    served = set()
    for name in ("api.aggregated.json", "apis.aggregated.json"):
        groups = json.loads(corpus("http", "live", name).read_text(encoding="utf-8"))
        for group in groups["items"]:
            for version in group["versions"]:
                prefix = group["metadata"].get("name", "")
                api_version = f"{prefix}/{version['version']}".lstrip("/")
                served |= {
                    (api_version, each["responseKind"]["kind"]) for each in version["resources"]
                }
    listed = {(version, kind.name) for kind in BUILT_IN_KINDS for version in kind.api_versions}
    assert listed == served | ON_REQUEST


def test_the_other_kinds_are_the_built_in_ones_that_we_lack() -> None:
    listed = {(version, kind.name) for kind in BUILT_IN_KINDS for version in kind.api_versions}
    ours = {(kind.api_version, kind.name) for kind in KINDS}
    others = {(version, name) for version, names in OTHER_KINDS.items() for name in names}
    assert others == listed - ours


def test_no_kind_of_ours_is_foreign() -> None:
    assert not [kind for kind in KINDS if CATALOGUE.is_foreign(kind.api_version, kind.name)]


@given(st.sampled_from([kind for kind in KINDS if "." in kind.group]), st.integers(0, 100))
def test_a_slip_in_a_group_does_not_make_a_kind_foreign(kind: Kind, number: int) -> None:
    at = number % len(kind.group)
    slipped = kind.group[:at] + kind.group[at + 1 :]
    assert not CATALOGUE.is_foreign(f"{slipped}/{kind.version}", kind.name)


@given(st.text(), st.text())
def test_any_text_is_foreign_or_not(api_version: str, name: str) -> None:
    assert isinstance(CATALOGUE.is_foreign(api_version, name), bool)

"""Extended resources that devices serve: needs, requests, mappings, the special claim."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.core import NodeAllocatableResourceClaimStatus, Pod
from moorage.api.core.resources import ResourceList
from moorage.api.quantity import Quantity
from moorage.claims import (
    ClaimRejection,
    DeviceClassIndex,
    check_fresh,
    extended_needs,
    extended_requests,
    extended_status,
    find_special,
    implicit_name,
    is_in_memory,
    needs_on_node,
    special_claim,
    to_create,
    with_claim_name,
    with_requests,
)
from tests.claims.parts import Tree, asking, claim, device_class, index, owned_by, pod

GPU, NIC = "example.com/gpu", "example.com/nic"
IMPLICIT = implicit_name("gpus")
CLASSES = index(device_class("gpus", GPU), device_class("nics", NIC))


def wanting(*containers: Tree, init: tuple[Tree, ...] = ()) -> Pod:
    return pod(containers=containers, initContainers=list(init))


# --- needs ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        ({GPU: 2}, {GPU: 2}),
        ({IMPLICIT: 1, "cpu": 1}, {IMPLICIT: 1}),
        ({GPU: 1, "example.com/plugin": 3}, {GPU: 1, "example.com/plugin": 3}),
        ({"example.com/plugin": 3}, {}),
        ({GPU: 0}, {}),
        ({"cpu": 1}, {}),
    ],
)
def test_a_pod_has_needs_if_a_class_stands_behind_one_of_its_resources(
    requests: dict[str, int], expected: dict[str, int]
) -> None:
    assert extended_needs(wanting(asking("c", requests=requests)), CLASSES) == expected


def on_node(
    needs: dict[str, int], allocatable: dict[str, int], classes: DeviceClassIndex = CLASSES
) -> object:
    amounts: ResourceList = {name: Quantity.from_int(n) for name, n in allocatable.items()}
    return needs_on_node(needs, amounts, classes)


@pytest.mark.parametrize(
    ("allocatable", "expected"),
    [
        ({}, {GPU: 2, NIC: 1}),
        ({GPU: 0}, {GPU: 2, NIC: 1}),
        ({GPU: 1}, {NIC: 1}),
        ({GPU: 8, NIC: 8}, {}),
    ],
)
def test_a_node_serves_with_devices_what_it_does_not_have_itself(
    allocatable: dict[str, int], expected: dict[str, int]
) -> None:
    assert on_node({GPU: 2, NIC: 1}, allocatable) == expected


def test_a_resource_that_is_neither_on_the_node_nor_in_a_class_does_not_fit() -> None:
    needs = {GPU: 1, "example.com/plugin": 1}
    assert on_node(needs, {}) == ClaimRejection("cannot fit resource")
    # How much there is of it is for the usual rules of resources to say.
    assert on_node(needs, {"example.com/plugin": 0}) == {GPU: 1}


# --- requests and mappings --------------------------------------------------------------------


class Row(NamedTuple):
    """Containers, and what becomes of them: request=class*count, container:resource>request."""

    pod: Pod
    requests: str
    mappings: str


ROWS = {
    "one container, several resources": Row(
        wanting(asking("c", requests={NIC: 2, GPU: 1, "cpu": 1})),
        "0-1=gpus*1 0-2=nics*2",
        "c:gpu>0-1 c:nic>0-2",
    ),
    "explicit and implicit name of one class": Row(
        wanting(asking("c", requests={GPU: 1, IMPLICIT: 2})),
        "0-0=gpus*2 0-1=gpus*1",
        "c:gpus>0-0 c:gpu>0-1",
    ),
    "two containers": Row(
        wanting(asking("a", requests={GPU: 1}), asking("b", requests={NIC: 2})),
        "0-0=gpus*1 1-0=nics*2",
        "a:gpu>0-0 b:nic>1-0",
    ),
    "a plain init container of its own resource": Row(
        wanting(asking("c", requests={GPU: 1}), init=(asking("i", requests={NIC: 2}),)),
        "0-0=nics*2 1-0=gpus*1",
        "c:gpu>1-0 i:nic>0-0",
    ),
    "a plain init container that needs no more than what comes later": Row(
        wanting(asking("c", requests={GPU: 3}), init=(asking("i", requests={GPU: 2}),)),
        "1-0=gpus*3",
        "c:gpu>1-0 i:gpu>1-0",
    ),
    "a plain init container that needs more": Row(
        wanting(asking("c", requests={GPU: 1}), init=(asking("i", requests={GPU: 3}),)),
        "0-0=gpus*2 1-0=gpus*1",
        "c:gpu>1-0 i:gpu>1-0 i:gpu>0-0",
    ),
    "a plain init container uses only as many requests as it needs": Row(
        wanting(
            asking("a", requests={GPU: 1}),
            asking("b", requests={GPU: 1}),
            asking("c", requests={GPU: 1}),
            init=(asking("i", requests={GPU: 2}),),
        ),
        "1-0=gpus*1 2-0=gpus*1 3-0=gpus*1",
        "a:gpu>1-0 b:gpu>2-0 c:gpu>3-0 i:gpu>1-0 i:gpu>2-0",
    ),
    "of plain init containers the largest counts": Row(
        wanting(
            asking("c", requests={NIC: 1}),
            init=(asking("i", requests={GPU: 1}), asking("j", requests={GPU: 2})),
        ),
        "1-0=gpus*2 2-0=nics*1",
        "i:gpu>1-0 j:gpu>1-0 c:nic>2-0",
    ),
    "of equal plain init containers the first counts": Row(
        wanting(asking("c"), init=(asking("i", requests={GPU: 2}), asking("j", requests={GPU: 2}))),
        "0-0=gpus*2",
        "i:gpu>0-0 j:gpu>0-0",
    ),
    "a sidecar is used by plain init containers before it, not after it": Row(
        wanting(
            asking("c"),
            init=(
                asking("i", requests={GPU: 1}),
                asking("s", requests={GPU: 1}, sidecar=True),
                asking("j", requests={GPU: 2}),
            ),
        ),
        "1-0=gpus*1 2-0=gpus*2",
        "s:gpu>1-0 i:gpu>1-0 j:gpu>2-0",
    ),
    "requests are sorted as texts": Row(
        wanting(*(asking(f"c{n}", requests={GPU: 1} if n in (2, 10) else {}) for n in range(11))),
        "10-0=gpus*1 2-0=gpus*1",
        "c2:gpu>2-0 c10:gpu>10-0",
    ),
    "none and zero ask for nothing": Row(
        wanting(asking("a"), asking("b", requests={GPU: 0})), "", ""
    ),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_containers_get_requests_and_mappings(row: Row) -> None:
    made = extended_requests(row.pod, {GPU, NIC, IMPLICIT}, CLASSES)
    shown = []
    for request in made.requests:
        assert request.exactly is not None
        assert request.exactly.allocation_mode == "ExactCount"
        wanted = f"{request.exactly.device_class_name}*{request.exactly.count}"
        shown.append(f"{short(request.name)}={wanted}")
    assert " ".join(shown) == row.requests
    assert (
        " ".join(
            f"{mapping.container_name}:{mapping.resource_name.rpartition('/')[2]}"
            f">{short(mapping.request_name)}"
            for mapping in made.mappings
        )
        == row.mappings
    )


def short(name: str) -> str:
    """Return `1-2` for `container-1-request-2`."""
    return name.removeprefix("container-").replace("-request-", "-")


def test_resources_that_a_node_has_itself_are_not_asked_for() -> None:
    both = wanting(asking("c", requests={GPU: 1, NIC: 1}))
    assert [r.name for r in extended_requests(both, {NIC}, CLASSES).requests] == [
        "container-0-request-1"
    ]
    assert extended_requests(both, {GPU}, index()).requests == ()


_counts = st.dictionaries(st.sampled_from([GPU, NIC, "cpu"]), st.integers(0, 5))
_pods = st.builds(
    lambda regular, init: wanting(
        *(asking(f"c{n}", requests=each) for n, each in enumerate(regular)),
        init=tuple(
            asking(f"i{n}", requests=each, sidecar=stays) for n, (each, stays) in enumerate(init)
        ),
    ),
    st.lists(_counts, min_size=1, max_size=4),
    st.lists(st.tuples(_counts, st.booleans()), max_size=4),
)


@given(_pods)
def test_the_requests_that_a_container_is_mapped_to_cover_its_needs(user: Pod) -> None:
    made = extended_requests(user, {GPU, NIC}, CLASSES)
    counts = {r.name: r.exactly.count for r in made.requests if r.exactly is not None}
    assert len(counts) == len(made.requests)
    staying_uses: list[str] = []
    for container in (*user.spec.init_containers, *user.spec.containers):
        for resource in (GPU, NIC):
            wanted = container.resources.requests.get(resource, Quantity.ZERO).value
            mapped = [
                mapping.request_name
                for mapping in made.mappings
                if (mapping.container_name, mapping.resource_name) == (container.name, resource)
            ]
            assert len(set(mapped)) == len(mapped)
            assert sum(counts[name] for name in mapped) >= wanted
            assert wanted or not mapped
            if container.is_sidecar or container in user.spec.containers:
                staying_uses += mapped
    # Containers that run at the same time share nothing.
    assert len(set(staying_uses)) == len(staying_uses)


@given(_pods)
def test_as_many_devices_are_asked_for_as_the_pod_can_use_at_once(user: Pod) -> None:
    made = extended_requests(user, {GPU, NIC}, CLASSES)
    for resource, class_name in ((GPU, "gpus"), (NIC, "nics")):
        total = sum(
            request.exactly.count
            for request in made.requests
            if request.exactly is not None and request.exactly.device_class_name == class_name
        )
        assert total == devices_by_rule(user, resource)


def devices_by_rule(user: Pod, resource: str) -> int:
    """Return all that containers that stay want, and the largest rest of a plain init container."""
    wanted = [
        container.resources.requests.get(resource, Quantity.ZERO).value
        for container in (*user.spec.init_containers, *user.spec.containers)
    ]
    stays = [container.is_sidecar for container in user.spec.init_containers]
    stays += [True] * len(user.spec.containers)
    later = [
        sum(n for n, stay in zip(wanted[at:], stays[at:], strict=True) if stay)
        for at in range(len(wanted))
    ]
    rests = [max(0, wanted[at] - later[at]) for at in range(len(wanted)) if not stays[at]]
    return later[0] + max(rests, default=0)


# --- the special claim ------------------------------------------------------------------------


def test_the_special_claim_lives_in_memory_until_it_is_created() -> None:
    user = wanting(asking("c", requests={GPU: 1}))
    fresh = special_claim(user, uid="made-up")
    assert (fresh.metadata.name, fresh.metadata.uid) == ("<extended-resources>", "made-up")
    assert is_in_memory(fresh)
    assert check_fresh(fresh) is None

    wanted = extended_requests(user, {GPU}, CLASSES)
    created = to_create(with_requests(fresh, wanted))
    assert created.spec.devices.requests == wanted.requests
    assert (created.metadata.name, created.metadata.uid) == ("", "")
    assert created.metadata.generate_name == "p-extended-resources-"
    assert not is_in_memory(created)

    status = extended_status("p-extended-resources-x", wanted.mappings)
    assert status.resource_claim_name == "p-extended-resources-x"
    assert status.request_mappings == wanted.mappings


def test_a_special_claim_that_is_left_over_is_found_and_refused() -> None:
    true = {"resource.kubernetes.io/extended-resource-claim": "true"}
    left = claim("x", annotations=true, ownerReferences=owned_by("p"))
    others = [
        claim("a", ownerReferences=owned_by("p")),
        claim("b", annotations=true, ownerReferences=owned_by("q")),
        claim("c", annotations=true, ownerReferences=owned_by("p", uid="earlier")),
        claim("d", annotations=true, ownerReferences=owned_by("p", controller=False)),
        claim("e", annotations=true, namespace="other", ownerReferences=owned_by("p")),
    ]
    assert find_special(pod(), others) is None
    assert find_special(pod(), [*others, left]) == left
    user = wanting(asking("c", requests={GPU: 1}))
    stale = with_requests(left, extended_requests(user, {GPU}, CLASSES))
    assert check_fresh(stale) == ClaimRejection("cannot schedule extended resource claim")


def test_node_resources_of_the_special_claim_get_its_name_once_it_has_one() -> None:
    statuses = [
        NodeAllocatableResourceClaimStatus(resource_claim_name=name)
        for name in ("<extended-resources>", "a", "z")
    ]
    renamed = with_claim_name(statuses, "p-extended-resources-x")
    assert [each.resource_claim_name for each in renamed] == ["a", "p-extended-resources-x", "z"]

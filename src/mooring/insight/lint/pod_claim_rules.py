"""Rules of lint about the claims that pods use: whether they, and their requests, are there.

# entry: one of spec.resourceClaims; it names a claim, or a template to make one from
"""

from __future__ import annotations

from collections.abc import Iterator

from mooring.api.codec import Place
from mooring.api.core.pod import PodResourceClaim
from mooring.api.resource.v1 import ResourceClaimSpec
from mooring.insight.lint.cases import PODS, Case, E, N, Needs, Oddity, Rule, W
from mooring.insight.lint.context import NamespacedName
from mooring.insight.lint.pod_rules import part_of
from mooring.insight.lint.subjects import PodPart
from mooring.insight.messages import nearest

Entry = tuple[Place, PodResourceClaim]


def entries_of(part: PodPart) -> Iterator[Entry]:
    """Give the entries of a pod with their places."""
    for i, entry in enumerate(part.spec.resource_claims):
        yield (*part.place, "resourceClaims", i), entry


# --- pods and containers ------------------------------------------------------------------


def unlisted_claim(case: Case) -> Iterator[Oddity]:
    """Give the claims that a container uses and the pod does not have."""
    part = part_of(case)
    if part is None:
        return
    listed = {entry.name for entry in part.spec.resource_claims}
    for place, container in part.containers():
        for i, used in enumerate(container.resources.claims):
            if used.name not in listed:
                near = nearest(used.name, listed)
                yield Oddity(
                    (*place, "resources", "claims", i, "name"),
                    f'spec.resourceClaims of the pod has no claim "{used.name}": '
                    "an API server refuses the pod",
                    f'did you mean "{near}"?' if near else "add it to spec.resourceClaims",
                )


def unused_pod_claim(case: Case) -> Iterator[Oddity]:
    """Give the claims of a pod that no container uses."""
    part = part_of(case)
    if part is None:
        return
    used = {used.name for _, container in part.containers() for used in container.resources.claims}
    for place, entry in entries_of(part):
        if entry.name not in used:
            yield Oddity(
                (*place, "name"),
                f'no container uses claim "{entry.name}": its devices are allocated and '
                "prepared, but no container sees them, unless the driver cares for the whole pod",
                "name it in resources.claims of a container",
            )


# --- what is not there --------------------------------------------------------------------


def unknown_claim(case: Case) -> Iterator[Oddity]:
    """Give the claims that are not there."""
    part = part_of(case)
    if part is None:
        return
    claims = case.world.around.claims
    for place, entry in entries_of(part):
        name = entry.resource_claim_name
        if name and NamespacedName(part.namespace, name) not in claims:
            remedy = _elsewhere(name, part.namespace, tuple(claims), "claim")
            message = f"there is no ResourceClaim {part.namespace}/{name} among those given"
            yield Oddity((*place, "resourceClaimName"), message, remedy)


def unknown_template(case: Case) -> Iterator[Oddity]:
    """Give the templates that are not there and from which a claim is still to be made."""
    part = part_of(case)
    if part is None:
        return
    templates = case.world.around.templates
    for place, entry in entries_of(part):
        name = entry.resource_claim_template_name
        if not name or NamespacedName(part.namespace, name) in templates or is_made(part, entry):
            continue
        remedy = _elsewhere(name, part.namespace, tuple(templates), "template")
        message = f"there is no ResourceClaimTemplate {part.namespace}/{name} among those given"
        yield Oddity((*place, "resourceClaimTemplateName"), message, remedy)


def _elsewhere(name: str, namespace: str, known: tuple[NamespacedName, ...], what: str) -> str:
    """Return what to do about a name that is not in a namespace."""
    others = sorted(key.namespace for key in known if key.name == name)
    if others:
        return f"namespace {others[0]} has one; a pod uses only those of its own namespace"
    near = nearest(name, (key.name for key in known if key.namespace == namespace))
    return f'did you mean "{near}"?' if near else f"create the {what}, or give its file, too"


def is_made(part: PodPart, entry: PodResourceClaim) -> bool:
    """Whether the claim was made already."""
    statuses = () if part.status is None else part.status.resource_claim_statuses or ()
    return any(status.name == entry.name for status in statuses)


def unknown_request(case: Case) -> Iterator[Oddity]:
    """Give the requests that a container names and its claim does not have."""
    part = part_of(case)
    if part is None:
        return
    requests = {entry.name: _requests(part, entry, case) for entry in part.spec.resource_claims}
    for place, container in part.containers():
        for i, used in enumerate(container.resources.claims):
            known = requests.get(used.name)
            if not used.request or known is None or used.request in known:
                continue
            near = nearest(used.request, known)
            names = ", ".join(known) or "none"
            yield Oddity(
                (*place, "resources", "claims", i, "request"),
                f'claim "{used.name}" has no request "{used.request}", its requests are: {names}; '
                f"container {container.name} gets no device",
                f'did you mean "{near}"?' if near else "name a request of the claim, or none",
            )


def _requests(part: PodPart, entry: PodResourceClaim, case: Case) -> tuple[str, ...] | None:
    """Return the requests of the claim that an entry means, None if it is not known."""
    around = case.world.around
    claim_name = entry.resource_claim_name or ""
    template_name = entry.resource_claim_template_name or ""
    claim = around.claims.get(NamespacedName(part.namespace, claim_name))
    template = around.templates.get(NamespacedName(part.namespace, template_name))
    spec: ResourceClaimSpec | None = None
    if claim is not None:
        spec = claim.spec
    elif template is not None:
        spec = template.spec.spec
    return None if spec is None else tuple(request.name for request in spec.devices.requests or ())


RULES = (
    Rule(
        "unlisted-claim",
        E,
        Needs.NOTHING,
        "a container that uses a claim which its pod does not have",
        unlisted_claim,
        PODS,
    ),
    Rule(
        "unused-pod-claim",
        N,
        Needs.NOTHING,
        "a claim of a pod that no container uses",
        unused_pod_claim,
        PODS,
    ),
    Rule(
        "unknown-claim",
        W,
        Needs.CLAIMS,
        "a pod that uses a claim which is not among the claims given",
        unknown_claim,
        PODS,
    ),
    Rule(
        "unknown-template",
        W,
        Needs.TEMPLATES,
        "a pod that uses a template which is not among the templates given",
        unknown_template,
        PODS,
    ),
    Rule(
        "unknown-request",
        W,
        Needs.NOTHING,
        "a container that names a request which its claim does not have",
        unknown_request,
        PODS,
    ),
)

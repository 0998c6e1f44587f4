"""Rules of the spec of a claim, which ResourceClaim and ResourceClaimTemplate share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache

from moorage.api.field_path import Path
from moorage.api.gates import Gate
from moorage.api.resource.v1 import (
    DeviceClaim,
    DeviceClaimConfiguration,
    DeviceConstraint,
    DeviceDerivedAttribute,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaimSpec,
)
from moorage.validation.device_fields import (
    EXPRESSION_COST_MAX,
    SELECTORS_MAX,
    check_expression,
    validate_opaque,
    validate_selector,
    validate_toleration,
)
from moorage.validation.errors import (
    ErrorList,
    forbidden,
    invalid,
    not_supported,
    only_declared,
    required,
)
from moorage.validation.field_rules import (
    declared_enum,
    declared_fully_qualified_name,
    declared_list,
    declared_set,
    declared_subdomain,
    duplicates,
    each,
    identity,
    label,
    subdomain,
    value_or,
)
from moorage.validation.gated_fields import (
    GatedFields,
    disabled_gates,
    drop_disabled,
    gated_fields,
)
from moorage.validation.strategy import Context, ExpressionPurpose

REQUESTS_MAX = 32
CONSTRAINTS_MAX = 32
CONFIG_MAX = 32
FIRST_AVAILABLE_MAX = 8
DERIVED_ATTRIBUTES_MAX = 32

RequestDetails = ExactDeviceRequest | DeviceSubRequest

ALLOCATION_MODES = ("All", "ExactCount")

_UNKNOWN_REQUEST = (
    "must be the name of a request in the claim or the name of a request and a subrequest "
    "separated by '/'"
)


class RequestNames:
    """The names that constraints, configuration and results can refer to: `r` and `r/s`."""

    def __init__(self, claim: DeviceClaim) -> None:
        self._subrequests: dict[str, set[str]] = {
            request.name: {sub.name for sub in request.first_available}
            for request in claim.requests or ()
        }

    def __contains__(self, reference: str) -> bool:
        request, slash, subrequest = reference.partition("/")
        known = self._subrequests.get(request)
        return known is not None and (not slash or subrequest in known)

    def validate(self, reference: str, path: Path) -> ErrorList:
        """Validate that a reference names a request of the claim."""
        segments = reference.split("/")
        if len(segments) > 2:
            return [invalid(path, reference, _UNKNOWN_REQUEST)]
        found: ErrorList = []
        for segment in segments:
            found += label(segment, path)
        if reference not in self:
            found.append(invalid(path, reference, _UNKNOWN_REQUEST))
        return found

    def validate_all(self, references: tuple[str, ...], path: Path) -> ErrorList:
        """Validate a list of references: each exists, and occurs once."""
        return declared_set(references, REQUESTS_MAX, self.validate, identity, path)


def validate_claim_spec(spec: ResourceClaimSpec, path: Path, context: Context) -> ErrorList:
    """Validate the spec of a new claim or template."""
    return _ClaimRules(spec.devices, context).validate(path.child("devices"))


class _ClaimRules:
    """The validation of one claim: the state that its parts share."""

    def __init__(self, claim: DeviceClaim, context: Context) -> None:
        self.claim = claim
        self.context = context
        self.names = RequestNames(claim)
        self.constrained = _constrained_attributes(claim.constraints)
        self.derived_cost = 0

    def validate(self, path: Path) -> ErrorList:
        claim = self.claim
        found = declared_set(
            claim.requests or (),
            REQUESTS_MAX,
            self._validate_request,
            lambda request: request.name,
            path.child("requests"),
        )
        found += declared_list(
            claim.constraints, CONSTRAINTS_MAX, self._validate_constraint, path.child("constraints")
        )
        found += declared_list(
            claim.config, CONFIG_MAX, self._validate_config, path.child("config")
        )
        if self.derived_cost > EXPRESSION_COST_MAX:
            detail = (
                "too complex, total cost of derived attribute CEL expressions in the claim "
                "exceeds cost limit"
            )
            found.append(forbidden(path, detail))
        return found

    def _validate_request(self, request: DeviceRequest, path: Path) -> ErrorList:
        found = label(request.name, path.child("name"))
        ways = "exactly one of `exactly` or `firstAvailable` is required"
        if request.exactly is None and not request.first_available:
            found.append(required(path, ways))
        elif request.exactly is not None and request.first_available:
            found.append(invalid(path, None, f"{ways}, but multiple fields are set"))
            # The request is ambiguous, so only declared rules apply.
            cost = self.derived_cost
            found += only_declared(self._validate_ways(request, path))
            self.derived_cost = cost
        else:
            found += self._validate_ways(request, path)
        return found

    def _validate_ways(self, request: DeviceRequest, path: Path) -> ErrorList:
        found: ErrorList = []
        if request.exactly is not None:
            found += self._validate_details(request.exactly, request.name, path.child("exactly"))
        found += declared_set(
            request.first_available,
            FIRST_AVAILABLE_MAX,
            lambda sub, place: self._validate_subrequest(sub, request.name, place),
            lambda sub: sub.name,
            path.child("firstAvailable"),
        )
        return found

    def _validate_subrequest(self, sub: DeviceSubRequest, parent: str, path: Path) -> ErrorList:
        found = label(sub.name, path.child("name"))
        return found + self._validate_details(sub, f"{parent}/{sub.name}", path)

    def _validate_details(self, details: RequestDetails, reference: str, path: Path) -> ErrorList:
        found = self._validate_class_name(details, path.child("deviceClassName"))
        found += declared_list(
            details.selectors,
            SELECTORS_MAX,
            lambda selector, place: validate_selector(selector, place, self.context),
            path.child("selectors"),
        )
        if details.derived_attributes:
            derived = path.child("derivedAttributes")
            found += self._validate_derived(details.derived_attributes, reference, derived)
        found += _validate_allocation_mode(details, path)
        return found + each(details.tolerations, validate_toleration, path.child("tolerations"))

    def _validate_class_name(self, details: RequestDetails, path: Path) -> ErrorList:
        # The rule is declared for subrequests only: v1beta1's requests cannot require it.
        if isinstance(details, DeviceSubRequest):
            return declared_subdomain(details.device_class_name, path)
        return (
            subdomain(details.device_class_name, path)
            if details.device_class_name
            else [required(path)]
        )

    def _validate_derived(
        self, attributes: tuple[DeviceDerivedAttribute, ...], reference: str, path: Path
    ) -> ErrorList:
        found = each(
            attributes,
            lambda attribute, p: self._validate_one_derived(attribute, reference, p),
            path,
        )
        found += duplicates(attributes, lambda attribute: attribute.name, path)
        return found + only_declared(
            declared_list(attributes, DERIVED_ATTRIBUTES_MAX, _validate_derived_form, path)
        )

    def _validate_one_derived(
        self, attribute: DeviceDerivedAttribute, reference: str, path: Path
    ) -> ErrorList:
        found: ErrorList = []
        if attribute.name and not self._is_constrained(attribute.name, reference):
            detail = (
                "must be referenced by at least one matchAttribute or distinctAttribute "
                "constraint targeting this request"
            )
            found.append(invalid(path.child("name"), attribute.name, detail))
        if attribute.expression:
            place = path.child("expression")
            errors, cost = check_expression(
                attribute.expression, place, self.context, ExpressionPurpose.DERIVED_ATTRIBUTE
            )
            self.derived_cost += cost
            found += errors
        return found

    def _is_constrained(self, name: str, reference: str) -> bool:
        """Return whether a constraint that covers the request uses the attribute."""
        everywhere, parent = "", reference.partition("/")[0]
        return any(name in self.constrained[key] for key in (everywhere, parent, reference))

    def _validate_constraint(self, constraint: DeviceConstraint, path: Path) -> ErrorList:
        found = self.names.validate_all(constraint.requests, path.child("requests"))
        match, distinct = constraint.match_attribute, constraint.distinct_attribute
        if match is not None:
            found += declared_fully_qualified_name(match, path.child("matchAttribute"))
        if distinct is not None:
            errors = declared_fully_qualified_name(distinct, path.child("distinctAttribute"))
            found += errors if match is None else only_declared(errors)
        if match is None and distinct is None:
            if self.context.enabled(Gate.DRA_CONSUMABLE_CAPACITY):
                detail = (
                    'exactly one of "matchAttribute" or "distinctAttribute" is required, '
                    "but multiple fields are set"
                )
                found.append(required(path, detail))
            else:
                found.append(required(path.child("matchAttribute")))
        return found

    def _validate_config(self, config: DeviceClaimConfiguration, path: Path) -> ErrorList:
        found = self.names.validate_all(config.requests, path.child("requests"))
        return found + validate_opaque(config.opaque, path)


def _validate_derived_form(attribute: DeviceDerivedAttribute, path: Path) -> ErrorList:
    found: ErrorList = []
    if attribute.name:
        found += declared_fully_qualified_name(attribute.name, path.child("name"))
    else:
        found.append(required(path.child("name"), declared=True))
    if not attribute.expression:
        found.append(required(path.child("expression"), declared=True))
    return found


def _validate_allocation_mode(details: RequestDetails, path: Path) -> ErrorList:
    count = path.child("count")
    match details.allocation_mode:
        case "All":
            if details.count != 0:
                detail = "must not be specified when allocationMode is 'All'"
                return [invalid(count, details.count, detail)]
        case "ExactCount":
            if details.count <= 0:
                return [invalid(count, details.count, "must be greater than zero")]
        case "":
            return [not_supported(path.child("allocationMode"), "", ALLOCATION_MODES)]
        case mode:
            return declared_enum(mode, ALLOCATION_MODES, path.child("allocationMode"))
    return []


def _constrained_attributes(
    constraints: tuple[DeviceConstraint, ...],
) -> Mapping[str, set[str]]:
    """Return the attributes that constraints use, by the request or subrequest that they cover.

    A constraint without requests covers all of them; its key is "".
    """
    attributes: dict[str, set[str]] = defaultdict(set)
    for constraint in constraints:
        name = value_or(constraint.match_attribute, constraint.distinct_attribute)
        if name is not None:
            for reference in constraint.requests or ("",):
                attributes[reference].add(name)
    return attributes


# --- fields of disabled features ----------------------------------------------------------

# The order in which gates are reported.
_ORDER = (
    Gate.DRA_PRIORITIZED_LIST,
    Gate.DRA_DEVICE_TAINTS,
    Gate.DRA_ADMIN_ACCESS,
    Gate.DRA_CONSUMABLE_CAPACITY,
    Gate.DRA_DERIVED_ATTRIBUTES,
)


@cache
def gated_claim_fields() -> tuple[GatedFields[ResourceClaimSpec], ...]:
    """Return the fields of a claim's spec that need feature gates."""
    return gated_fields(ResourceClaimSpec, "resource/v1.ResourceClaimSpec", _ORDER)


def drop_disabled_claim_fields(
    spec: ResourceClaimSpec, old: ResourceClaimSpec | None, context: Context
) -> ResourceClaimSpec:
    """Return the spec without fields of disabled features that the old one does not use."""
    return drop_disabled(spec, old, context.gates, gated_claim_fields())


def disabled_claim_gates(
    spec: ResourceClaimSpec, old: ResourceClaimSpec | None, context: Context
) -> Iterator[Gate]:
    """Return the disabled gates whose fields are dropped."""
    return disabled_gates(spec, old, context.gates, gated_claim_fields())

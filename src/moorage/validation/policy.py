"""The strategy of PodDisruptionBudgets."""

from __future__ import annotations

from moorage.api.codec import to_tree
from moorage.api.field_path import root
from moorage.api.policy import (
    ALWAYS_ALLOW,
    IF_HEALTHY_BUDGET,
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
)
from moorage.validation.errors import ErrorList, invalid, not_supported
from moorage.validation.field_rules import not_negative
from moorage.validation.metadata import validate_conditions, validate_path_segments
from moorage.validation.pod_template import validate_amount, validate_share
from moorage.validation.selectors import validate_label_selector
from moorage.validation.strategy import ObjectStrategy

SPEC = root("spec")
STATUS = root("status")

_POLICIES = (ALWAYS_ALLOW, IF_HEALTHY_BUDGET)


class PodDisruptionBudgetStrategy(ObjectStrategy[PodDisruptionBudget]):
    """The strategy of PodDisruptionBudgets."""

    allow_unconditional_update = False
    qualified_finalizers = False
    tracks_generation = True
    keeps_metadata_with_status = False

    def validate_metadata(self, new: PodDisruptionBudget) -> ErrorList:
        """Validate nothing: any name that fits into a path is one, as in Kubernetes."""
        return validate_path_segments(new.metadata, namespaced=True)

    def validate_fields(self, new: PodDisruptionBudget) -> ErrorList:
        """Validate the spec."""
        spec = new.spec
        found: ErrorList = []
        if spec.min_available is not None and spec.max_unavailable is not None:
            detail = "minAvailable and maxUnavailable cannot be both set"
            found.append(invalid(SPEC, _internal(spec), detail))
        for name, amount in (
            ("minAvailable", spec.min_available),
            ("maxUnavailable", spec.max_unavailable),
        ):
            if amount is not None:
                found += validate_amount(amount, SPEC.child(name))
                found += validate_share(amount, SPEC.child(name))
        if spec.selector is not None:
            found += validate_label_selector(spec.selector, SPEC.child("selector"))
        policy = spec.unhealthy_pod_eviction_policy
        if policy is not None and policy not in _POLICIES:
            place = SPEC.child("unhealthyPodEvictionPolicy")
            found.append(not_supported(place, policy, _POLICIES))
        return found

    def validate_status(self, new: PodDisruptionBudget, old: PodDisruptionBudget) -> ErrorList:  # noqa: ARG002
        """Validate the counts and the conditions."""
        status = new.status
        found = validate_conditions(status.conditions, STATUS.child("conditions"))
        for name, count in (
            ("disruptionsAllowed", status.disruptions_allowed),
            ("currentHealthy", status.current_healthy),
            ("desiredHealthy", status.desired_healthy),
            ("expectedPods", status.expected_pods),
        ):
            found += not_negative(count, STATUS.child(name))
        return found


def _internal(spec: PodDisruptionBudgetSpec) -> dict[str, object]:
    """Return the spec as Kubernetes prints it in errors: with the names of its Go fields."""
    return {
        "MinAvailable": spec.min_available,
        "Selector": None if spec.selector is None else to_tree(spec.selector),
        "MaxUnavailable": spec.max_unavailable,
        "UnhealthyPodEvictionPolicy": spec.unhealthy_pod_eviction_policy,
    }

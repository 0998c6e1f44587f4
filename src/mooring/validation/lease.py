"""How Leases are admitted."""

from __future__ import annotations

from mooring.api.coordination import Lease
from mooring.api.fieldpath import Path, root
from mooring.validation.checks import label_name, not_negative
from mooring.validation.errors import Errors, forbidden, invalid, not_supported
from mooring.validation.ordinary import OrdinaryStrategy

SPEC = root("spec")
_STRATEGIES = ("OldestEmulationVersion",)


class LeaseStrategy(OrdinaryStrategy[Lease]):
    """Admission of Leases."""

    def rules(self, new: Lease) -> Errors:
        """Check the spec."""
        spec = new.spec
        found: Errors = []
        duration = spec.lease_duration_seconds
        if duration is not None and duration <= 0:
            path = SPEC.child("leaseDurationSeconds")
            found.append(invalid(path, duration, "must be greater than 0"))
        found += not_negative(spec.lease_transitions, SPEC.child("leaseTransitions"))
        if spec.strategy is not None:
            # The place of a strategy that is none is a field of itself, as Kubernetes has it.
            found += _check_strategy(spec.strategy, SPEC.child("strategy", "strategy"))
        if spec.preferred_holder and not spec.strategy:
            detail = "may only be specified if `strategy` is defined"
            found.append(forbidden(SPEC.child("preferredHolder"), detail))
        return found


def _check_strategy(strategy: str, path: Path) -> Errors:
    if "/" in strategy:
        return label_name(strategy, path)
    return [] if strategy in _STRATEGIES else [not_supported(path, strategy, _STRATEGIES)]

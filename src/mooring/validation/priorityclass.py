"""How PriorityClasses are admitted."""

from __future__ import annotations

from msgspec.structs import replace

from mooring.api.fieldpath import root
from mooring.api.scheduling.v1 import HIGHEST_USER_PRIORITY, PriorityClass
from mooring.api.timestamp import Timestamp
from mooring.validation.checks import unchanged
from mooring.validation.context import Context
from mooring.validation.errors import Errors, forbidden
from mooring.validation.metadata import METADATA, check_metadata_update
from mooring.validation.ordinary import OrdinaryStrategy
from mooring.validation.pod.containers import check_choice

SYSTEM_PREFIX = "system-"
SYSTEM_PRIORITIES = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
PREEMPT = "PreemptLowerPriority"


class PriorityClassStrategy(OrdinaryStrategy[PriorityClass]):
    """Admission of PriorityClasses."""

    namespaced = False

    def default(
        self,
        value: PriorityClass,
        api_version: str,  # noqa: ARG002
        now: Timestamp,  # noqa: ARG002
    ) -> PriorityClass:
        """Let it preempt, unless it says otherwise."""
        if value.preemption_policy is not None:
            return value
        return replace(value, preemption_policy=PREEMPT)

    def prepare_create(self, new: PriorityClass, context: Context) -> PriorityClass:  # noqa: ARG002
        """Start in the first generation, and stay in it: nothing that counts can change."""
        return replace(new, metadata=replace(new.metadata, generation=1))

    def rules(self, new: PriorityClass) -> Errors:
        """Check name, value and policy."""
        found: Errors = []
        if new.metadata.name.startswith(SYSTEM_PREFIX):
            found += _check_system(new)
        elif new.value > HIGHEST_USER_PRIORITY:
            detail = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
            found.append(forbidden(root("value"), detail))
        if new.preemption_policy is not None:
            path = root("preemptionPolicy")
            found += check_choice(new.preemption_policy, (PREEMPT, "Never"), path)
        return found

    def check_update(
        self,
        new: PriorityClass,
        old: PriorityClass,
        context: Context,  # noqa: ARG002
    ) -> Errors:
        """Check the metadata, and that value and policy stay."""
        found = check_metadata_update(new.metadata, old.metadata)
        if new.value != old.value:
            found.append(forbidden(root("value"), "may not be changed in an update."))
        path = root("preemptionPolicy")
        return found + unchanged(new.preemption_policy, old.preemption_policy, path)


def _check_system(new: PriorityClass) -> Errors:
    """Check that a class with a name of the system is one of the system's own."""
    name = new.metadata.name
    value = SYSTEM_PRIORITIES.get(name)
    if value is None:
        fault = f"{name} is not a known system priority class"
    elif new.value != value:
        fault = f"value of {name} PriorityClass must be {value}"
    elif new.global_default:
        fault = f"globalDefault of {name} PriorityClass must be false"
    else:
        return []
    detail = (
        f"priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only. "
        f"error: {fault}"
    )
    return [forbidden(METADATA.child("name"), detail)]

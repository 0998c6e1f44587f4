"""All laws, in the order in which they are checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from soak._agreement import device_laws, form_laws, pod_laws, trial_laws
from soak._agreement.doors import Doors

Law = Callable[[Doors], Iterator[str]]
LAWS: Final[tuple[Law, ...]] = (
    pod_laws.placed_or_pending,
    pod_laws.one_pod_or_all,
    pod_laws.exit_statuses,
    pod_laws.library_as_commands,
    pod_laws.mistyped_classes_have_one_name,
    pod_laws.nothing_changes_nothing,
    pod_laws.drained_nodes_are_empty,
    trial_laws.fit_is_what_a_plan_places,
    trial_laws.fixes_place_pods,
    trial_laws.waits_end_when_they_say,
    device_laws.claims_hold_devices,
    device_laws.counts_are_rows,
    device_laws.metrics_count_claims_and_pods,
    device_laws.metrics_count_room_as_fit,
    device_laws.recorded_page_shows_devices,
    device_laws.recorded_page_shows_pods,
    device_laws.shown_page_is_the_plan,
    form_laws.order_does_not_matter,
    form_laws.snapshot_answers_alike,
    form_laws.server_answers_alike,
    form_laws.what_happened_is_stable,
    form_laws.stand_ins_take_nothing,
)


def name_of(law: Law) -> str:
    """Return the name of a law."""
    return law.__name__.replace("_", " ")


def statement_of(law: Law) -> str:
    """Return what a law says holds."""
    return (law.__doc__ or "").partition("\n")[0]

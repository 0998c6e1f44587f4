"""Claims: what scheduler and controllers both must know of them.

references, uses, owners      which claims a pod uses
generated                     claims made from templates
consumers, releases           who a claim is reserved for, and when that ends
evictions, evictionstatus     which pods leave because of tainted devices, and what rules say of it
classindex, extendedneeds, extendedrequests, specialclaim
                              extended resources that devices serve
podresources, resizes         what a pod asks for in all, and holds on its node
nodeallocatable, nodefit      node resources that come with claims
quotas                        what objects use of quotas, and whether there is room
"""

from mooring.api.devicetaints import DeviceName, means_by_name
from mooring.claims.classindex import ClassIndex, implicit_name, is_device_resource
from mooring.claims.consumers import (
    consumer_of,
    deallocated,
    group_consumer,
    is_at_most_for,
    is_reserved_for,
    pod_consumer,
    protected,
    reserved,
    unprotected,
)
from mooring.claims.evictions import (
    Cause,
    Eviction,
    Mark,
    MarkedDevices,
    find_evictions,
)
from mooring.claims.evictionstatus import Counts, RuleStatus, as_evicting, counts_of, rule_status
from mooring.claims.extendedneeds import extended_needs, is_served_by_devices, needs_on_node
from mooring.claims.extendedrequests import ExtendedRequests, extended_requests
from mooring.claims.features import ALL_FEATURES, Features
from mooring.claims.generated import (
    claim_from_template,
    find_generated,
    generate_name,
    group_claim_statuses,
    pod_claim_statuses,
)
from mooring.claims.nodeallocatable import (
    AllocatedClaim,
    check_unshared,
    claim_statuses,
    finder,
    is_mapped,
)
from mooring.claims.nodefit import Shortage, check_pod_level, shortages
from mooring.claims.owners import check_made_for_group, check_made_for_pod, group_name, owning_pod
from mooring.claims.podresources import container_limits, container_requests, pod_requests
from mooring.claims.references import (
    Named,
    NotCreated,
    NotNeeded,
    Reference,
    Unsupported,
    claim_names,
    claims_to_release,
    reference_of,
)
from mooring.claims.refusals import Refused
from mooring.claims.releases import (
    Absent,
    AskServer,
    Delete,
    Present,
    RemoveFinalizer,
    Reservations,
    Unknown,
    WriteStatus,
    is_pod_done,
    release_steps,
    review,
    seen_group,
    seen_pod,
)
from mooring.claims.specialclaim import (
    check_fresh,
    extended_status,
    find_special,
    is_in_memory,
    special_claim,
    to_create,
    with_claim_name,
    with_requests,
)
from mooring.claims.uses import Use, uses_of

__all__ = [
    "ALL_FEATURES",
    "Absent",
    "AllocatedClaim",
    "AskServer",
    "Cause",
    "ClassIndex",
    "Counts",
    "Delete",
    "DeviceName",
    "Eviction",
    "ExtendedRequests",
    "Features",
    "Mark",
    "MarkedDevices",
    "Named",
    "NotCreated",
    "NotNeeded",
    "Present",
    "Reference",
    "Refused",
    "RemoveFinalizer",
    "Reservations",
    "RuleStatus",
    "Shortage",
    "Unknown",
    "Unsupported",
    "Use",
    "WriteStatus",
    "as_evicting",
    "check_fresh",
    "check_made_for_group",
    "check_made_for_pod",
    "check_pod_level",
    "check_unshared",
    "claim_from_template",
    "claim_names",
    "claim_statuses",
    "claims_to_release",
    "consumer_of",
    "container_limits",
    "container_requests",
    "counts_of",
    "deallocated",
    "extended_needs",
    "extended_requests",
    "extended_status",
    "find_evictions",
    "find_generated",
    "find_special",
    "finder",
    "generate_name",
    "group_claim_statuses",
    "group_consumer",
    "group_name",
    "implicit_name",
    "is_at_most_for",
    "is_device_resource",
    "is_in_memory",
    "is_mapped",
    "is_pod_done",
    "is_reserved_for",
    "is_served_by_devices",
    "means_by_name",
    "needs_on_node",
    "owning_pod",
    "pod_claim_statuses",
    "pod_consumer",
    "pod_requests",
    "protected",
    "reference_of",
    "release_steps",
    "reserved",
    "review",
    "rule_status",
    "seen_group",
    "seen_pod",
    "shortages",
    "special_claim",
    "to_create",
    "unprotected",
    "uses_of",
    "with_claim_name",
    "with_requests",
]

"""The allocator: which devices claims get on a node, with the results of Kubernetes' allocator.

errors        errors that end an allocation
features      which feature gates of allocation are on
requests      the requests of claims, in one form: the plan
pools         pools as nodes see them, node selection, and sets of devices
pool_slices   the slices of a pool, and the pool that they make for a node
answers       what expressions say of the devices of a pool, as far as they were asked
pool_facts    facts about the devices of a pool, independent of allocations
static_rules  which devices some requirements admit, judged when the search reaches them
node_view     all candidate devices of one node, in the order tried
ledger        which devices are allocated to which claims
inventory     slices, classes and allocations, with everything derived from them
taints        device taints, and those that DeviceTaintRules add
rules         the rules that admit or refuse a pick
slots         the subrequests of a plan on one node
problem       one plan on one node
interchangeable  devices of which a search tries one only
search        the first assignment that every rule admits
feasibility   decides that a part of the search has no solution
remaining     the demand that is left, and which parts are interchangeable
bounds        demand that cannot be met, by counting
bin_packing   demand on devices that can be shared
results       the AllocationResult of each claim
outcomes      the answers: allocated, unsatisfied, failed
allocation    the entry points
trace         why claims get no devices
"""

from moorage.allocator.allocation import allocate, allocate_prepared, prepare
from moorage.allocator.features import ALL_FEATURES, Features
from moorage.allocator.inventory import Inventory
from moorage.allocator.outcomes import Allocated, AllocationFailed, AllocationOutcome, Unsatisfied

__all__ = [
    "ALL_FEATURES",
    "Allocated",
    "AllocationFailed",
    "AllocationOutcome",
    "Features",
    "Inventory",
    "Unsatisfied",
    "allocate",
    "allocate_prepared",
    "prepare",
]

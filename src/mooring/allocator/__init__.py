"""The allocator: which devices claims get on a node, the answer of Kubernetes' own."""

from mooring.allocator.allocation import allocate, allocate_wanted, prepare
from mooring.allocator.answers import Allocated, Answer, Failed, Unsatisfied
from mooring.allocator.features import ALL_FEATURES, Features
from mooring.allocator.inventory import Inventory

__all__ = [
    "ALL_FEATURES",
    "Allocated",
    "Answer",
    "Failed",
    "Features",
    "Inventory",
    "Unsatisfied",
    "allocate",
    "allocate_wanted",
    "prepare",
]

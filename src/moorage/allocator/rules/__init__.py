"""The rules of allocation.

    base         the protocol of rules, and the rule that a device has one user
    capacity     how much a request consumes of a device (static; called by `pool_facts`)
    consumption  counters and capacities that are left
    constraints  constraints of claims, and compatibility groups

Static rules admit or refuse a device for a request once and for all, or raise an error. Stateful
rules (see `base`) decide by what was picked before.
"""

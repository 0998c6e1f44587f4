"""Questions about what is shown: pure functions from a moment to the tree of an answer.

moment      what is shown, and what questions about it share
kept_cluster  the scheduler's cluster, which follows changes
reading     questions as their bodies ask them
details     an object as YAML with its events; a device with everything about it
cel         which devices an expression selects, and why not the others
explain     why a pod waits; paint says which question refused each device
paint       the question that refused each device
what_if     what changes would do; fixed makes the changes of a fix
fixed       a cluster with a fix made
ghosts      the difference of two fleets, drawn over the first one
"""

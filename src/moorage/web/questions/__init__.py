"""Questions about what the page shows: pure functions from a moment to an answer as a JSON tree.

moment      what is shown, and what questions about it share
kept_cluster  the scheduler's cluster, updated with changes
reading     reads questions from request bodies
details     an object as YAML with its events; all facts about a device
cel         which devices an expression selects, and why not the others
explain     why a pod waits
paint       the check that rejects each device
what_if     what changes would do
fixed       the cluster with a fix applied
ghosts      the difference between two fleets, drawn over the first
"""

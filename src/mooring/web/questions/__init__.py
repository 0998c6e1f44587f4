"""Questions about what is shown: pure functions from a moment to the tree of an answer.

moment      what is shown, and what questions about it share
details     an object as YAML with its events; a device with everything about it
cel         which devices an expression selects, and why not the others
explain     why a pod waits; paint says which question refused each device
what_if     what changes would do; changed_words reads them, fixed makes a fix's changes
ghosts      the difference of two fleets, drawn over the first one
"""

"""Custom resources: what serves them.

manager      follows definitions: which resources are served, conditions, and cleaning up
collector    garbage collection where custom resources are owners or dependents
conditions   the conditions of a definition, and names that are accepted
requests     bodies of requests, and which versions can be asked for
fields       values at JSON paths: printer columns, field selectors, /scale
"""

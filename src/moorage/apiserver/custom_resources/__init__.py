"""Serves custom resources.

manager      follows definitions: served resources, conditions, and cleanup
collector    garbage collection where custom resources are owners or dependents
conditions   the conditions of a definition, and its accepted names
requests     served versions, and request bodies
fields       values at JSON paths: printer columns, field selectors, /scale
"""

"""Objects in the store.

registry    reads and writes objects as values, with retries
informer    caches that follow the store
store       opening, compacting and checking the store
"""

"""What keeps a cluster as it should be: each controller plans writes from what is there.

A controller is a pure function `plan(objects, key, now) -> writes` in a module of its own; what
reads, queues and writes for all of them is thin and stands beside them.
"""

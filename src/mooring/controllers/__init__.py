"""What keeps a cluster as it should be: each controller plans writes from what is there.

A controller is a pure function `plan(objects, key, now) -> steps` in a module of its own; what
reads, queues and writes for all of them is thin and stands beside them.

controller      what a controller is: kinds, keys, plan, steps
steps           what is done with the steps of a plan
running         a controller at work with a server
resourceclaims  claims from templates, reservations, releases
devicetaints    evictions from tainted devices, and the status of rules
poolstatus      answers to ResourcePoolStatusRequests
metrics         what is counted
model, settling the same in memory: a server's rules for writes, and controllers run to rest
"""

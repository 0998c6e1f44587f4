"""What keeps a cluster as it should be: each controller plans writes from what is there.

A controller is a pure function `plan(objects, key, now) -> steps` in a module of its own; what
reads, queues and writes for all of them is thin and stands beside them.

controller      what a controller is: kinds, keys, plan, steps
steps           what is done with the steps of a plan
running, loops  a controller at work with a server; many, with informers and queues
resourceclaims  claims from templates, reservations, releases
devicetaints    evictions from tainted devices, and the status of rules
poolstatus      answers to ResourcePoolStatusRequests
deployments     replica sets one after the other: rollouts, revisions, deploymentstatus
replicasets     as many pods as are wanted
daemonsets      one pod on every fitting node (daemons)
jobs            pods until enough succeeded: jobtracking, jobfailures, jobindexes, jobgroups
finishedjobs    jobs that are over go after their time
podgroups       groups stay until their pods have ended
podgarbage      pods that nobody will ever end
garbage         what nobody owns any more
accounts        what every namespace has
owning, podmaking, podstates, conditions, naming    what several of these share
dra, roster     all controllers: of claims, as the gates have them, and of workloads
metrics, queuemetrics
                what is counted
model, settling the same in memory: a server's rules for writes, and controllers run to rest
"""

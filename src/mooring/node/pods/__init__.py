"""The pods of a node: what is to be done for each next, and what is told of it.

# known: what the node knows of a pod, besides what the cluster says
# planning: what is to be done next (pure); endings: why and how a pod ends (pure)
# restarting: whether and when an ended container runs again (pure)
# admission: whether the node takes a pod at all (pure)
# status, containerstatuses, conditions, phases: what is told of a pod (pure)
# environment, volumes, limits, containerspecs: what a container is started with (pure but files)
# probes, hooks, requesting: how containers are asked how they are
# worker: carries out the plan of one pod; keeper: has a worker for each pod
"""

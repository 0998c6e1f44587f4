"""The scheduler: which node a pod gets, and which devices its claims get there.

A `Cluster` follows nodes, pods, devices, classes, claims and groups. `schedule` returns where a pod
goes (`Placed`) or why nowhere (`Pending`), and changes nothing; `reserve` applies that and
`release` undoes it. `schedule_group` does the same for the pods of a group. `live` runs all this
for a cluster as it changes.

features, errors, framework   gates; errors; extension points, statuses and times of plugins
resources, affinity, topology_spread, pre_filter
                              the parts of a pod that scheduling reads
pod_signature, signature_cache
                              what decides about a pod; pods alike, read once
volume_binding                what the volume claims of pods mean for nodes
node_info, topology_state, node_snapshot
                              a node with its pods; pods by topology; all nodes, nominated pods
disruption_budgets            which victims of preemption violate a PodDisruptionBudget
group_forest                  pod groups, and the composite groups above them
plugins                       filters and scores, one module for each plugin of Kubernetes
profiles                      plugins and arguments of a configuration file, and what is refused
binding_conditions            devices that need preparation before a pod is bound
diagnosis                     why no node is feasible, and the message
kind_plugins                  which plugins apply to one kind of pods
node_ranking                  all nodes for one kind of pods, filtered and scored
size_ranking                  nodes by their scores for all kinds that request the same
ranking_indexes               indexes that find the best of the feasible nodes
cluster                       all of it kept up to date
scheduling_cycle, preemption, pod_groups, reservation
                              one pod; pods that must leave; pods together; decisions applied
live                          the scheduler at work with an API server

Who owns the state of claims, from the server to the search:

    API server ── watch, responses ──► live.ClaimAssumeCache   newest stored version of each claim
                        │                     │ put_claim
                        │                     ▼
                        │                  Cluster             claims as the scheduler sees them,
                        │                     │                and `assumed_claims`: how they were
                        │                     │ put_claim      before decisions not yet written
                        │                     ▼
                        │              allocator.Inventory     which devices are allocated; its
                        │                                      Ledger counts them
                        └──────────► live.DoubleAllocations    which claim got a device first
                                                               by the watch alone, for conflicts
                                                               between schedulers

Only `live.AssumeCache`, which has the `ClaimAssumeCache`, writes to these; everything else reads.
"""

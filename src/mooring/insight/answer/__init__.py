"""The answer to why a pod waits: the cause in one sentence, and the fixes an expert would choose.

answer         explanation in, cause and fixes out: the flow is drawn there
output         answers as text and as trees, and manifests with a fix made
summary        one line for the scheduler's event, in bounded time
live_case      the case of a pod in a live scheduler's cluster
finding        findings, proposals and fixes; everything that findings are made from
references     gates, and classes, templates, claims and groups that do not exist
quotas         quotas that refuse the pod or its claims
unread         what could not be read of a live cluster
nodes          why nodes reject a pod: taints, claims with devices elsewhere
amounts        resources of which nodes have too little
extended       extended resources that nobody offers
labels         node selectors and node affinities
neighbours     rules about other pods: ports, affinity, spreading
replicas       workloads with more pods than fit
devices        why requests find too few devices
shortages      requests that find too few, and the devices that expressions choose
pools          drivers that publish nothing, or not all
holders        devices that others have
together       requests that want the same devices
selectors      selectors that leave too few, and their repair
taints         taints that requests do not tolerate
constraints    constraints that devices cannot satisfy together
claim_changes  changes to claims, as edits of the objects in which they are written
edits          changes of objects as data
sources        the objects in which pods and claims are written
rehearsal      would the pod get a node with the changes?
"""

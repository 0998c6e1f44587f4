"""The answer to why a pod waits: the cause in one sentence, and the fixes an expert would choose.

answer         explanation in, cause and fixes out: the flow is drawn there
output         answers as text and as trees, and manifests with a fix made
summary        one line for the scheduler's event, in bounded time
live_case      the case of a pod in a live scheduler's cluster
finding        findings, proposals and fixes; everything that findings are made from
references     gates, and classes, templates, claims and groups that do not exist
sharing        claims that as many pods share as can
quotas         quotas that refuse the pod or its claims
unread         what could not be read of a live cluster
nodes          why nodes reject a pod: taints, claims with devices elsewhere
amounts        resources of which nodes have too little
extended       extended resources that nobody offers
labels         node selectors and node affinities
neighbours     rules about other pods: ports, affinity, spreading
replicas       workloads with more pods than fit
nowhere        nodes that lack different things, in one sentence
devices        why requests find too few devices
contention     requests that want more devices together than there are
errors         expressions whose error ended the search for devices
shortages      requests that find too few, and the devices that expressions choose
pools          drivers that publish nothing, or not all
holders        devices that others have
together       requests that want the same devices
selectors      selectors that leave too few, and their repair
taints         taints that requests do not tolerate
conflicts      claims that a node cannot serve for no single reason
constraints    constraints that devices cannot satisfy together
constraint_fixes  what to do about them
compared       what a constraint compares: devices and their values
bridges        derived attributes between drivers that name a fact differently
refused_claims  claims that are refused for their constraints or derived attributes
derived        derived attributes that cannot be evaluated
combined       several changes that help together
claim_changes  changes to claims, as edits of the objects in which they are written
edits          changes of objects as data
sources        the objects in which pods and claims are written
rehearsal      would the pod get a node with the changes?
"""

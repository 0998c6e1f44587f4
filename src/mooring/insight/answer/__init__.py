"""The answer to why a pod waits: the cause in one sentence, and the fixes an expert would choose.

answer         explanation in, cause and fixes out: the flow is drawn there
summary        one line for the scheduler's event, in bounded time
live_case      the case of a pod in a live scheduler's cluster
groups         pods that wait for the same reason, told together
output         answers as lines of text
document       answers as JSON, with its schema
manifests      manifests with a fix made
finding        findings, proposals and fixes; everything that findings are made from
bindings       devices that never got ready for their pod
sharing        claims that as many pods share as can
waits          gates, other schedulers, pod groups, claims that are being deleted
references     classes, templates and claims that do not exist
refusals       objects that an API server refuses, in plain words
refusal_repairs  what was meant in them
uncompiled     expressions that do not compile, and what was meant
quotas         quotas that refuse the pod or its claims
unread         what could not be read of a live cluster
gates          fields that are ignored because their feature gate is off
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

"""What stops a pod before any node is looked at.

references       classes, templates and claims that do not exist, or could not be read
refusals         objects that an API server refuses, in plain words
refusal_repairs  what was meant in them
refused_claims   claims that are refused for their constraints or derived attributes
quotas           quotas that refuse the pod or its claims
gates            fields that are ignored because their feature gate is off
waits            gates, other schedulers, pod groups, claims that are being deleted
volumes          volume claims that are missing, unbound, or bound to other nodes
group_domains    groups that must stay within one domain of a topology
sharing          claims that as many pods share as can
bindings         devices that never got ready for their pod
"""

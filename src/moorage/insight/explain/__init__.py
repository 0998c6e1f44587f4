"""Why a pod gets no node, why claims get no devices on a node, and what would help.

pods               explains a pending pod: the flow is drawn there
verdicts           what nodes say, the nearest first
nodes              probes nodes for a pod; changes to the pod
report             explanations and diagnoses as lines
phrases            phrases for changes, members of conflicts and rejections

diagnosis          why claims cannot be allocated on one node
situation          everything that decides about that, and what could change
trials             what the allocator says then, remembered and bounded
funnel             how many devices are left for a request after each question
device_rejections  what rejects a device, with the values that decided
conflict           what together is impossible, every part of it needed
candidates         single changes that might help
fixes              the nearest changes that help, each tried
"""

"""The answer to why a pod waits: the cause in one sentence, and the fixes an expert would choose.

answer         explanation in, cause and fixes out: the flow is drawn there
finding        findings, proposals and fixes; everything that findings are made from
cause_kinds    the cause in a word, for counting pods
preconditions  what stops a pod before any node is looked at
nodes          why nodes reject a pod, devices aside
devices        why claims get no devices
combined       several changes that help together
holders        who has what a pod waits for, and for whom it helps to wait
orders         pods that would fit if they came first: a priority, or another order
consequences   what is given up by a fix, and what becomes of the other pods
waiting        what helps once devices are free, and what waiting does not end
changes        changes of objects, and what would come of them

groups         pods that wait for the same reason, told together
output         answers as lines of text
document       answers as JSON, with its schema
manifests      manifests with a fix made
summary        one line for the scheduler's event, in bounded time
live_case      the case of a pod in a live scheduler's cluster
"""

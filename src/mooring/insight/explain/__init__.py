"""Why a pod gets no node.

explain       verdicts of nodes, with diagnoses of claims; patience says how long these may take
stoppages     what stops a pod wherever it might go
noderefusals  what is behind the refusal of a node
podfixes      changes to the pod itself, each tried
explanations  all of it as lines or as a tree
briefly       one line for the scheduler, in bounded time
"""

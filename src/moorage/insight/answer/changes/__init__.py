"""Changes of objects, and what would come of them.

edits            changes of objects as data
sources          the objects in which pods and claims are written
claim_changes    changes to claims, as edits of the objects in which they are written
changed_cluster  the scheduler's cluster, changed for a while
departures       pods that end, and what is free then
rehearsal        would the pod get a node with the changes?
"""

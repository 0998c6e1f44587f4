"""`moor run`: one local command with devices that a claim and a pod hold for it.

claim_requests  the user's requests, as requests of a claim (pure)
holder_pod      the claim and the pod that hold the devices, and their lifecycle
command         the command itself: a child process with the edits of its devices
"""

"""One local command with devices of this machine: asked for, held by a pod, run, given back.

asking     what a user asks for, in the words of a claim (pure)
manifests  the claim, and the pod that holds it (pure)
holding    the pod's life: devices come with it, and go with it
commands   the command itself, a child of ours with what its devices bring
"""

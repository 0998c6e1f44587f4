"""Container runtimes behind one contract, with the vocabulary of the CRI.

contract           the contract of runtimes, and code that they share
security_context   who a container runs as, and what it may do
cdi                CDI devices, looked up in folders of specs
process            containers as processes of this machine
shim               the small process that owns them, and outlives the agent
podman             containers by podman, with images
sim                simulated containers: nothing runs
"""

"""Container runtimes behind one contract, in the words of the CRI.

contract   what the agent asks of a runtime, and what runtimes share
cdi        CDI devices, looked up in folders of specs
process    containers as processes of this machine
shim       the small process that owns them, and outlives the agent
podman     containers by podman, with images
sim        simulated containers: nothing runs
"""

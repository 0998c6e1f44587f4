"""A test kit for authors of drivers.

plugin          the fixtures, for pytest
cluster         a whole cluster, with a node that runs pods
kubelet         the node's half of DRA alone, with faults
served_drivers  drivers within a test, and what is raised of their bugs
machine         the hardware of a board, as files
allocations     what a claim got, asserted
check           promises of a driver in any language, tried
"""

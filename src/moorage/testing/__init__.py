"""A test kit for authors of DRA drivers.

plugin          the pytest fixtures
cluster         a whole cluster, with a node that runs pods
kubelet         the DRA half of a kubelet alone, with faults on demand
served_drivers  drivers that run in a test, their bugs, and the event loop they run in
machine         the sysfs of a board, as files
allocations     assertions about allocated claims
check           checks of a driver in any language
"""

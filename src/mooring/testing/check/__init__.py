"""Checks of a driver in any language, through its real sockets.

# bench: a server, a node and folders, for one driver
# plug: the driver's sockets, as a kubelet uses them
# check: one promise of a driver, tried; it passes, fails or is skipped, and says why
"""

"""A program in the foreground with what devices bring: no keeper, no log, its user's terminal.

    main(LAUNCH, REPORT, PARENT)

LAUNCH is a descriptor from which a launch is read, REPORT a socket for what goes wrong, as in
`child`. This process becomes the program: working directory, streams, mask and limits are those
that it was started with.
"""

from __future__ import annotations

import json
import os
import signal
import socket

from mooring.node.runtime.keeper import child
from mooring.node.runtime.keeper.launches import Launch


def main(launch: int, report: int, parent: int, staging: str) -> None:
    """Become the program of a launch, or tell why not."""
    os.set_inheritable(report, False)

    def become(told: socket.socket) -> None:
        child.end_with_parent(parent)
        with open(launch, encoding="utf-8") as file:
            _become(Launch.read(json.load(file)), told, staging)

    child.attempt(become, socket.socket(fileno=report))


def _become(launch: Launch, told: socket.socket, staging: str) -> None:
    child.take_limits(doors=(), cpus=launch.cpus, memory_nodes=launch.memory_nodes)
    is_root = os.geteuid() == 0
    child.take_groups(launch.groups)
    if launch.mounts:
        child.take_mounts(launch.mounts, told, staging=staging, is_root=is_root)
        os.chdir(launch.folder)  # as it is with the mounts
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)  # Python ignores them, which would be inherited
    child.execute(launch.command, launch.environment)

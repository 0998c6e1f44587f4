"""A program in the foreground with what devices bring: no keeper, no log, its user's terminal.

    main(LAUNCH, REPORT, PARENT)

LAUNCH is a descriptor from which a launch is read, REPORT a socket for what goes wrong, as in
`child`. This process becomes the program: working directory, streams and limits are those that it
was started with. Signals do what they do by default.
"""

from __future__ import annotations

import json
import os
import signal
import socket

from mooring.node.runtime.shim import child
from mooring.node.runtime.shim.launches import Launch


def main(launch: int, report: int, parent: int, staging: str) -> None:
    """Become the program of a launch, or tell why not."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # an interrupt ends us as it would the program
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
    # Whoever starts us with nohup wants the command to go on when the terminal is closed.
    is_nohup = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    child.reset_signals(keep=(signal.SIGHUP,) if is_nohup else ())
    child.execute(launch.command, launch.environment)

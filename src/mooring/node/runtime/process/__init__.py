"""Containers as processes of this machine.

    runtime = ProcessRuntime(Path("/var/lib/mooring/processes"), cdi_folders=[Path("/etc/cdi")])
    state = await runtime.start(spec)

The processes belong to a keeper (`mooring.node.runtime.keeper`), which is started when it is
needed and stays when we go. Here is the agent's side of it.
"""

from mooring.node.runtime.process.runtime import ProcessRuntime

__all__ = ["ProcessRuntime"]

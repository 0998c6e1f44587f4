"""Containers as processes of this machine.

    runtime = ProcessRuntime(Path("/var/lib/moorage/processes"), cdi_folders=[Path("/etc/cdi")])
    state = await runtime.start(spec)

The processes belong to a shim (`moorage.node.runtime.shim`), which is started on demand and stays
when the agent ends. Here is the agent's side:

    runtime          the runtime, and how a container becomes a launch
    confinement      the security context of a container, as rights of its process
    shim_client      the connection to the shim, and exec sessions
    container_logs   logs, read from their files
"""

from moorage.node.runtime.process.runtime import ProcessRuntime

__all__ = ["ProcessRuntime"]

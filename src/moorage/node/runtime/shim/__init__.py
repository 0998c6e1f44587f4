"""The shim: one small process that is the parent of all containers, and outlives the agent.

    agent ── unix socket ── shim ─┬─ container ── its descendants
                                  └─ container

The agent may be killed and restarted at any time; the shim owns the containers, their output and
their exit codes, as containerd-shim does. It forks, reaps, writes logs and records, and knows
nothing of pods. If the shim is killed, the kernel kills its containers, and the next shim reports
that. It imports little more than the standard library, and little of that, to stay small.

    shim                the process itself: start-up, its containers, recovery
    server              connections on its socket, and their requests
    container           one container, from its launch to its end
    exec_attach         commands executed in containers, and attached clients
    container_process   the new process between fork and exec
    confinement         the user, groups, capabilities and system calls of a container
    container_io        standard streams and logs
    mounts              mounts in a container's own namespace
    cgroup_manager      limits by cgroups
    resources           other limits for a running container, and what it has used
    protocol            what the agent and the shim exchange: frames, launches, records
    linux               event loop, processes in /proc, system calls that Python lacks

    # launch: all that is needed to start a container, worked out by the agent
    # record: what the disk has of a container; written before it runs, and when it has ended
    # member: a process of a container: the first, its descendants, and executed commands
"""

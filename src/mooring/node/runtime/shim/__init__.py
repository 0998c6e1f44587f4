"""The keeper: one small process that is the parent of all containers, and outlives the agent.

    agent ── unix socket ── keeper ─┬─ container ── its descendants
                                    └─ container

The agent may be killed and started again at any time; containers, their output and their exit
codes are the keeper's. It forks, reaps, writes logs and records, and knows nothing of pods. If it
is killed itself, the kernel kills its containers, and the next keeper says so.

Only the standard library is imported here, and little of it: the keeper should be small.

    # launch: all that is needed to start a container, worked out by the agent
    # record: what is kept on disk of a container; written before it runs, and when it has ended
    # member: a process of a container: the first, its descendants, and commands run beside it
"""

"""The node agent: pods that are bound to this machine run here, with their devices.

    # dra: drivers found and registered, claims prepared and unprepared, health, what pods have
    # deviceplugins: the older plugins, for nodes that have both
    # pods: what is to be done for each pod next, and what is told of it
    # runtime: how containers run: as processes, by podman, or not at all (sim)

Nothing here knows how the API server is reached, but by a client.
"""

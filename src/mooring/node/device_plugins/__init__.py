"""Device plugins beside DRA: their resources, and what of them each pod has.

    # inventory: which devices plugins say there are
    # ledger: which device is whose
    # choosing: which devices a container gets
    # readings: what plugins say, checked
    # checkpoint: what outlives the agent
    # plugin: one plugin at its socket
    # registration: the socket at which plugins come
    # connections: all of them, followed
    # manager: gives devices to pods
    # telling: what is told of them elsewhere

A plugin registers at `device-plugins/kubelet.sock`, lists its devices as long as it lives, and is
asked before a container gets some. The first four modules act on nothing.
"""

"""Device plugins (v1beta1) beside DRA: the kubelet's device manager.

    inventory    the devices that plugins list, and their messages checked (pure)
    allocation   which container has which device, and how devices are chosen (pure)
    plugins      plugins at their sockets: registration, connections, calls
    manager      gives devices to pods: the `DeviceManager`; checkpoint

A plugin registers at `device-plugins/kubelet.sock`, lists its devices for as long as it lives, and
is called before a container gets some.
"""

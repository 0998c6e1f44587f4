"""ResourceClaims on this node: the kubelet's DRA manager.

service               all of it together, and slices of drivers that are gone
manager               prepares and unprepares claims: the `DeviceManager`; metrics
claim_info            which claims pods use, and how far they are: the claim info cache (pure)
claim_requests        requests of a pod's claims to drivers, and drivers' responses (pure)
checkpoint            the cache in a file, in the kubelet's format
plugin_registration   sockets in the registry folder become registered plugins
plugin_manager        connections to drivers, and which of them is called
health_info           the health of devices, and how long it holds (pure)
health_streams        drivers' health streams, and the health checkpoint
pod_resources         the PodResources API for monitoring agents
"""

"""Programs put together from the other packages, and whole clusters of programs.

programs             the scheduler and the controller manager, run with a client
control_plane        the server and these programs in one process
metrics_exporter     the program of `moor metrics`; explainer says why pods wait, as events
snapshot_passes      both look at the whole cluster again and again, in a thread
leader_process       a program as a process, with leader election
status_server        metrics and health pages of a program; status_access says who may read them
node                 the agent of a node; node_adapters connects its managers
embedded             a control plane without a network, for tests and experiments
cluster_processes    the processes that `moor up` starts
supervisor           keeps those processes running
state_folder         the state files of `moor up`; reset removes them
driver_classes       DeviceClasses of bundled drivers, and the default StorageClass
page                 the page at /ui/ beside the server
overview             counts of a cluster's nodes, pods and devices
slow_expressions     the CEL expressions that took the scheduler longest
simulation           simulated nodes and the pods on them
run                  `moor run`: a local command with devices
"""

"""The controllers of a cluster: each plans writes from what exists, for one key at a time.

`reconcile(objects, key, now, answers)` returns the steps for a key and does no I/O; a reconciler
reads, queues and writes for all controllers.

controller              the contract of a controller: kinds, keys, steps
reconciler              runs one controller with a server and a workqueue
plan_steps              the steps of one plan, sorted, chained, and skipped after a refusal
controller_manager      all controllers, with informers, workqueues and event recorders
metrics                 metrics of controllers and workqueues
controller_ref_manager  owner references: adopting and releasing
stored_selectors        selectors of stored objects, read once
pod_control             the state of pods, conditions, and pods made from templates
deployments, deployment_rollout, deployment_status
                        replica sets of one template after the other
replicasets             a number of pods
replication_controllers the same, in the older kind
daemonsets              a pod on every fitting node
statefulsets, statefulset_pods
                        numbered pods with identity and volume claims
controller_history      the templates that a set had, as ControllerRevisions
cronjobs                jobs at certain times
endpoint_slices         the addresses of the pods of services
endpoint_slice_mirroring  the addresses of services that users list themselves
disruption              how many pods budgets allow to be disrupted
persistent_volumes, volume_provisioning, volume_protection, ephemeral_volumes
                        claims and volumes bound to each other, host directories as volumes
jobs, job_tracking      pods until enough have succeeded; counting them once each
pod_groups              groups for jobs, and protection of groups in use
pod_gc                  pods that nobody will end, and finished jobs
garbage_collector       objects whose owners are gone
namespaces              what every namespace has, and deleting it
node_lifecycle          nodes whose kubelet is silent, and evictions by NoExecute taints
resource_claims, resource_claim_entries, resource_claim_releases
                        claims from templates, reservations, releases
device_taint_eviction, tainted_devices
                        evictions from tainted devices, and the status of DeviceTaintRules
pool_status, pool_capacity
                        answers to ResourcePoolStatusRequests
admission_policy_status warnings of expressions of policies that fit no type
"""

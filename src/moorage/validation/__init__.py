"""Defaulting, dropped fields and validation of every kind, as in an API server.

registry                      the flow: default, prepare, validate, store
versioned_paths               paths of fields as older versions have them
strategy                      the steps of one kind; ObjectStrategy has those that kinds share
manifests                     validates documents, and finds the line of every error
errors                        field errors, with Kubernetes' types and texts
equality                      semantic equality, the stored form, ratcheting
field_rules, selectors        rules that several kinds share
metadata                      rules of object metadata and conditions
gated_fields                  drops fields of disabled features, by the schema
repeated_specs                specs of templates, defaulted and validated once

resource_claim                ResourceClaim and ResourceClaimTemplate; their parts are
                              resource_claim_spec and resource_claim_status
resource_slice                ResourceSlice; slice_device and device_capacity have its devices
device_class                  DeviceClass and DeviceTaintRule
device_fields                 rules that claims, classes, slices and taint rules share
resource_pool_status_request  ResourcePoolStatusRequest
go_layout                     objects as Kubernetes prints them in errors
plain_devices                 a fast path for common devices

pod                           Pod (a package)
pod_security                  pod security levels, and what violates them (a package)
pod_group, workload           PodGroup, CompositePodGroup, Workload; pod_group_fields they share
apps                          Deployment, ReplicaSet, DaemonSet, StatefulSet
pod_template                  rules of kinds with a pod template; template_defaults their defaults
job                           Job; job_spec, job_scheduling and job_status are its parts
cron_job                      CronJob
service, service_defaults     Service
endpoints                     EndpointSlice, Endpoints and ControllerRevision
policy, limit_range           PodDisruptionBudget; LimitRange
persistent_volume             PersistentVolume, PersistentVolumeClaim
storage_class                 StorageClass
autoscaling                   HorizontalPodAutoscaler
namespace                     Namespace, ServiceAccount, ConfigMap, Secret
resource_quota                ResourceQuota
node                          Node
cluster_kinds                 Lease, RuntimeClass, PriorityClass, Event
admission_policy              ValidatingAdmissionPolicy and MutatingAdmissionPolicy
policy_expressions            the expressions of policies
admission_binding             the bindings of policies
admission_webhook             webhook configurations
admission_rules               rules that policies and webhooks share
data_kinds                    kinds that others act on: their strategies, and those of flow control
replication_controller        ReplicationController and PodTemplate
ingress, networking           Ingress; NetworkPolicy, IPAddress, ServiceCIDR
csi, certificates, api_service
                              CSI drivers and volumes; certificate requests; APIService
custom_resources              definitions of custom resources, and their objects (a package)
rbac                          Role, ClusterRole and their bindings
scheduler_configuration, scheduler_plugins, scheduler_plugin_args
                              KubeSchedulerConfiguration, its plugins and their arguments
"""

"""The API types: structs, schema, and how objects are read and written.

The schema
    schema              what each field of each type is, from the tables GROUP.schema.txt

Types of the API groups
    meta                what all objects share: metadata, conditions, label selectors
    core                pods, nodes, namespaces (core/v1)
    resource            claims, classes, slices, taint rules (resource.k8s.io)
    scheduling          pod groups, workloads, priority classes (scheduling.k8s.io)
    apps, batch         controllers of pods, Scale, jobs
    autoscaling         horizontal pod autoscalers
    discovery, policy, storage
                        endpoint slices, disruption budgets, storage classes
    networking, csi, certificates, flow_control, api_registration, storage_migration
                        kinds that others act on; built_in_kinds says what acts on which
    authentication, authorization, rbac
    coordination        leases
    events              events.k8s.io/v1
    runtime_class       node.k8s.io/v1
    admissionregistration  policies and webhooks
    apiextensions       definitions of custom resources; json_schema reads their schemas
    custom_resource     objects of custom resources
    device_metadata     files with metadata of devices in containers
    scheduler_config, scheduler_plugin_args
                        the configuration file of the scheduler, and of its plugins
    kinds, catalogue    kinds by apiVersion and name; conversion to the stored version

From text to objects and back
    documents           YAML and JSON with places
    custom_workloads    what well-known operators create from their own kinds
    kep_forms           forms of the KEPs that are accepted
    object_reader       from a parsed document to an object
    codec               JSON to structs and back; tolerant_reader reads what msgspec refuses
    go_types            JSON as Go types read it; repeated_trees: each of equal trees once
    go_type_names       the names of types in errors
    plain_reader        objects of plain JSON text, straight into their structs
    raw_json            JSON of drivers inside objects
    protobuf            objects in protobuf
    structs             the base classes of structs

Values
    quantity            quantities; quantity_text reads them, go_integers computes as Go does
    semver, timestamp, names, field_path
    labels              label selectors
    node_affinity       node selectors of pods and slices
    tolerations         taints and tolerations
    gates               feature gates and their stages
    cdi                 CDI specs
    process_binding     variables that bind a process to CPUs, memory and devices
    errors              the tree of errors
"""

{{/*
What each program may do, and no more: tests run the programs with these rules, and compare what they
asked of the server with each rule, both ways.
*/}}
{{- define "moorage.reviewRules" -}}
# Who may read /metrics.
- apiGroups: [authentication.k8s.io]
  resources: [tokenreviews]
  verbs: [create]
- apiGroups: [authorization.k8s.io]
  resources: [subjectaccessreviews]
  verbs: [create]
{{- end -}}

{{/* Whether a feature gate is on. Takes the root and a name. */}}
{{- define "moorage.isOn" -}}
{{- $chosen := get .root.Values.featureGates .gate | toString -}}
{{- if or (eq $chosen "true") (and (eq .root.Values.gatesPreset "moorage") (ne $chosen "false")) }}yes{{ end -}}
{{- end -}}

{{- define "moorage.clusterReadingRules" -}}
# All that decides about pods without a node.
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [nodes, persistentvolumeclaims, persistentvolumes, pods, resourcequotas]
  verbs: [list, watch]
- apiGroups: [resource.k8s.io]
  resources: [deviceclasses, devicetaintrules, resourceclaims, resourceclaimtemplates, resourceslices]
  verbs: [list, watch]
- apiGroups: [scheduling.k8s.io]
  resources: [priorityclasses]
  verbs: [list, watch]
- apiGroups: [node.k8s.io]
  resources: [runtimeclasses]
  verbs: [list, watch]
- apiGroups: [storage.k8s.io]
  resources: [storageclasses]
  verbs: [list, watch]
{{- if include "moorage.isOn" (dict "root" . "gate" "GenericWorkload") }}
- apiGroups: [scheduling.k8s.io]
  resources: [podgroups]
  verbs: [list, watch]
{{- end }}
{{- if include "moorage.isOn" (dict "root" . "gate" "CompositePodGroup") }}
- apiGroups: [scheduling.k8s.io]
  resources: [compositepodgroups]
  verbs: [list, watch]
{{- end }}
{{- end -}}

{{- define "moorage.schedulerRules" -}}
{{ include "moorage.reviewRules" . }}
# Pods are bound, told why they wait, and preempted.
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, delete]
- apiGroups: [""]
  resources: [pods/binding]
  verbs: [create]
- apiGroups: [""]
  resources: [pods/status]
  verbs: [patch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [nodes, replicationcontrollers, services]
  verbs: [list, watch]
- apiGroups: [apps]
  resources: [replicasets, statefulsets]
  verbs: [list, watch]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [list, watch]
# Claims are allocated and reserved, and made for extended resources.
- apiGroups: [resource.k8s.io]
  resources: [deviceclasses, devicetaintrules, resourceslices]
  verbs: [list, watch]
- apiGroups: [resource.k8s.io]
  resources: [resourceclaims]
  verbs: [get, list, watch, create, update, delete]
- apiGroups: [resource.k8s.io]
  resources: [resourceclaims/status]
  verbs: [update]
- apiGroups: [resource.k8s.io]
  resources: [resourceclaims/binding]
  verbs: [update]
# Pods whose volumes are bound go where these are.
- apiGroups: [""]
  resources: [persistentvolumeclaims, persistentvolumes]
  verbs: [list, watch]
- apiGroups: [storage.k8s.io]
  resources: [storageclasses]
  verbs: [list, watch]
{{- if include "moorage.isOn" (dict "root" . "gate" "GenericWorkload") }}
- apiGroups: [scheduling.k8s.io]
  resources: [podgroups]
  verbs: [list, watch]
- apiGroups: [scheduling.k8s.io]
  resources: [podgroups/status]
  verbs: [patch]
{{- end }}
{{- if include "moorage.isOn" (dict "root" . "gate" "CompositePodGroup") }}
- apiGroups: [scheduling.k8s.io]
  resources: [compositepodgroups]
  verbs: [list, watch]
- apiGroups: [scheduling.k8s.io]
  resources: [compositepodgroups/status]
  verbs: [patch]
{{- end }}
{{- end -}}

{{- define "moorage.controllersRules" -}}
{{ include "moorage.reviewRules" . }}
{{- if has "explainer-controller" .Values.controllers.names }}
{{ include "moorage.clusterReadingRules" . }}
- apiGroups: [""]
  resources: [events]
  verbs: [create, patch]
{{- else }}
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get]
- apiGroups: [resource.k8s.io]
  resources: [deviceclasses, devicetaintrules, resourceclaims, resourceslices]
  verbs: [list, watch]
{{- end }}
{{- if has "resourcepoolstatusrequest-controller" .Values.controllers.names }}
- apiGroups: [resource.k8s.io]
  resources: [resourcepoolstatusrequests]
  verbs: [list, watch, delete]
- apiGroups: [resource.k8s.io]
  resources: [resourcepoolstatusrequests/status]
  verbs: [update]
{{- end }}
{{- end -}}
{{- define "moorage.metricsRules" -}}
{{ include "moorage.reviewRules" . }}
{{ include "moorage.clusterReadingRules" . }}
{{- end -}}
{{- define "moorage.pageRules" -}}
{{ include "moorage.clusterReadingRules" . }}
# Groups of pods, where the cluster has them.
- apiGroups: [scheduling.k8s.io]
  resources: [compositepodgroups, podgroups, workloads]
  verbs: [list, watch]
# The events of what is selected.
- apiGroups: [""]
  resources: [events]
  verbs: [list]
# And what makes pods, as commands with --live read it.
- apiGroups: [""]
  resources: [replicationcontrollers, services]
  verbs: [list, watch]
- apiGroups: [apps]
  resources: [daemonsets, deployments, replicasets, statefulsets]
  verbs: [list, watch]
- apiGroups: [batch]
  resources: [jobs]
  verbs: [list, watch]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [list, watch]
{{- end -}}

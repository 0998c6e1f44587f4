{{/* The name of all objects, and the start of those of programs. */}}
{{- define "moorage.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The labels by which a program's pods are selected. Takes the root and the program. */}}
{{- define "moorage.selector" -}}
app.kubernetes.io/name: {{ default .root.Chart.Name .root.Values.nameOverride }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .program }}
{{- end -}}

{{/* The labels of a program's objects. */}}
{{- define "moorage.labels" -}}
{{ include "moorage.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{- define "moorage.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The options of feature gates. Takes the root and more gates. */}}
{{- define "moorage.gates" -}}
- --gates-preset={{ .root.Values.gatesPreset }}
{{- $gates := merge (dict) (.more | default dict) .root.Values.featureGates }}
{{- if $gates }}
- --feature-gates={{ range $index, $name := keys $gates | sortAlpha }}{{ if $index }},{{ end }}{{ $name }}={{ get $gates $name }}{{ end }}
{{- end }}
{{- end -}}

{{/* How a program is watched: its address, its certificate, its log. Takes the root and a port. */}}
{{- define "moorage.watching" -}}
- --metrics-bind-address=0.0.0.0:{{ .port }}
{{- if .root.Values.tls.secretName }}
- --tls-cert-file=/etc/moorage-tls/tls.crt
- --tls-private-key-file=/etc/moorage-tls/tls.key
{{- else }}
- --cert-dir=/var/run/moorage/certs
{{- end }}
- --verbosity={{ .root.Values.verbosity }}
{{- end -}}

{{/* The lease of a program. Takes the root and a name. */}}
{{- define "moorage.lease" -}}
- --leader-elect=true
- --leader-elect-resource-name={{ .name }}
- --leader-elect-resource-namespace={{ .root.Release.Namespace }}
{{- end -}}

{{/*
A Deployment. Takes root, program, values (of the program), args, port (0 if it listens on loopback
only), checksum of what it reads from a ConfigMap, configMap, and probe if it is no HTTPS one.
*/}}
{{- define "moorage.deployment" -}}
{{- $root := .root -}}
{{- $name := printf "%s-%s" (include "moorage.fullname" $root) .program -}}
{{- $hasCertificate := and .port (not $root.Values.tls.secretName) -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "moorage.labels" . | nindent 4 }}
spec:
  replicas: {{ .values.replicas | default 1 }}
  revisionHistoryLimit: 3
  selector:
    matchLabels:
      {{- include "moorage.selector" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "moorage.labels" . | nindent 8 }}
      {{- if or .checksum .annotations $root.Values.podAnnotations }}
      annotations:
        {{- with .checksum }}
        checksum/config: {{ . }}
        {{- end }}
        {{- with merge (dict) (.annotations | default dict) $root.Values.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- end }}
    spec:
      serviceAccountName: {{ $name }}
      automountServiceAccountToken: true
      enableServiceLinks: false
      {{- with $root.Values.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      {{- with $root.Values.image.pullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        fsGroup: 65532
        seccompProfile: {type: RuntimeDefault}
      containers:
      - name: {{ .program }}
        image: {{ include "moorage.image" $root | quote }}
        imagePullPolicy: {{ $root.Values.image.pullPolicy }}
        command:
        {{- toYaml .args | nindent 8 }}
        securityContext:
          allowPrivilegeEscalation: false
          readOnlyRootFilesystem: true
          capabilities: {drop: [ALL]}
        {{- if .port }}
        ports:
        - {name: https, containerPort: {{ .port }}}
        livenessProbe:
          httpGet: {path: /livez, port: {{ .port }}, scheme: HTTPS}
          initialDelaySeconds: 15
          periodSeconds: 10
          timeoutSeconds: 5
        readinessProbe:
          httpGet: {path: /readyz, port: {{ .port }}, scheme: HTTPS}
          periodSeconds: 10
          timeoutSeconds: 5
        {{- end }}
        {{- with .probe }}
        readinessProbe:
          {{- toYaml . | nindent 10 }}
        {{- end }}
        resources:
          {{- toYaml .values.resources | nindent 10 }}
        volumeMounts:
        - {name: tmp, mountPath: /tmp}
        {{- if $hasCertificate }}
        - {name: run, mountPath: /var/run/moorage}
        {{- end }}
        {{- if .configMap }}
        - {name: config, mountPath: /etc/moorage, readOnly: true}
        {{- end }}
        {{- if $root.Values.tls.secretName }}
        - {name: tls, mountPath: /etc/moorage-tls, readOnly: true}
        {{- end }}
      volumes:
      - name: tmp
        emptyDir: {sizeLimit: 16Mi}
      {{- if $hasCertificate }}
      - name: run
        emptyDir: {sizeLimit: 1Mi}
      {{- end }}
      {{- with .configMap }}
      - name: config
        configMap: {name: {{ . }}}
      {{- end }}
      {{- with $root.Values.tls.secretName }}
      - name: tls
        secret: {secretName: {{ . }}}
      {{- end }}
      {{- with $root.Values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $root.Values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      affinity:
      {{- if $root.Values.affinity }}
        {{- toYaml $root.Values.affinity | nindent 8 }}
      {{- else }}
        podAntiAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
          - weight: 100
            podAffinityTerm:
              topologyKey: kubernetes.io/hostname
              labelSelector:
                matchLabels:
                  {{- include "moorage.selector" . | nindent 18 }}
      {{- end }}
{{- end -}}

{{/*
The account of a program, with a ClusterRole of the given rules, and a Role for its lease. Takes
root, program, rules (text), and lease.
*/}}
{{- define "moorage.access" -}}
{{- $root := .root -}}
{{- $name := printf "%s-%s" (include "moorage.fullname" $root) .program -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "moorage.labels" . | nindent 4 }}
  {{- with $root.Values.serviceAccount.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
automountServiceAccountToken: false
{{- if $root.Values.rbac.create }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ $name }}
  labels:
    {{- include "moorage.labels" . | nindent 4 }}
rules:
{{ .rules }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $name }}
  labels:
    {{- include "moorage.labels" . | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $name }}
subjects:
- kind: ServiceAccount
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
{{- if .lease }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ $name }}-lease
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "moorage.labels" . | nindent 4 }}
rules:
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ .lease }}]
  verbs: [get, update]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ $name }}-lease
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "moorage.labels" . | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ $name }}-lease
subjects:
- kind: ServiceAccount
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
{{- end }}
{{- end }}
{{- end -}}

{{/* A budget for programs with several replicas, and who may connect. */}}
{{- define "moorage.protection" -}}
{{- $root := .root -}}
{{- $name := printf "%s-%s" (include "moorage.fullname" $root) .program -}}
{{- if and $root.Values.podDisruptionBudget.enabled (gt (int (.values.replicas | default 1)) 1) }}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "moorage.labels" . | nindent 4 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      {{- include "moorage.selector" . | nindent 6 }}
---
{{- end }}
{{- if $root.Values.networkPolicy.enabled }}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "moorage.labels" . | nindent 4 }}
spec:
  podSelector:
    matchLabels:
      {{- include "moorage.selector" . | nindent 6 }}
  policyTypes: [Ingress, Egress]
  {{- if .port }}
  ingress:
  - ports:
    - {protocol: TCP, port: {{ .port }}}
    {{- with $root.Values.networkPolicy.scrapeFrom }}
    from:
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- else }}
  ingress: []
  {{- end }}
  egress:
  - ports:
    {{- range $root.Values.networkPolicy.apiServerPorts }}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
  - ports:
    - {protocol: UDP, port: 53}
    - {protocol: TCP, port: 53}
{{- end }}
{{- end -}}

{{/* The profiles of the second scheduler, which leaves the pods of the cluster's own to it. */}}
{{- define "moorage.profiles" -}}
{{- $config := .Values.scheduler.config }}
{{- $profiles := $config.profiles | default (list (dict "schedulerName" .Values.scheduler.name)) }}
{{- if or $config.apiVersion $config.kind }}
{{- fail "scheduler.config: leave out apiVersion and kind, which the chart sets" }}
{{- end }}
{{- if not (kindIs "slice" $profiles) }}
{{- fail "scheduler.config.profiles: expected a list of profiles" }}
{{- end }}
{{- range $profiles }}
{{- if eq (.schedulerName | default "default-scheduler") "default-scheduler" }}
{{- fail "scheduler: default-scheduler is the cluster's own scheduler, and two must not place the same pods: give another scheduler.name, or a schedulerName in each of scheduler.config.profiles" }}
{{- end }}
{{- end }}
{{- toYaml $profiles }}
{{- end }}

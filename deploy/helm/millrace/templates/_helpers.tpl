{{- define "millrace.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-{{ .Chart.Name }}{{ end -}}
{{- end }}

{{- define "millrace.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "millrace.labels" -}}
{{ include "millrace.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{- define "millrace.secret" -}}
{{- .Values.secret.existing | default (include "millrace.name" .) -}}
{{- end }}

{{/* What was made up stays as it is: nodes of different keys do not know each other. With `given`, nothing is made up. */}}
{{- define "millrace.secretValue" -}}
{{- $there := lookup "v1" "Secret" .root.Release.Namespace (include "millrace.name" .root) | default dict -}}
{{- if .value }}{{ .value | b64enc }}{{ else }}{{ index ($there.data | default dict) .key | default (ternary "" (randAlphaNum 32 | b64enc) (.given | default false)) }}{{ end -}}
{{- end }}

{{- define "millrace.podMetadata" -}}
labels:
  {{- include "millrace.labels" . | nindent 2 }}
annotations:
  # A configuration that has changed is one for new pods.
  checksum/config: {{ .config | sha256sum }}
  {{- if .root.Values.metrics.annotations }}
  prometheus.io/scrape: "true"
  prometheus.io/port: "9101"
  prometheus.io/path: /metrics
  {{- end }}
  {{- with .node.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- define "millrace.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "millrace.containerSecurity" -}}
readOnlyRootFilesystem: true
allowPrivilegeEscalation: false
capabilities:
  drop: [ALL]
{{- end }}

{{/* Of all nodes; `env` and `ports` of each follow. */}}
{{- define "millrace.container" -}}
name: millrace
image: "{{ .root.Values.image.repository }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}"
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
args: [serve, --config, /etc/millrace/Server.xml, --state, /var/lib/millrace, --log-format, json]
securityContext:
  {{- include "millrace.containerSecurity" . | nindent 2 }}
resources:
  {{- toYaml .node.resources | nindent 2 }}
volumeMounts:
  - name: config
    mountPath: /etc/millrace
    readOnly: true
  - name: state
    mountPath: /var/lib/millrace
  - name: temporary
    mountPath: /tmp
  {{- if .root.Values.redis.caSecret.name }}
  - name: redis-ca
    mountPath: /etc/millrace-redis
    readOnly: true
  {{- end }}
startupProbe:
  httpGet: { path: /health, port: api }
  periodSeconds: 2
  failureThreshold: 30
# Not ready while it is drained: then it is sent nobody.
readinessProbe:
  httpGet: { path: /health, port: api }
  periodSeconds: 3
  timeoutSeconds: 3
  failureThreshold: 2
# Alive while it is drained, too.
livenessProbe:
  httpGet: { path: /metrics, port: metrics }
  periodSeconds: 20
  timeoutSeconds: 10
  failureThreshold: 3
{{- end }}

{{- define "millrace.environment" -}}
- name: MILLRACE_NAME
  valueFrom: { fieldRef: { fieldPath: metadata.name } }
- name: MILLRACE_ADDRESS
  value: {{ .Values.listen | quote }}
# Probes come from outside of the pod. Whoever else reaches it there needs the token.
- name: MILLRACE_API_ADDRESS
  value: {{ .Values.listen | quote }}
{{- include "millrace.redis" . | nindent 0 }}
- name: MILLRACE_REDIS_PASSWORD
  valueFrom: { secretKeyRef: { name: {{ include "millrace.secret" . }}, key: redis-password } }
- name: MILLRACE_SENTINEL_PASSWORD
  valueFrom: { secretKeyRef: { name: {{ include "millrace.secret" . }}, key: sentinel-password, optional: true } }
- name: MILLRACE_OVT_KEY
  valueFrom: { secretKeyRef: { name: {{ include "millrace.secret" . }}, key: ovt-key } }
- name: MILLRACE_ACCESS_TOKEN
  valueFrom: { secretKeyRef: { name: {{ include "millrace.secret" . }}, key: access-token } }
{{- end }}

{{- define "millrace.redis" -}}
{{- $redis := .Values.redis }}
{{- $given := without (list $redis.host $redis.url $redis.urlSecret.name) "" }}
{{- if and $redis.enabled $given }}{{ fail "redis.host, redis.url and redis.urlSecret are for a Redis of yours: set redis.enabled to false" }}{{ end }}
{{- if gt (len $given) 1 }}{{ fail "redis.host, redis.url and redis.urlSecret.name exclude each other" }}{{ end -}}
- name: MILLRACE_REDIS_URL
{{- if $redis.urlSecret.name }}
  valueFrom: { secretKeyRef: { name: {{ $redis.urlSecret.name }}, key: {{ $redis.urlSecret.key }} } }
{{- else if $redis.url }}
  value: {{ $redis.url | quote }}
{{- else if $redis.enabled }}
  value: redis://{{ include "millrace.name" . }}-redis:6379
{{- else }}
  value: redis://{{ required "redis.host, redis.url or redis.urlSecret.name names your Redis where redis.enabled is false" $redis.host }}
{{- end }}
{{- with $redis.username }}
- name: MILLRACE_REDIS_USERNAME
  value: {{ . | quote }}
{{- end }}
{{- with $redis.sentinelUsername }}
- name: MILLRACE_SENTINEL_USERNAME
  value: {{ . | quote }}
{{- end }}
{{- if $redis.caSecret.name }}
- name: MILLRACE_REDIS_CA
  value: /etc/millrace-redis/{{ $redis.caSecret.key }}
{{- end }}
{{- end }}

{{- define "millrace.redisVolume" -}}
{{- with .Values.redis.caSecret.name }}
- name: redis-ca
  secret:
    secretName: {{ . }}
{{- end }}
{{- end }}

{{- define "millrace.placement" -}}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "millrace.originConfig" -}}
{{- .Values.origin.config | default (.Files.Get "files/origin.xml") -}}
{{- end }}

{{- define "millrace.edgeConfig" -}}
{{- .Values.edge.config | default (.Files.Get "files/edge.xml") -}}
{{- end }}

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

{{/* What was made up stays as it is: nodes of different keys do not know each other. */}}
{{- define "millrace.secretValue" -}}
{{- $there := lookup "v1" "Secret" .root.Release.Namespace (include "millrace.name" .root) | default dict -}}
{{- if .value }}{{ .value | b64enc }}{{ else }}{{ index ($there.data | default dict) .key | default (randAlphaNum 32 | b64enc) }}{{ end -}}
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
- name: MILLRACE_REDIS
  value: {{ include "millrace.redis" . | quote }}
- name: MILLRACE_REDIS_PASSWORD
  valueFrom: { secretKeyRef: { name: {{ include "millrace.secret" . }}, key: redis-password } }
- name: MILLRACE_OVT_KEY
  valueFrom: { secretKeyRef: { name: {{ include "millrace.secret" . }}, key: ovt-key } }
- name: MILLRACE_ACCESS_TOKEN
  valueFrom: { secretKeyRef: { name: {{ include "millrace.secret" . }}, key: access-token } }
{{- end }}

{{- define "millrace.redis" -}}
{{- if .Values.redis.enabled }}{{ include "millrace.name" . }}-redis:6379{{ else }}{{ required "redis.host names your Redis where redis.enabled is false" .Values.redis.host }}{{ end -}}
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

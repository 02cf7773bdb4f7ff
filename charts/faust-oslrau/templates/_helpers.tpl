{{- define "oslrau.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "oslrau.metadata" -}}
name: {{ .Release.Name }}
labels:
  {{- include "oslrau.selector" . | nindent 2 }}
{{- end }}

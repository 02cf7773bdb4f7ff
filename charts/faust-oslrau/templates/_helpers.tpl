{{- define "oslrau.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "oslrau.metadata" -}}
name: {{ .Release.Name }}
labels:
  {{- include "oslrau.selector" . | nindent 2 }}
{{- end }}

{{- /* Names given twice would be refused by the cluster, or one of them would be dropped. */}}
{{- define "oslrau.refuse" -}}
{{- range .names }}
{{- if has . $.own }}
{{- fail (printf "%s: %s is set by the chart itself" $.value .) }}
{{- end }}
{{- end }}
{{- end }}

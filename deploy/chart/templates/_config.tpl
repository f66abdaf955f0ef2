{{/* The configuration that the mode needs. Values.config is merged over it. */}}
{{- define "statusd.config" -}}
apiVersion: statusd/v1alpha1
kind: ObserveConfiguration
hostRoot: /host
kubeletRoot: {{ .Values.host.kubeletRoot }}
manifests: {{ .Values.host.manifests }}
criEndpoint: unix:///host{{ .Values.host.runtimeDir }}/{{ .Values.host.runtimeSocket }}
kubelet:
  podsSocket: /host{{ .Values.host.kubeletRoot }}/pods-api/pods-api.sock
log: {format: json}
{{- if eq .Values.mode "guard" }}
guard:
  enabled: true
  restart: {{ .Values.guard.restart }}
  {{- if ne .Values.host.kubeletUnit "kubelet.service" }}
  unit: {{ .Values.host.kubeletUnit | quote }}
  {{- end }}
  {{- if ne .Values.host.runtimeUnit "containerd.service" }}
  runtimeUnit: {{ .Values.host.runtimeUnit | quote }}
  {{- end }}
  {{- if ne .Release.Namespace "statusd" }}
  semaphore: {{ .Release.Namespace }}
  {{- end }}
outputs: {events: true, conditions: true}
{{- else }}
outputs: {{ toJson .Values.outputs }}
{{- end }}
{{- if eq .Values.mode "repair" }}
repair: {{ toJson .Values.repair }}
{{- else }}
repair: {kinds: []}
{{- end }}
# The image has no journalctl, and the container no /dev/kmsg: no log of the machine is read here. statusd-observe.service reads them.
{{- end }}

{{- /* What this chart gives to the templates that all charts share. */ -}}

{{- define "chart.name" -}}gardener-resource-manager{{- end -}}

{{- define "chart.configFolder" -}}/etc/gardener-resource-manager-config{{- end -}}

{{- define "chart.certificateFolder" -}}/etc/gardener-resource-manager-tls{{- end -}}

{{- define "chart.serverPortName" -}}server{{- end -}}

{{- define "chart.selectorLabels" -}}
app: {{ include "espalier.name" . }}
{{- end -}}

{{- /* Its own webhooks must not keep its Pods from starting. */ -}}
{{- define "chart.podLabels" -}}
projected-token-mount.resources.gardener.cloud/skip: "true"
system-components-config.resources.gardener.cloud/skip: "true"
{{- end -}}

{{- define "chart.volumeMounts" }}{{ end -}}

{{- define "chart.volumes" }}{{ end -}}

{{- define "chart.webhookConfigurationName" -}}
{{- include "espalier.name" .root }}{{ if .shoot }}-shoot{{ end -}}
{{- end -}}

{{- /* Whether the installation wants the webhooks of a feature beside its switch in the configuration: true or nothing. */ -}}
{{- define "chart.serves" -}}true{{- end -}}

{{- /* What this chart gives to the templates that all charts share. */ -}}

{{- define "chart.name" -}}gardener-admission-controller{{- end -}}

{{- define "chart.configFolder" -}}/etc/gardener-admission-controller/config{{- end -}}

{{- define "chart.certificateFolder" -}}/etc/gardener-admission-controller/srv{{- end -}}

{{- define "chart.serverPortName" -}}https{{- end -}}

{{- define "chart.selectorLabels" -}}
app: gardener
role: {{ .Values.namePrefix }}admission-controller
{{- end -}}

{{- /* What decides about other Pods must not wait for anybody who changes them. */ -}}
{{- define "chart.podLabels" -}}
projected-token-mount.resources.gardener.cloud/skip: "true"
{{- end -}}

{{- define "chart.volumeMounts" }}{{ end -}}

{{- define "chart.volumes" }}{{ end -}}

{{- define "chart.webhookConfigurationName" -}}
{{- include "espalier.name" .root -}}
{{- end -}}

{{- /* Whether the installation wants the webhooks of a feature beside its switch in the configuration: true or nothing. */ -}}
{{- define "chart.serves" -}}
{{- if or .root.Values.global.admission.seedRestriction.enabled (not (has .feature (list "seedrestriction" "shootrestriction"))) }}true{{ end -}}
{{- end -}}

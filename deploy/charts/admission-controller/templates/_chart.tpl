{{- /* What this chart gives to the templates that all charts share. */ -}}

{{- define "chart.name" -}}gardener-admission-controller{{- end -}}

{{- define "chart.configFolder" -}}/etc/gardener-admission-controller/config{{- end -}}

{{- define "chart.certificateFolder" -}}/etc/gardener-admission-controller/srv{{- end -}}

{{- define "chart.serverPortName" -}}https{{- end -}}

{{- define "chart.selectorLabels" -}}
app: gardener
role: {{ .Values.namePrefix }}{{ .Values.nameOverride | default "admission-controller" }}
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
{{- if or (include "chart.restricts" .root) (not (has .feature (list "seedrestriction" "shootrestriction"))) }}true{{ end -}}
{{- end -}}

{{- /* Whether the restrictions are registered: true or nothing. Authorizers judge no names of created objects, so that they do not go without. */ -}}
{{- define "chart.restricts" -}}
{{- $authorizes := .Values.global.rbac.seedAuthorizer.enabled -}}
{{- $restricts := .Values.global.admission.seedRestriction.enabled -}}
{{- if not (kindIs "bool" $restricts) }}{{ $restricts = $authorizes }}{{ end -}}
{{- if and $authorizes (not $restricts) }}{{ fail "global.admission.seedRestriction.enabled: false while global.rbac.seedAuthorizer.enabled is true: nobody would judge which CertificateSigningRequests, bootstrap tokens and ClusterRoleBindings gardenlets create; leave it empty or set it to true, or set both to false" }}{{ end -}}
{{- if $restricts }}true{{ end -}}
{{- end -}}

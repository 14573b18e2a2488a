{{- /* What this chart gives to the templates that all charts share. */ -}}

{{- define "chart.name" -}}node-agent-authorizer{{- end -}}

{{- define "chart.configFolder" -}}/etc/node-agent-authorizer/config{{- end -}}

{{- define "chart.certificateFolder" -}}/etc/node-agent-authorizer/tls{{- end -}}

{{- define "chart.serverPortName" -}}server{{- end -}}

{{- define "chart.selectorLabels" -}}
app: {{ include "espalier.name" . }}
{{- end -}}

{{- /* What decides about other Pods must not wait for anybody who changes them. */ -}}
{{- define "chart.podLabels" -}}
projected-token-mount.resources.gardener.cloud/skip: "true"
{{- end -}}

{{- define "chart.volumeMounts" -}}
{{- with get .config "shootsDirectory" -}}
{{- if not (isAbs .) }}{{ fail (printf "config.shootsDirectory: %s is no absolute path" .) }}{{ end -}}
- name: shoots
  mountPath: {{ . }}
  readOnly: true
{{- end -}}
{{- end -}}

{{- define "chart.volumes" -}}
{{- if get .config "shootsDirectory" -}}
- name: shoots
  secret:
    secretName: {{ .root.Values.shoots.secretName | default (printf "%s-shoots" (include "espalier.name" .root)) }}
    defaultMode: 0640
{{- end -}}
{{- end -}}

{{- define "chart.webhookConfigurationName" -}}
{{- include "espalier.name" .root -}}
{{- end -}}

{{- /* Whether the installation wants the webhooks of a feature beside its switch in the configuration: true or nothing. */ -}}
{{- define "chart.serves" -}}true{{- end -}}

{{- /* Name of the objects: that of the component, with the prefix of the installation. */ -}}
{{- define "espalier.name" -}}
{{- printf "%s%s" .Values.namePrefix (.Values.nameOverride | default (include "chart.name" .)) -}}
{{- end -}}

{{- define "espalier.serviceAccountName" -}}
{{- .Values.serviceAccount.name | default (include "espalier.name" .) -}}
{{- end -}}

{{- define "espalier.tlsSecretName" -}}
{{- .Values.tls.secretName | default (printf "%s-tls" (include "espalier.name" .)) -}}
{{- end -}}

{{- /* Whether the Pods serve anything with a certificate: true or nothing. Only resource-manager can do without. Takes context. */ -}}
{{- define "espalier.serves" -}}
{{- $config := .context.config -}}
{{- $needed := or (ne .context.facts.executable "resource-manager") (eq (include "espalier.get" (dict "in" $config "path" "debugging.authentication.enabled")) "true") -}}
{{- range .context.facts.features -}}
{{- if hasPrefix "webhooks." .switch }}{{ $needed = or $needed (eq (include "espalier.get" (dict "in" $config "path" .switch)) "true") }}{{ end -}}
{{- end -}}
{{- if $needed }}true{{ end -}}
{{- end -}}

{{- /* Whether this release makes CA and certificate: true or nothing. Takes root and context. */ -}}
{{- define "espalier.makesCertificate" -}}
{{- $tls := .root.Values.tls -}}
{{- if and $tls.selfSigned .root.Values.install.runtime (include "espalier.serves" .) -}}
{{- if or $tls.certificate $tls.certManager.enabled }}{{ fail "tls.selfSigned: set one of it, tls.certificate and tls.certManager.enabled only" }}{{ end -}}
true
{{- end -}}
{{- end -}}

{{- /* A pair of PEM texts, base64-encoded, that the cluster has in a Secret and that need not be renewed yet: cert, key and renewAfter, as JSON; else {}.
Takes root and name. */ -}}
{{- define "espalier.pair" -}}
{{- $secret := lookup "v1" "Secret" .root.Release.Namespace .name | default dict -}}
{{- $data := get $secret "data" | default dict -}}
{{- $due := dig "metadata" "annotations" "espalier-project/renew-after" "" $secret -}}
{{- if and (get $data "tls.crt") (get $data "tls.key") $due -}}
{{- toJson (dict "cert" (get $data "tls.crt") "key" (get $data "tls.key") "renewAfter" $due "due" (lt $due (now | date "2006-01-02"))) -}}
{{- else -}}
{}
{{- end -}}
{{- end -}}

{{- /* CA and certificate of tls.selfSigned, as JSON: ca and certificate, each with cert, key and renewAfter, and caBundle. They are made once in a
rendering. An upgrade keeps those of the cluster until a third of the time of the certificate, or two thirds of that of the CA, is over; a CA that
is replaced stays in the bundle until the next upgrade. Takes root. */ -}}
{{- define "espalier.selfSigned" -}}
{{- $root := .root -}}
{{- if not (hasKey $root.Values.tls "made") -}}
{{- $name := include "espalier.name" $root -}}
{{- $ca := include "espalier.pair" (dict "root" $root "name" (printf "%s-ca" $name)) | fromJson -}}
{{- $pair := include "espalier.pair" (dict "root" $root "name" (include "espalier.tlsSecretName" $root)) | fromJson -}}
{{- $bundle := get $ca "cert" | default "" | b64dec -}}
{{- $authority := dict -}}
{{- if and $ca (not $ca.due) -}}
{{- $authority = buildCustomCert $ca.cert $ca.key -}}
{{- else -}}
{{- $authority = genCA (printf "%s-ca" $name) 3650 -}}
{{- $bundle = printf "%s%s" $authority.Cert $bundle -}}
{{- $ca = dict "cert" (b64enc $authority.Cert) "key" (b64enc $authority.Key) "renewAfter" (now | dateModify "58400h" | date "2006-01-02") -}}
{{- $pair = dict -}}
{{- end -}}
{{- if or (not $pair) $pair.due -}}
{{- $names := list $name (printf "%s.%s" $name $root.Release.Namespace) (printf "%s.%s.svc" $name $root.Release.Namespace) (printf "%s.%s.svc.cluster.local" $name $root.Release.Namespace) -}}
{{- $certificate := genSignedCert $name nil $names 1095 $authority -}}
{{- $pair = dict "cert" (b64enc $certificate.Cert) "key" (b64enc $certificate.Key) "renewAfter" (now | dateModify "8760h" | date "2006-01-02") -}}
{{- end -}}
{{- $_ := set $root.Values.tls "made" (dict "ca" $ca "certificate" $pair "caBundle" $bundle) -}}
{{- end -}}
{{- toJson $root.Values.tls.made -}}
{{- end -}}

{{- /* The CAs by which API servers know the certificate, as PEM; empty if they are not known here. Takes root and context. */ -}}
{{- define "espalier.caBundle" -}}
{{- if .root.Values.webhookConfigurations.caBundle -}}
{{- .root.Values.webhookConfigurations.caBundle -}}
{{- else if include "espalier.makesCertificate" . -}}
{{- (include "espalier.selfSigned" . | fromJson).caBundle -}}
{{- end -}}
{{- end -}}

{{- define "espalier.image" -}}
{{- $tag := .Values.image.tag | default .Chart.AppVersion -}}
{{- printf "%s%s%s" .Values.image.repository (hasPrefix "sha256:" $tag | ternary "@" ":") $tag -}}
{{- end -}}

{{- /* Labels of all objects. Those that select Pods are "chart.selectorLabels". */ -}}
{{- define "espalier.labels" -}}
{{- $labels := dict "app.kubernetes.io/name" .Chart.Name "app.kubernetes.io/instance" .Release.Name "app.kubernetes.io/managed-by" .Release.Service -}}
{{- $_ := set $labels "app.kubernetes.io/version" (.Chart.AppVersion | replace "+" "_") -}}
{{- $_ := set $labels "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_") -}}
{{- merge (include "chart.selectorLabels" . | fromYaml) (deepCopy (.Values.labels | default dict)) (deepCopy (.Values.commonLabels | default dict)) $labels | toYaml -}}
{{- end -}}

{{- /* Labels of Pods: of the same key, those that select them count first, then those of the values. */ -}}
{{- define "espalier.podLabels" -}}
{{- merge (include "chart.selectorLabels" . | fromYaml) (deepCopy (.Values.podLabels | default dict)) (deepCopy (.Values.commonLabels | default dict)) (deepCopy .Values.networkPolicies.podLabels) (include "chart.podLabels" . | fromYaml) | toYaml -}}
{{- end -}}

{{- /* What is at a path of a section, as JSON: "" if nothing is. Takes in and path. */ -}}
{{- define "espalier.get" -}}
{{- $at := .in -}}
{{- range splitList "." .path -}}
{{- if kindIs "map" $at }}{{ $at = get $at . }}{{ else }}{{ $at = "" }}{{ end -}}
{{- end -}}
{{- toJson $at -}}
{{- end -}}

{{- /* The configuration of the executable: that of the values, with older keys under their present names, and with what this chart decides:
where certificate and kubeconfigs are mounted, the ports that the Service leads to, and the Lease of the election. */ -}}
{{- define "espalier.config" -}}
{{- $facts := .Files.Get "files/facts.yaml" | fromYaml -}}
{{- range $facts.needed -}}
{{- if eq (include "espalier.get" (dict "in" $.Values "path" .)) `""` }}{{ fail (printf "%s: the chart needs a value" .) }}{{ end -}}
{{- end -}}
{{- $config := deepCopy .Values.config -}}
{{- range $alias := $facts.aliases -}}
{{- $keys := splitList "." .old -}}
{{- $section := $config -}}
{{- range initial $keys }}{{ if kindIs "map" $section }}{{ $section = get $section . }}{{ end }}{{ end -}}
{{- if and (kindIs "map" $section) (hasKey $section (last $keys)) -}}
{{- $value := get $section (last $keys) -}}
{{- $_ := unset $section (last $keys) -}}
{{- range .emptyIsUnset }}{{ if eq (toJson (get $value .)) `""` }}{{ $_ := unset $value . }}{{ end }}{{ end -}}
{{- range reverse (splitList "." .new) }}{{ $value = dict . $value }}{{ end -}}
{{- $newer := merge (deepCopy $config) (deepCopy $value) -}}
{{- if ne (toJson $newer) (toJson (merge (deepCopy $value) (deepCopy $config))) }}{{ fail (printf "config.%s differs from config.%s: set one of the two only" .old .new) }}{{ end -}}
{{- $config = $newer -}}
{{- end -}}
{{- end -}}
{{- $name := include "espalier.name" . -}}
{{- $config = merge $config $facts.config (dict "server" (dict "webhooks" (dict "tls" (dict "serverCertDir" (include "chart.certificateFolder" .))))) -}}
{{- if not (isAbs $config.server.webhooks.tls.serverCertDir) }}{{ fail (printf "config.server.webhooks.tls.serverCertDir: %s is no absolute path" $config.server.webhooks.tls.serverCertDir) }}{{ end -}}
{{- $ports := dict "443" "the Service for webhooks" -}}
{{- range list "webhooks" "healthProbes" "metrics" -}}
{{- $port := printf "%v" (get (get $config.server .) "port") -}}
{{- if and (hasKey $ports $port) (or (ne $port "443") (ne . "webhooks")) }}{{ fail (printf "config.server.%s.port: %s is the port of %s, too" . $port (get $ports $port)) }}{{ end -}}
{{- $_ := set $ports $port (printf "config.server.%s" .) -}}
{{- end -}}
{{- if $facts.elects }}{{ $config = merge $config (dict "leaderElection" (dict "resourceName" $name "resourceNamespace" .Release.Namespace)) }}{{ end -}}
{{- if .Values.tls.clientCA }}{{ $config = merge $config (dict "server" (dict "webhooks" (dict "tls" (dict "clientCAFile" (printf "%s/client-ca.crt" (include "chart.configFolder" .)))))) }}{{ end -}}
{{- range $facts.connections -}}
{{- $given := get $.Values.kubeconfigs .cluster | default dict -}}
{{- if or (get $given "secretName") (get $given "content") -}}
{{- $config = merge $config (dict .path (dict "kubeconfig" (printf "/etc/%s/kubeconfigs/%s/kubeconfig" (include "chart.name" $) .cluster))) -}}
{{- end -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{- /* The sections of below with those of above on them, as the executable lays its configuration over its defaults; JSON. Unlike merge it takes
false and 0 for values. Takes below and above. */ -}}
{{- define "espalier.overlay" -}}
{{- $all := deepCopy .below -}}
{{- range $key, $value := .above -}}
{{- $lower := get $all $key -}}
{{- if and (kindIs "map" $value) (kindIs "map" $lower) -}}
{{- $_ := set $all $key (include "espalier.overlay" (dict "below" $lower "above" $value) | fromJson) -}}
{{- else if not (kindIs "invalid" $value) -}}
{{- $_ := set $all $key $value -}}
{{- end -}}
{{- end -}}
{{- toJson $all -}}
{{- end -}}

{{- /* The defaults file of the values, without what the chart decides in the configuration above it. */ -}}
{{- define "espalier.defaults" -}}
{{- $facts := .Files.Get "files/facts.yaml" | fromYaml -}}
{{- $decided := list "apiVersion" "kind" "server.webhooks.port" "server.healthProbes.port" "server.metrics.port" "server.webhooks.tls.serverCertDir" -}}
{{- if $facts.elects }}{{ $decided = concat $decided (list "leaderElection.resourceName" "leaderElection.resourceNamespace") }}{{ end -}}
{{- range $facts.connections }}{{ $decided = append $decided (printf "%s.kubeconfig" .path) }}{{ end -}}
{{- range $facts.aliases }}{{ $decided = append $decided .old }}{{ end -}}
{{- range $decided -}}
{{- if ne (include "espalier.get" (dict "in" $.Values.defaults "path" .)) `""` }}{{ fail (printf "defaults.%s: set it in config" .) }}{{ end -}}
{{- end -}}
{{- toYaml .Values.defaults -}}
{{- end -}}

{{- /* The profile: a defaults file of the values takes the place of the image's, which has one. */ -}}
{{- define "espalier.profile" -}}
{{- .Values.profile | default (empty .Values.defaults | ternary "" "gardener") -}}
{{- end -}}

{{- /* What templates need to know of the configuration, as JSON: config itself, with the defaults below it; connections with kubeconfig, namespaces, whether the cluster is
this one, and whether what belongs into it is installed by this release; folders with kubeconfigs; inCluster, whether this cluster is one of
them; and installed and here about webhooks. */ -}}
{{- define "espalier.context" -}}
{{- $facts := .Files.Get "files/facts.yaml" | fromYaml -}}
{{- $config := include "espalier.config" . | fromYaml -}}
{{- with .Values.defaults }}{{ $config = include "espalier.overlay" (dict "below" (include "espalier.defaults" $ | fromYaml) "above" $config) | fromJson }}{{ end -}}
{{- $connections := list -}}
{{- $folders := dict -}}
{{- $hooks := dict -}}
{{- $inCluster := false -}}
{{- range $facts.connections -}}
{{- $section := get $config .path | default dict -}}
{{- $path := get $section "kubeconfig" -}}
{{- $namespaces := get $section "namespaces" | default list -}}
{{- with get $section "namespace" }}{{ $namespaces = append $namespaces . | uniq }}{{ end -}}
{{- $here := and (empty $path) (not (and .unless (get $config .unless))) -}}
{{- $inCluster = or $inCluster $here -}}
{{- $installed := ternary $.Values.install.runtime $.Values.install.remote $here -}}
{{- $connections = append $connections (dict "cluster" .cluster "kubeconfig" $path "namespaces" $namespaces "here" $here "installed" $installed) -}}
{{- if eq .cluster $facts.webhooksOf }}{{ $hooks = dict "installed" $installed "here" $here }}{{ end -}}
{{- if $path -}}
{{- if not (isAbs $path) }}{{ fail (printf "config.%s.kubeconfig: %s is no absolute path" .path $path) }}{{ end -}}
{{- if or (eq (dir $path) "/") (hasSuffix "/" $path) }}{{ fail (printf "config.%s.kubeconfig: %s is no file in a folder that can be mounted" .path $path) }}{{ end -}}
{{- $given := get $.Values.kubeconfigs .cluster | default dict -}}
{{- $secret := get $given "secretName" | default (printf "%s-%s-kubeconfig" (include "espalier.name" $) .cluster) -}}
{{- $sources := get $folders (dir $path) | default list -}}
{{- $sources = append $sources (dict "secret" (dict "name" $secret "items" (list (dict "key" (get $given "key" | default "kubeconfig") "path" (base $path))))) -}}
{{- with get $given "tokenSecretName" }}{{ $sources = append $sources (dict "secret" (dict "name" . "items" (list (dict "key" (get $given "tokenKey" | default "token") "path" "token")))) }}{{ end -}}
{{- $sources = uniq $sources -}}
{{- $files := list -}}
{{- range $sources }}{{ $files = append $files (first .secret.items).path }}{{ end -}}
{{- if ne (len $files) (len (uniq $files)) }}{{ fail (printf "config.%s.kubeconfig: two Secrets have %s: the clusters need either another file each or one secretName" .path $path) }}{{ end -}}
{{- $_ := set $folders (dir $path) $sources -}}
{{- end -}}
{{- end -}}
{{- toJson (dict "facts" $facts "config" $config "connections" $connections "folders" $folders "inCluster" $inCluster "webhooks" $hooks) -}}
{{- end -}}

{{- /* The volumes of the Pods. Takes root and context. */ -}}
{{- define "espalier.volumes" -}}
- name: config
  configMap:
    name: {{ include "espalier.name" .root }}
- name: tls
  secret:
    secretName: {{ include "espalier.tlsSecretName" .root }}
    defaultMode: 0640
    {{- if not (include "espalier.serves" .) }}
    optional: true # Nothing is served with it.
    {{- end }}
{{- if .context.inCluster }}
- name: kube-api-access
  projected:
    defaultMode: 0640
    sources:
    - serviceAccountToken:
        path: token
        expirationSeconds: 43200
    - configMap:
        name: kube-root-ca.crt
        items:
        - key: ca.crt
          path: ca.crt
    - downwardAPI:
        items:
        - path: namespace
          fieldRef:
            fieldPath: metadata.namespace
{{- end }}
{{- range $i, $folder := keys .context.folders | sortAlpha }}
- name: kubeconfig-{{ $i }}
  projected:
    defaultMode: 0640
    sources:
      {{- toYaml (get $.context.folders $folder) | nindent 6 }}
{{- end }}
{{- with include "chart.volumes" (dict "root" .root "config" .context.config) }}
{{ . }}
{{- end }}
{{- end -}}

{{- /* Where they are mounted. Takes root and context. */ -}}
{{- define "espalier.volumeMounts" -}}
{{- $mounts := list (dict "name" "config" "mountPath" (include "chart.configFolder" .root)) (dict "name" "tls" "mountPath" .context.config.server.webhooks.tls.serverCertDir) -}}
{{- if .context.inCluster }}{{ $mounts = append $mounts (dict "name" "kube-api-access" "mountPath" "/var/run/secrets/kubernetes.io/serviceaccount") }}{{ end -}}
{{- range $i, $folder := keys .context.folders | sortAlpha }}{{ $mounts = append $mounts (dict "name" (printf "kubeconfig-%d" $i) "mountPath" $folder) }}{{ end -}}
{{- $mounts = concat $mounts (include "chart.volumeMounts" (dict "root" .root "config" .context.config) | fromYamlArray) -}}
{{- $folders := dict -}}
{{- range $mounts -}}
{{- $folder := clean .mountPath -}}
{{- if hasKey $folders $folder }}{{ fail (printf "the configuration wants %s and %s in one folder: %s" (get $folders $folder) .name $folder) }}{{ end -}}
{{- $_ := set $folders $folder .name -}}
{{- $_ := set . "readOnly" true -}}
{{- end -}}
{{- toYaml $mounts -}}
{{- end -}}

{{- /* Annotations that name the ConfigMaps and Secrets in use, so that the garbage collector leaves those alone that have its label. Takes
volumes and pullSecrets. */ -}}
{{- define "espalier.references" -}}
{{- $references := dict -}}
{{- $prefix := "reference.resources.gardener.cloud" -}}
{{- range .volumes -}}
{{- range prepend (dig "projected" "sources" list .) . -}}
{{- with dig "configMap" "name" "" . }}{{ $_ := set $references (printf "%s/configmap-%s" $prefix (sha256sum . | trunc 8)) . }}{{ end -}}
{{- with dig "secret" "secretName" (dig "secret" "name" "" .) . }}{{ $_ := set $references (printf "%s/secret-%s" $prefix (sha256sum . | trunc 8)) . }}{{ end -}}
{{- end -}}
{{- end -}}
{{- range .pullSecrets }}{{ $_ := set $references (printf "%s/secret-%s" $prefix (sha256sum .name | trunc 8)) .name }}{{ end -}}
{{- toYaml $references -}}
{{- end -}}

{{- /* Whether conditions on the configuration hold: true or nothing. Takes config and when. */ -}}
{{- define "espalier.holds" -}}
{{- $all := true -}}
{{- range .when -}}
{{- $value := include "espalier.get" (dict "in" $.config "path" .path) -}}
{{- if eq $value `""` }}{{ $value = toJson .default }}{{ end -}}
{{- $holds := not (has $value (list `""` "null" "false" "[]")) -}}
{{- if or .is .isNot -}}
{{- $holds = empty .is -}}
{{- range .is }}{{ if eq (toJson .) $value }}{{ $holds = true }}{{ end }}{{ end -}}
{{- range .isNot }}{{ if eq (toJson .) $value }}{{ $holds = false }}{{ end }}{{ end -}}
{{- end -}}
{{- $all = and $all $holds -}}
{{- end -}}
{{- if $all }}true{{ end -}}
{{- end -}}

{{- /* The elements of a list of the configuration that have a field, as JSON. Takes in and each. */ -}}
{{- define "espalier.list" -}}
{{- $kept := list -}}
{{- $each := .each -}}
{{- $all := include "espalier.get" (dict "in" .in "path" .each.list) -}}
{{- if hasPrefix "[" $all -}}
{{- range fromJsonArray $all }}{{ if or (not $each.has) (hasKey . $each.has) }}{{ $kept = append $kept . }}{{ end }}{{ end -}}
{{- end -}}
{{- toJson $kept -}}
{{- end -}}

{{- /* A text of the facts: $(path) stands for what the configuration has there. Takes config and text. */ -}}
{{- define "espalier.resolve" -}}
{{- if hasPrefix "$(" .text -}}
{{- include "espalier.get" (dict "in" .config "path" (.text | trimPrefix "$(" | trimSuffix ")")) | printf "[%s]" | fromJsonArray | first -}}
{{- else -}}
{{- .text -}}
{{- end -}}
{{- end -}}

{{- /* The rights of the enabled features in a cluster, as JSON: namespace (empty for all of the cluster) to rules, each group, resource and set
of names once. Takes root, context and connection. */ -}}
{{- define "espalier.rights" -}}
{{- $context := .context -}}
{{- $connection := .connection -}}
{{- $managed := get .root.Values "managedObjects" | default list -}}
{{- $scopes := dict -}}
{{- range $feature := $context.facts.features -}}
{{- if or (not .switch) (eq (include "espalier.get" (dict "in" $context.config "path" .switch)) "true") -}}
{{- range $right := .rights -}}
{{- if and (eq .cluster $connection.cluster) (include "espalier.holds" (dict "config" $context.config "when" .when)) -}}
{{- $namespaces := list "" -}}
{{- if .namespace -}}
{{- $namespaces = list (include "espalier.resolve" (dict "config" $context.config "text" .namespace)) -}}
{{- else if and (not .clusterScoped) $connection.namespaces -}}
{{- $namespaces = $connection.namespaces -}}
{{- end -}}
{{- $rules := .rules -}}
{{- if eq (toJson (first .rules).resources) `["*"]` }}{{ $rules = $managed }}{{ end -}}
{{- if .each -}}
{{- $rules = list -}}
{{- range $element := include "espalier.list" (dict "in" $context.config "each" .each) | fromJsonArray -}}
{{- range $right.rules }}{{ $rules = append $rules (dict "apiGroups" (get $element "apiGroups") "resources" (get $element "resources") "verbs" .verbs) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- range $namespace := $namespaces -}}
{{- $scope := get $scopes $namespace | default dict -}}
{{- range $rule := $rules -}}
{{- $names := list -}}
{{- range get . "resourceNames" | default list }}{{ $names = append $names (include "espalier.resolve" (dict "config" $context.config "text" .)) }}{{ end -}}
{{- range $group := .apiGroups -}}
{{- range $resource := $rule.resources -}}
{{- $key := printf "%s/%s/%s" $group $resource (join "," $names) -}}
{{- $verbs := concat (get (get $scope $key | default dict) "verbs" | default list) $rule.verbs -}}
{{- $ordered := list -}}
{{- range list "*" "get" "list" "watch" "create" "update" "patch" "delete" "deletecollection" }}{{ if has . $verbs }}{{ $ordered = append $ordered . }}{{ end }}{{ end -}}
{{- range $verbs }}{{ if not (has . $ordered) }}{{ $ordered = append $ordered . }}{{ end }}{{ end -}}
{{- if has "*" $ordered }}{{ $ordered = list "*" }}{{ end -}}
{{- $joined := dict "apiGroups" (list $group) "resources" (list $resource) "verbs" $ordered -}}
{{- if $names }}{{ $_ := set $joined "resourceNames" $names }}{{ end -}}
{{- $_ := set $scope $key $joined -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if $scope }}{{ $_ := set $scopes $namespace $scope }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $everything := get (get $scopes "" | default dict) "*/*/" | default dict -}}
{{- if has "*" (get $everything "verbs" | default list) }}{{ $scopes = dict "" (dict "*/*/" $everything) }}{{ end -}}
{{- toJson $scopes -}}
{{- end -}}

{{- /* The entries of webhook configurations of the enabled features, as JSON: Mutating and Validating. Takes root and context. */ -}}
{{- define "espalier.webhooks" -}}
{{- $root := .root -}}
{{- $context := .context -}}
{{- $installation := get .root.Values "installation" | default dict -}}
{{- $shoot := or (get $installation "shoot" | default false) (not $context.webhooks.here) -}}
{{- $mode := printf "%s%s" (ternary "shoot" "runtime" $shoot) (get $installation "garden" | default false | ternary "-garden" "") -}}
{{- $base := get $installation "namespaceSelector" | default (get ($context.facts.base | default dict) (ternary "shoot" "runtime" $shoot)) | default dict -}}
{{- $entries := dict "Mutating" list "Validating" list -}}
{{- range $feature := $context.facts.features -}}
{{- if and (or (not .switch) (eq (include "espalier.get" (dict "in" $context.config "path" .switch)) "true")) (include "chart.serves" (dict "root" $root "config" $context.config "feature" .name)) -}}
{{- range .webhooks -}}
{{- $entry := toJson .entry | replace "$(prefix)" $root.Values.namePrefix | fromJson -}}
{{- $there := and (or (not .modes) (has $mode .modes)) (include "espalier.holds" (dict "config" $context.config "when" .when)) -}}
{{- if .each -}}
{{- $rules := list -}}
{{- range $element := include "espalier.list" (dict "in" $context.config "each" .each) | fromJsonArray -}}
{{- range $entry.rules }}{{ $rules = append $rules (merge (pick $element "apiGroups" "apiVersions" "resources") .) }}{{ end -}}
{{- end -}}
{{- $_ := set $entry "rules" $rules -}}
{{- $there = and $there $rules -}}
{{- end -}}
{{- if $there -}}
{{- $selector := get $entry "namespaceSelector" | default dict -}}
{{- $expressions := list -}}
{{- range get $selector "matchExpressions" | default list -}}
{{- if eq .key "$(base)" -}}
{{- $expressions = concat $expressions (get $base "matchExpressions" | default list) -}}
{{- $_ := set $selector "matchLabels" (merge (get $selector "matchLabels" | default dict) (get $base "matchLabels" | default dict)) -}}
{{- else -}}
{{- $expressions = append $expressions . -}}
{{- end -}}
{{- end -}}
{{- $_ := set $selector "matchExpressions" $expressions -}}
{{- range list "matchLabels" "matchExpressions" }}{{ if empty (get $selector .) }}{{ $_ := unset $selector . }}{{ end }}{{ end -}}
{{- $_ := set $entry "namespaceSelector" $selector -}}
{{- $reach := dict -}}
{{- if or $root.Values.webhookConfigurations.url (not $context.webhooks.here) -}}
{{- $url := $root.Values.webhookConfigurations.url | default (printf "https://%s.%s" (include "espalier.name" $root) $root.Release.Namespace) -}}
{{- $_ := set $reach "url" (printf "%s%s" (trimSuffix "/" $url) .path) -}}
{{- else -}}
{{- $_ := set $reach "service" (dict "namespace" $root.Release.Namespace "name" (include "espalier.name" $root) "path" .path "port" 443) -}}
{{- end -}}
{{- with include "espalier.caBundle" (dict "root" $root "context" $context) }}{{ $_ := set $reach "caBundle" (b64enc .) }}{{ end -}}
{{- $_ := set $entry "clientConfig" $reach -}}
{{- $_ := set $entries .kind (append (get $entries .kind) $entry) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson (dict "entries" $entries "shoot" $shoot) -}}
{{- end -}}

{{- $rows := slice -}}
{{- range site.Pages -}}
{{- if and .File (not (hasPrefix .File.Path "docs/internals/")) -}}
{{- $headings := slice -}}
{{- range findRE `(?s)<h[23] id="[^"]*">.*? <a class="anchor"` .Content -}}
{{- $id := replaceRE `(?s)^<h[23] id="([^"]*)".*$` "$1" . -}}
{{- $text := replaceRE `(?s)^<h[23][^>]*>(.*?) <a class="anchor"$` "$1" . | plainify | htmlUnescape -}}
{{- $headings = $headings | append (dict "id" $id "text" $text) -}}
{{- end -}}
{{- $rows = $rows | append (dict "url" (strings.TrimPrefix "/" .RelPermalink) "title" (partial "title.html" .) "headings" $headings "text" (.Plain | htmlUnescape)) -}}
{{- end -}}
{{- end -}}
window.searchIndex = {{ $rows | jsonify }};

package envoyfilter

import (
	"fmt"
)

const (
	bufferLimit           = int64(32768)
	maxConnectionDuration = "86400s"
	streamWindow          = int64(65536)
	connectionWindow      = int64(1048576)
	optionsType           = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
)

// modeFor returns the protocol between gateways and a port (ICC-8: first from the rule's settings for the port, then
// from those for all ports, then from the Service's port).
func (r *Rule) modeFor(p port) mode {
	if m := r.ports[p.number]; m != undecided {
		return m
	}
	if r.all != undecided {
		return r.all
	}
	return p.mode
}

// patch returns the patch for the connections to a port of a Service (ICC-7, ICC-9), in the types of decoded JSON.
func patch(s *Service, p port, m mode) map[string]any {
	value := map[string]any{"per_connection_buffer_limit_bytes": bufferLimit}
	if m != plain {
		config := map[string]any{"http2_protocol_options": map[string]any{"initial_stream_window_size": streamWindow, "initial_connection_window_size": connectionWindow}}
		options := map[string]any{
			"@type":                        "type.googleapis.com/" + optionsType,
			"common_http_protocol_options": map[string]any{"max_connection_duration": maxConnectionDuration},
		}
		if m == downstream {
			options["use_downstream_protocol_config"] = config
		} else {
			options["explicit_http_config"] = config
		}
		value["typed_extension_protocol_options"] = map[string]any{optionsType: options}
	}
	return map[string]any{
		"applyTo": "CLUSTER",
		"match":   map[string]any{"context": "GATEWAY", "cluster": map[string]any{"name": clusterName(s, p)}},
		"patch":   map[string]any{"operation": "MERGE", "value": value},
	}
}

func clusterName(s *Service, p port) string {
	return fmt.Sprintf("outbound|%d||%s.%s%s", p.number, s.Name, s.Namespace, clusterDomain)
}

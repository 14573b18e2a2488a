package schema

var coreDefaults = map[string]fields{
	"core.Secret": {"type": "Opaque"},
	"core.ServiceSpec": {
		"type": "ClusterIP", "sessionAffinity": "None",
		"sessionAffinityConfig": &fill{always: affinityConfig},
		"externalTrafficPolicy": func(s scope) any {
			switch serviceType(s) {
			case "NodePort", "LoadBalancer":
				return "Cluster"
			case "ClusterIP":
				if nonEmptyList(s.sibling("externalIPs")) {
					return "Cluster"
				}
			}
			return nil
		},
		"internalTrafficPolicy": func(s scope) any {
			if serviceType(s) == "ExternalName" {
				return nil
			}
			return "Cluster"
		},
		"allocateLoadBalancerNodePorts": func(s scope) any {
			if serviceType(s) == "LoadBalancer" {
				return true
			}
			return nil
		},
	},
	"core.ServicePort": {"protocol": "TCP", "targetPort": &fill{always: func(s scope, given any) any {
		if given == nil || given == int64(0) || given == "" {
			return s.sibling("port")
		}
		return given
	}}},

	"core.EndpointPort":         {"protocol": "TCP"},
	"core.PersistentVolumeSpec": {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"},
	"core.PersistentVolumeClaimSpec": {"volumeMode": "Filesystem", "dataSource": dataSource,
		"dataSourceRef": dataSourceRef},
	"core.ReplicationControllerSpec": {"replicas": 1, "selector": func(s scope) any {
		labels := mapping(mapping(mapping(s.sibling("template"))["metadata"])["labels"])
		if len(labels) == 0 {
			return nil
		}
		return labels
	}},
	"core.LimitRangeItem": {
		"default": &fill{always: func(s scope, given any) any {
			if s.sibling("type") != "Container" {
				return given
			}
			return union(given, s.sibling("max"))
		}},
		"defaultRequest": &fill{always: func(s scope, given any) any {
			if s.sibling("type") != "Container" {
				return given
			}
			return union(given, s.sibling("default"), s.sibling("max"), s.sibling("min"))
		}},
	},
	"discovery.EndpointPort": {"name": "", "protocol": "TCP"},
}

func serviceType(s scope) string {
	if t := text(s.sibling("type")); t != "" {
		return t
	}
	return "ClusterIP"
}

// affinityConfig returns nil without session affinity, and otherwise a config with a time limit.
func affinityConfig(s scope, given any) any {
	if text(s.sibling("sessionAffinity")) != "ClientIP" {
		return nil
	}
	if mapping(mapping(given)["clientIP"])["timeoutSeconds"] != nil {
		return given
	}
	return map[string]any{"clientIP": map[string]any{"timeoutSeconds": int64(10800)}}
}

// dataSource returns the reference in dataSourceRef, which means the same unless it has a namespace.
func dataSource(s scope) any {
	ref := mapping(s.sibling("dataSourceRef"))
	if ref == nil || text(ref["namespace"]) != "" {
		return nil
	}
	return referenceOf(ref)
}

func dataSourceRef(s scope) any {
	source := mapping(s.sibling("dataSource"))
	if source == nil {
		return nil
	}
	return referenceOf(source)
}

func referenceOf(from map[string]any) any {
	reference := map[string]any{"kind": from["kind"], "name": from["name"]}
	if group, found := from["apiGroup"]; found {
		reference["apiGroup"] = group
	}
	return reference
}

// union returns the entries of all mappings; earlier mappings take precedence.
func union(mappings ...any) any {
	all := map[string]any{}
	for _, m := range mappings {
		for key, value := range mapping(m) {
			if _, found := all[key]; !found {
				all[key] = value
			}
		}
	}
	return all
}

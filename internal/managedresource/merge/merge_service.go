package merge

import (
	"cmp"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	typeClusterIP    = "ClusterIP"
	typeNodePort     = "NodePort"
	typeLoadBalancer = "LoadBalancer"
	typeExternalName = "ExternalName"
)

// mergeService keeps the allocations of the API server and the cloud provider (MRM-8 … MRM-13, MRB-26).
func mergeService(c mergeContext) {
	keepPrefixed(c, "loadbalancer.openstack.org")

	desiredType, liveType := serviceType(c.desired), serviceType(c.live)
	setNested(c.merged.Object, desiredType, "spec", "type")

	if desiredType == typeLoadBalancer || desiredType == typeNodePort {
		keepNodePorts(c)
		keepLiveIfUnset(c, "spec", "loadBalancerIP")
	}
	if desiredType == typeExternalName {
		return
	}
	mergeClusterIP(c, liveType)
	if liveType == typeExternalName {
		return
	}
	keepLiveIfUnset(c, "spec", "ipFamilies")
	keepLiveIfUnset(c, "spec", "ipFamilyPolicy")
	if desiredType == typeLoadBalancer && liveType == typeLoadBalancer {
		keepLiveIfUnset(c, "spec", "loadBalancerClass")
		if nested[string](c.live.Object, "spec", "externalTrafficPolicy") == "Local" &&
			nested[string](c.desired.Object, "spec", "externalTrafficPolicy") == "Local" {
			keepLiveIfUnset(c, "spec", "healthCheckNodePort")
		}
	}
}

func serviceType(service *unstructured.Unstructured) string {
	return cmp.Or(nested[string](service.Object, "spec", "type"), typeClusterIP)
}

// mergeClusterIP implements MRM-12. It keeps clusterIP and clusterIPs together, because the API server requires that
// the first entry of clusterIPs is clusterIP.
func mergeClusterIP(c mergeContext, liveType string) {
	if liveType == typeExternalName || nested[string](c.desired.Object, "spec", "clusterIP") == "None" &&
		nested[string](c.live.Object, "spec", "clusterIP") != "None" {
		return
	}
	keepLive(c, "spec", "clusterIP")
	keepLive(c, "spec", "clusterIPs")
}

// keepNodePorts sets the node port of each desired port without one from the live port with the same name, or with
// the same number, and the same protocol (MRM-10, MRB-26). Each live port is used once.
//
// Most of its branches skip values that are no objects, because manifests may have anything there.
func keepNodePorts(c mergeContext) {
	ports, livePorts := nested[[]any](c.merged.Object, "spec", "ports"), nested[[]any](c.live.Object, "spec", "ports")

	taken := map[string]bool{} // Two protocols may share one number.
	at := func(number int64, port map[string]any) string {
		return strconv.FormatInt(number, 10) + "/" + protocol(port)
	}
	for _, item := range ports {
		if port, ok := item.(map[string]any); ok && intField(port, "nodePort") != 0 {
			taken[at(intField(port, "nodePort"), port)] = true
		}
	}
	for _, matches := range []func(live, port map[string]any) bool{sameNameAndProtocol, sameNumberAndProtocol} {
		for _, item := range ports {
			port, ok := item.(map[string]any)
			if !ok || intField(port, "nodePort") != 0 {
				continue
			}
			for _, liveItem := range livePorts {
				live, ok := liveItem.(map[string]any)
				if !ok {
					continue
				}
				nodePort := intField(live, "nodePort")
				if nodePort != 0 && !taken[at(nodePort, port)] && matches(live, port) {
					port["nodePort"] = nodePort
					taken[at(nodePort, port)] = true
					break
				}
			}
		}
	}
}

func sameNameAndProtocol(live, port map[string]any) bool {
	name, _ := port["name"].(string)
	liveName, _ := live["name"].(string)
	return name != "" && name == liveName && protocol(live) == protocol(port)
}

func sameNumberAndProtocol(live, port map[string]any) bool {
	return intField(live, "port") == intField(port, "port") && protocol(live) == protocol(port)
}

func protocol(port map[string]any) string { return cmp.Or(nested[string](port, "protocol"), "TCP") }

func intField(object map[string]any, field string) int64 {
	switch value := object[field].(type) {
	case int64:
		return value
	case float64:
		return int64(value)
	}
	return 0
}

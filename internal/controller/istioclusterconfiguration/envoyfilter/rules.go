package envoyfilter

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-project/espalier/internal/externalapi/istio"
)

// AnnotationExportTo is the annotation of a Service with the namespaces in which it is visible.
const AnnotationExportTo = "networking.istio.io/exportTo"

// clusterDomain is the domain of qualified host names; hosts in other domains do not count (ICC-5).
const clusterDomain = ".svc.cluster.local"

// mode is the protocol between a gateway and a port.
type mode int

const (
	undecided mode = iota
	// plain is HTTP/1.1, or no HTTP at all.
	plain
	// explicit is HTTP/2, regardless of the client's protocol.
	explicit
	downstream
)

// Rule has the relevant fields of a DestinationRule.
type Rule struct {
	types.NamespacedName
	// Service is empty for a rule that has no effect here (ICC-5).
	Service  types.NamespacedName
	ExportTo []string
	all      mode
	ports    map[int32]mode
	// Unreadable marks a rule that cannot be decoded: filters of its namespace are not changed.
	Unreadable bool
}

// RuleOf returns the relevant fields of a DestinationRule.
func RuleOf(o *istio.DestinationRule) *Rule {
	r := &Rule{NamespacedName: types.NamespacedName{Namespace: o.Namespace, Name: o.Name}, ExportTo: o.Spec.ExportTo}
	if len(o.Spec.Subsets) > 0 || o.Spec.WorkloadSelector != nil {
		return r
	}
	r.Service = serviceOf(o.Namespace, o.Spec.Host)
	if policy := o.Spec.TrafficPolicy; policy != nil {
		r.all = modeOf(policy.ConnectionPool)
		for _, port := range policy.PortLevelSettings {
			if m := modeOf(port.ConnectionPool); m != undecided {
				if r.ports == nil {
					r.ports = map[int32]mode{}
				}
				r.ports[port.Port.Number] = m
			}
		}
	}
	return r
}

// serviceOf returns the Service of a host in a rule of a namespace, or an empty name for other hosts (ICC-5).
func serviceOf(namespace, host string) types.NamespacedName {
	if !strings.Contains(host, ".") {
		return types.NamespacedName{Namespace: namespace, Name: host}
	}
	short, found := strings.CutSuffix(host, clusterDomain)
	name, in, two := strings.Cut(short, ".")
	if !found || !two || strings.Contains(in, ".") || name == "" || in == "" {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: in, Name: name}
}

// modeOf returns the mode of a connection pool (ICC-8: useClientProtocol, then h2UpgradePolicy).
func modeOf(pool *istio.ConnectionPool) mode {
	switch {
	case pool == nil || pool.HTTP == nil:
		return undecided
	case pool.HTTP.UseClientProtocol:
		return downstream
	case pool.HTTP.H2UpgradePolicy == "UPGRADE":
		return explicit
	}
	return undecided
}

// Service has the relevant fields of a Service.
type Service struct {
	types.NamespacedName
	ports    []port
	exportTo []string
}

type port struct {
	number int32
	mode   mode
}

// ServiceOf returns the relevant fields of a Service.
func ServiceOf(o *corev1.Service) *Service {
	s := &Service{NamespacedName: types.NamespacedName{Namespace: o.Namespace, Name: o.Name}}
	for i := range o.Spec.Ports {
		p := &o.Spec.Ports[i]
		s.ports = append(s.ports, port{p.Port, modeOfPort(p)})
	}
	if value, given := o.Annotations[AnnotationExportTo]; given {
		for _, part := range strings.Split(value, ",") {
			s.exportTo = append(s.exportTo, strings.TrimSpace(part))
		}
	}
	return s
}

// modeOfPort returns the mode of a Service's port (ICC-8: its appProtocol, otherwise its name up to the first dash).
func modeOfPort(p *corev1.ServicePort) mode {
	protocol, _, _ := strings.Cut(p.Name, "-")
	switch {
	case p.AppProtocol != nil:
		protocol = *p.AppProtocol
	case strings.HasPrefix(strings.ToLower(p.Name), "grpc-web"):
		protocol = "grpc-web"
	}
	switch strings.ToLower(protocol) {
	case "http2", "grpc", "grpc-web", "kubernetes.io/h2c":
		return explicit
	}
	return plain
}

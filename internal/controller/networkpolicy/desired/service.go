package desired

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Service has the fields of a Service that its policies depend on.
type Service struct {
	types.NamespacedName
	UID types.UID
	// Problems are the parts of annotations that cannot be decoded.
	Problems []Problem

	// inactive is set if the Service has no policies: it has no selector, or is being deleted (NP-3).
	inactive bool
	selector map[string]string
	ports    []port
	// targets are the targets of the ports, aliases those of the from-…-allowed-ports annotations. Neither has
	// duplicates.
	targets []target
	aliases []alias
	world   []networkingv1.NetworkPolicyPort
	isWorld bool
	// clients are the namespace selectors as text. namespaceAlias replaces the Service's namespace in labels (NP-19).
	clients        string
	namespaceAlias string
	// unread has the policies that may exist because of an annotation that cannot be decoded.
	unread unread
}

type port struct {
	name   string
	number int32
	target target
}

// alias is a group of clients that may reach ports beyond those of the Service.
type alias struct {
	name    string
	targets []target
}

// Problem is a part of a Service that is invalid or cannot be applied.
type Problem struct {
	// Where is the annotation or object of the problem.
	Where   string
	Message string
}

// Error implements error.
func (p Problem) Error() string { return p.Where + ": " + p.Message }

// unread lists the policies that may exist because of an annotation that cannot be decoded: they are neither written
// nor deleted.
type unread struct {
	clients, world bool
	aliases        []string
}

// ServiceOf returns the relevant fields of a Service. An annotation that cannot be decoded affects only its own
// policies.
func ServiceOf(o *corev1.Service) *Service {
	s := &Service{
		NamespacedName: types.NamespacedName{Namespace: o.Namespace, Name: o.Name}, UID: o.UID,
		inactive: o.DeletionTimestamp != nil || len(o.Spec.Selector) == 0, selector: o.Spec.Selector,
	}
	if s.inactive {
		return s
	}
	for i := range o.Spec.Ports {
		s.addPort(&o.Spec.Ports[i])
	}
	s.readClients(o.Annotations)
	s.readWorld(o.Annotations)
	for _, key := range slices.Sorted(maps.Keys(o.Annotations)) {
		name, ours := strings.CutPrefix(key, fromPrefix)
		name, allowed := strings.CutSuffix(name, fromSuffix)
		if ours && allowed && name != "" {
			s.readAlias(key, name, o.Annotations[key])
		}
	}
	return s
}

func (s *Service) addPort(p *corev1.ServicePort) {
	t := target{protocol: p.Protocol, port: p.TargetPort}
	if t.protocol == "" {
		t.protocol = corev1.ProtocolTCP
	}
	if t.port == (intstr.IntOrString{}) || t.port == intstr.FromString("") {
		t.port = intstr.FromInt32(p.Port) // The API server's default.
	}
	s.ports = append(s.ports, port{p.Name, p.Port, t})
	if !slices.Contains(s.targets, t) {
		s.targets = append(s.targets, t)
	}
}

// Selectors decodes the namespace selectors of a Service: the namespaces of clients match any of them (NP-5). An
// unknown field is an error: a misspelt "matchLabels" would allow all namespaces, and so would null.
func Selectors(value string) ([]labels.Selector, error) {
	var list []*metav1.LabelSelector
	if err := decode(value, &list); err != nil {
		return nil, fmt.Errorf("failed unmarshalling %s: %w", value, err)
	}
	selectors := make([]labels.Selector, 0, len(list))
	for _, one := range list {
		if one == nil {
			return nil, fmt.Errorf("failed unmarshalling %s: null is no selector", value)
		}
		selector, err := metav1.LabelSelectorAsSelector(one)
		if err != nil {
			return nil, fmt.Errorf("failed parsing %s to labels.Selector: %w", one.String(), err)
		}
		selectors = append(selectors, selector)
	}
	return selectors, nil
}

func (s *Service) readClients(annotations map[string]string) {
	s.clients, s.namespaceAlias = annotations[AnnotationNamespaceSelectors], annotations[AnnotationNamespaceAlias]
	if _, given := annotations[AnnotationNamespaceSelectors]; given {
		if _, err := Selectors(s.clients); err != nil {
			s.problem(AnnotationNamespaceSelectors, err.Error())
			s.unread.clients = true
		}
	}
	if _, given := annotations[AnnotationNamespaceAlias]; given && !isKey("to-"+s.namespaceAlias+"-x") {
		s.problem(AnnotationNamespaceAlias, fmt.Sprintf("%q cannot be a part of a label's key", s.namespaceAlias))
		s.unread.clients = true
	}
	if s.unread.clients {
		s.clients = ""
	}
}

// isKey reports whether a name is valid in a label key, after it is shortened.
func isKey(name string) bool { return len(validation.IsQualifiedName(ShortKey(prefix+name))) == 0 }

func (s *Service) readWorld(annotations map[string]string) {
	value, given := annotations[AnnotationFromWorld]
	if !given {
		return
	}
	ports, err := decodePorts(value)
	if err != nil {
		err = fmt.Errorf("failed unmarshalling %s: %w", value, err)
	}
	for i := 0; err == nil && i < len(ports); i++ {
		err = normalPort(&ports[i])
	}
	if err != nil {
		s.problem(AnnotationFromWorld, err.Error())
		s.unread.world = true
		return
	}
	s.world, s.isWorld = ports, true
}

func (s *Service) readAlias(key, name, value string) {
	unreadable := func(message string) {
		s.problem(key, message)
		if !slices.Contains(s.unread.aliases, name) {
			s.unread.aliases = append(s.unread.aliases, name)
		}
	}
	if len(validation.IsDNS1123Subdomain("to-"+name)) > 0 {
		unreadable(fmt.Sprintf("%q cannot be a part of a policy's name", name))
		return
	}
	ports, err := decodePorts(value)
	if err != nil {
		unreadable(fmt.Sprintf("failed unmarshalling %s: %s", value, err))
		return
	}
	a, seen := alias{name: name}, map[target]bool{}
	for i := range ports {
		t, err := allowedPort(&ports[i])
		switch {
		case err != nil:
			unreadable(fmt.Sprintf("entry %d is left out: %s", i, err))
		case !seen[t]:
			a.targets, seen[t] = append(a.targets, t), true
		}
	}
	s.aliases = append(s.aliases, a)
}

func allowedPort(p *networkingv1.NetworkPolicyPort) (target, error) {
	if p.Port == nil {
		return target{}, fmt.Errorf("it has no port")
	}
	if err := normalPort(p); err != nil {
		return target{}, err
	}
	t := target{protocol: corev1.ProtocolTCP, port: *p.Port}
	if p.Protocol != nil {
		t.protocol = *p.Protocol
	}
	if p.EndPort != nil {
		t.end = *p.EndPort
	}
	return t, nil
}

func (s *Service) problem(where, message string) {
	s.Problems = append(s.Problems, Problem{where, message})
}

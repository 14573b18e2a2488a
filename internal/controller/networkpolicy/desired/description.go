package desired

import (
	"fmt"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// DescriptionFormat is the form of the clients' selector, and of ports without a number, in descriptions (T3-12: the
// text differs by profile).
type DescriptionFormat string

const (
	// DescribeLabels shows labels as map[k:v] and marks the Pods of the ingress controller.
	DescribeLabels DescriptionFormat = "Labels"
	// DescribeSelector is Gardener's text, byte for byte: the selector as {map[k:v] []}, with the same words for all
	// clients.
	DescribeSelector DescriptionFormat = "Selector"
)

// ingress describes the policy that lets clients reach the Pods of a Service at a port.
func (f DescriptionFormat) ingress(service types.NamespacedName, t target, clients peers) string {
	return fmt.Sprintf("Allows ingress %s traffic to port %s for pods selected by the %s service selector from %s.",
		t.protocol, t.port.String(), service, f.clients(clients, "ingress controller pods"))
}

// egress describes the policy that lets clients out to the Pods of a Service at a port.
func (f DescriptionFormat) egress(service types.NamespacedName, t target, clients peers) string {
	return fmt.Sprintf("Allows egress %s traffic to port %s from %s to pods selected by the %s service selector.",
		t.protocol, t.port.String(), f.clients(clients, "pods"), service)
}

// world describes the policy that lets everyone reach the Pods of a Service.
func (f DescriptionFormat) world(service types.NamespacedName, ports []networkingv1.NetworkPolicyPort) string {
	listed := make([]string, 0, len(ports))
	for i := range ports {
		listed = append(listed, f.port(&ports[i]))
	}
	return fmt.Sprintf("Allows ingress traffic from everywhere to ports %v for pods selected by the %s service selector.", listed, service)
}

// clients describes the Pods that are clients. controllers is the word for the Pods of the ingress controller in front
// of their labels.
func (f DescriptionFormat) clients(p peers, controllers string) string {
	switch {
	case f == DescribeSelector:
		return fmt.Sprintf("pods running in namespace %s labeled with %s", p.namespace, wholeSelector(p.selector))
	case p.areControllers:
		return fmt.Sprintf("%s running in the %s namespace labeled with %s", controllers, p.namespace, labelsOf(p.selector))
	default:
		return fmt.Sprintf("pods running in namespace %s labeled with %s", p.namespace, labelsOf(p.selector))
	}
}

// labelsOf returns the labels of a selector, sorted by their keys, and its expressions.
func labelsOf(selector metav1.LabelSelector) string {
	labels := fmt.Sprint(selector.MatchLabels)
	if len(selector.MatchExpressions) == 0 {
		return labels
	}
	return labels + " and " + metav1.FormatLabelSelector(&metav1.LabelSelector{MatchExpressions: selector.MatchExpressions})
}

// wholeSelector returns a selector as Go prints the structure, such as {map[a:b] [{tier In [x y]}]}: labels are
// sorted by their keys; expressions and their values keep their order.
func wholeSelector(selector metav1.LabelSelector) string {
	expressions := make([]string, 0, len(selector.MatchExpressions))
	for _, e := range selector.MatchExpressions {
		expressions = append(expressions, fmt.Sprintf("{%s %s %v}", e.Key, e.Operator, e.Values))
	}
	return fmt.Sprintf("{%v %v}", selector.MatchLabels, expressions)
}

// port returns a port that everyone may reach. Gardener prints a missing port as <nil>.
func (f DescriptionFormat) port(p *networkingv1.NetworkPolicyPort) string {
	var parts []string
	if p.Protocol != nil {
		parts = append(parts, string(*p.Protocol))
	}
	if p.Port != nil {
		parts = append(parts, p.Port.String())
	} else if f == DescribeSelector {
		parts = append(parts, "<nil>")
	}
	return strings.Join(parts, "/")
}

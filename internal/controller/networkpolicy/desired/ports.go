package desired

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
)

// target is a port that Pods of a Service listen on: a number or the name of a container's port. end, if not zero, is
// the last port of a range.
type target struct {
	protocol corev1.Protocol
	port     intstr.IntOrString
	end      int32
}

// id is the end of names and label keys, such as "tcp-10250".
func (t target) id() string { return strings.ToLower(string(t.protocol)) + "-" + t.port.String() }

func (t target) policyPort() networkingv1.NetworkPolicyPort {
	port := networkingv1.NetworkPolicyPort{Protocol: &t.protocol, Port: &t.port}
	if t.end != 0 {
		port.EndPort = &t.end
	}
	return port
}

// decode decodes the value of an annotation, which is one document without unknown fields.
func decode(value string, into any) error {
	decoder := json.NewDecoder(strings.NewReader(value))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one value")
	}
	return nil
}

// decodePorts decodes ports. An unknown field is an error: a misspelt "port" would open all ports.
func decodePorts(value string) ([]networkingv1.NetworkPolicyPort, error) {
	var ports []networkingv1.NetworkPolicyPort
	if err := decode(value, &ports); err != nil {
		return nil, err
	}
	if ports == nil {
		return nil, errors.New("null is no list")
	}
	return ports, nil
}

// normalPort converts digits into a number (C6), and returns an error for a port that the API server would refuse.
func normalPort(p *networkingv1.NetworkPolicyPort) error {
	if p.Protocol != nil && !slices.Contains([]corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP}, *p.Protocol) {
		return fmt.Errorf("protocol %q is none of TCP, UDP and SCTP", *p.Protocol)
	}
	if p.Port == nil {
		if p.EndPort != nil {
			return errors.New("endPort without port")
		}
		return nil
	}
	if p.Port.Type == intstr.String && isDigits(p.Port.StrVal) {
		number, err := strconv.ParseInt(p.Port.StrVal, 10, 32)
		if err != nil {
			return fmt.Errorf("port %q is no port number", p.Port.StrVal)
		}
		*p.Port = intstr.FromInt32(int32(number))
	}
	switch {
	case p.Port.Type == intstr.String && p.EndPort != nil:
		return fmt.Errorf("endPort goes with a port number only, not with %q", p.Port.StrVal)
	case p.Port.Type == intstr.String:
		if problems := validation.IsValidPortName(p.Port.StrVal); len(problems) > 0 {
			return fmt.Errorf("port %q is neither a port number nor the name of one", p.Port.StrVal)
		}
	case len(validation.IsValidPortNum(int(p.Port.IntVal))) > 0:
		return fmt.Errorf("port %d is not between 1 and 65535", p.Port.IntVal)
	case p.EndPort != nil && (*p.EndPort < p.Port.IntVal || len(validation.IsValidPortNum(int(*p.EndPort))) > 0):
		return fmt.Errorf("endPort %d does not end a range from %d", *p.EndPort, p.Port.IntVal)
	}
	return nil
}

func isDigits(s string) bool {
	return s != "" && bytes.Trim([]byte(s), "0123456789") == nil
}

package node

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// connect answers CONNECT: it leads a connection of kube-apiserver to a Pod, a Service, the logs, or wherever else.
func (n *Node) connect(w http.ResponseWriter, r *http.Request) {
	here, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = here.Close() }()
	there, err := n.dial(r)
	if err != nil {
		// kube-apiserver tells the status line and nothing else.
		_, _ = fmt.Fprintf(here, "HTTP/1.1 502 %s\r\nContent-Length: 0\r\n\r\n", strings.ReplaceAll(err.Error(), "\n", " "))
		return
	}
	defer func() { _ = there.Close() }()
	if _, err := io.WriteString(here, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(there, buffered)
		_ = there.Close()
	}()
	_, _ = io.Copy(here, there)
}

func (n *Node) dial(r *http.Request) (net.Conn, error) {
	if r.Method != http.MethodConnect {
		return nil, fmt.Errorf("%s is not CONNECT", r.Method)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	address, err := n.resolve(ctx, r.RequestURI)
	if err != nil {
		return nil, err
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", address)
}

// resolve does what DNS and kube-proxy do.
func (n *Node) resolve(ctx context.Context, address string) (string, error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	if host == Name && portText == strconv.Itoa(kubeletPort) {
		return n.kubelet.Addr().String(), nil
	}
	for _, p := range n.all() {
		if p.ip() == host {
			return net.JoinHostPort(p.loopback(), portText), nil
		}
	}
	services := &corev1.ServiceList{}
	if err := n.client.List(ctx, services); err != nil {
		return "", err
	}
	for i := range services.Items {
		if isCalled(&services.Items[i], host) {
			return n.endpoint(ctx, &services.Items[i], portText)
		}
	}
	return address, nil
}

// isCalled: by its address or by its name, with or without the domain. A name without a namespace is that of any: who asks may be anywhere.
func isCalled(service *corev1.Service, host string) bool {
	if host == service.Spec.ClusterIP {
		return true
	}
	names := []string{service.Name, service.Name + "." + service.Namespace}
	return slices.Contains(names, strings.TrimSuffix(strings.TrimSuffix(host, ".cluster.local"), ".svc"))
}

// endpoint chooses one of the ready Pods of a Service.
func (n *Node) endpoint(ctx context.Context, service *corev1.Service, portText string) (string, error) {
	i := slices.IndexFunc(service.Spec.Ports, func(port corev1.ServicePort) bool { return strconv.Itoa(int(port.Port)) == portText })
	if i < 0 {
		return "", fmt.Errorf("service %s/%s has no port %s", service.Namespace, service.Name, portText)
	}
	pods := &corev1.PodList{}
	if err := n.client.List(ctx, pods, client.InNamespace(service.Namespace), client.MatchingLabels(service.Spec.Selector)); err != nil {
		return "", err
	}
	for _, object := range pods.Items {
		if p := n.named(object.Namespace, object.Name); p != nil && p.isReady() && object.DeletionTimestamp == nil {
			return net.JoinHostPort(p.loopback(), strconv.Itoa(p.files.Port(service.Spec.Ports[i].TargetPort))), nil
		}
	}
	return "", fmt.Errorf("no Pod of Service %s/%s is ready", service.Namespace, service.Name)
}

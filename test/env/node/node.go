// Package node plays the one Node of a cluster that has only a control plane, so that what is installed there runs and is reached.
//
// It starts a process for each Pod whose image is named like an executable of a folder, with the files, arguments and rights that the Pod
// has. kube-apiserver reaches Pods and Services through it, by their addresses and names, and reads logs from it. Pods of other images are
// only said to run. All Pods are on this machine's loopback interface: one with address 10.1.0.7 listens on 127.1.0.7.
package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/test/env/cluster"
	"github.com/espalier-project/espalier/test/env/kubelet"
)

const (
	// Name is that of the Node.
	Name = "local"
	// kubeletPort is where the Node says that its logs are.
	kubeletPort = 10250
	// interval is how often Pods, their files and their probes are looked at. A kubelet takes longer; nobody here should wait.
	interval = 300 * time.Millisecond
)

// Options shape a node.
type Options struct {
	// Dir is where files and logs of Pods go, Bin has the executables.
	Dir, Bin string
}

// Node runs Pods.
type Node struct {
	Options
	cluster *cluster.Cluster
	client  client.Client
	// proxy is where kube-apiserver asks for connections to Pods and Services, kubelet where it asks for logs.
	proxy, kubelet net.Listener
	// sockets is the folder of the proxy's.
	sockets string

	mu   sync.Mutex
	pods map[types.UID]*pod
	last int
}

// New makes a node. Its cluster must be started with its flags.
func New(o Options) (*Node, error) {
	n := &Node{Options: o, pods: map[types.UID]*pod{}}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, err
	}
	var err error
	// The path of a socket must be short.
	if n.sockets, err = os.MkdirTemp("", "node-"); err != nil {
		return nil, err
	}
	socket := filepath.Join(n.sockets, "proxy")
	if n.proxy, err = net.Listen("unix", socket); err != nil {
		return nil, err
	}
	if n.kubelet, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, errors.Join(err, n.proxy.Close())
	}
	selection := "- name: %s\n  connection: {proxyProtocol: HTTPConnect, transport: {uds: {udsName: '" + socket + "'}}}\n"
	content := "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\negressSelections:\n" + fmt.Sprintf(selection, "cluster") + fmt.Sprintf(selection, "controlplane")
	return n, os.WriteFile(n.egress(), []byte(content), 0o600)
}

func (n *Node) egress() string { return filepath.Join(n.Dir, "egress.yaml") }

// Flags make kube-apiserver reach Pods and Services through the node.
func (n *Node) Flags() []string { return []string{"--egress-selector-config-file=" + n.egress()} }

// Run looks after Pods until the context ends, and returns when all their processes have ended.
func (n *Node) Run(ctx context.Context, c *cluster.Cluster) error {
	config, err := c.Admin()
	if err != nil {
		return err
	}
	n.cluster = c
	if n.client, err = client.New(config, client.Options{}); err != nil {
		return err
	}
	certificates := filepath.Join(n.Dir, "tls")
	if err := c.ServingCertificate(certificates); err != nil {
		return err
	}
	if err := n.register(ctx); err != nil {
		return err
	}
	proxy := &http.Server{Handler: http.HandlerFunc(n.connect), ReadHeaderTimeout: time.Minute}
	kubelet := &http.Server{Handler: http.HandlerFunc(n.logs), ReadHeaderTimeout: time.Minute}
	go func() { _ = proxy.Serve(n.proxy) }()
	go func() {
		_ = kubelet.ServeTLS(n.kubelet, filepath.Join(certificates, "tls.crt"), filepath.Join(certificates, "tls.key"))
	}()
	defer func() { _, _, _ = proxy.Close(), kubelet.Close(), os.RemoveAll(n.sockets) }()
	for ctx.Err() == nil {
		n.look(ctx)
		wait(ctx, interval)
	}
	for _, p := range n.all() {
		<-p.ended
	}
	return nil
}

// register makes the Node, which is ready.
func (n *Node) register(ctx context.Context) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: Name, Labels: map[string]string{corev1.LabelHostname: Name}}}
	if err := n.client.Create(ctx, node); err != nil {
		return err
	}
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourcePods: resource.MustParse("110")}
	node.Status = corev1.NodeStatus{
		Capacity: room, Allocatable: room,
		Addresses:       []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: Name}},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: kubeletPort}},
		Conditions:      []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastTransitionTime: metav1.Now(), LastHeartbeatTime: metav1.Now()}},
	}
	return n.client.Status().Update(ctx, node)
}

// look starts what is new and ends what is to go; what cannot be read is read again the next time.
func (n *Node) look(ctx context.Context) {
	list := &corev1.PodList{}
	if err := n.client.List(ctx, list); err != nil {
		return
	}
	there := map[types.UID]bool{}
	for i := range list.Items {
		object := &list.Items[i]
		there[object.UID] = true
		p := n.pod(ctx, object)
		if object.DeletionTimestamp != nil {
			p.end()
		}
	}
	for _, p := range n.all() {
		if !there[p.object.UID] {
			p.end()
			<-p.ended
			n.mu.Lock()
			delete(n.pods, p.object.UID)
			n.mu.Unlock()
		}
	}
}

// pod returns the one of an object, and starts it if it is new.
func (n *Node) pod(ctx context.Context, object *corev1.Pod) *pod {
	n.mu.Lock()
	defer n.mu.Unlock()
	if p, found := n.pods[object.UID]; found {
		return p
	}
	n.last++
	p := &pod{node: n, object: object, number: n.last, dir: filepath.Join(n.Dir, object.Namespace+"_"+object.Name), ended: make(chan struct{})}
	p.files = &kubelet.Container{
		Client: n.client, Namespace: object.Namespace, Spec: &object.Spec, Root: filepath.Join(p.dir, "root"), Server: n.cluster.URL(), Token: p.issue, Listen: p.listen,
	}
	ctx, p.end = context.WithCancel(ctx)
	n.pods[object.UID] = p
	go p.live(ctx)
	return p
}

func (n *Node) all() []*pod {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []*pod
	for _, p := range n.pods {
		all = append(all, p)
	}
	return all
}

// named returns the pod of a namespace and a name, or nil.
func (n *Node) named(namespace, name string) *pod {
	for _, p := range n.all() {
		if p.object.Namespace == namespace && p.object.Name == name {
			return p
		}
	}
	return nil
}

// wait waits, unless the context ends before.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

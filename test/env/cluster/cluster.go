package cluster

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/client-go/rest"
)

const startTimeout = 90 * time.Second

// Options shape a cluster.
type Options struct {
	// Name tells clusters apart in messages and kubeconfigs.
	Name string
	// Dir is where data, certificates, kubeconfigs and logs go; it is made if it is not there.
	Dir string
	// ControllerManager also starts kube-controller-manager.
	ControllerManager bool
	// AuthorizationConfig is the path of an AuthorizationConfiguration; empty means Node and RBAC.
	AuthorizationConfig string
	// APIServerFlags are added to those of kube-apiserver, and are in force before the ones of the same name.
	APIServerFlags []string
	// Etcd is a running cluster whose etcd this one uses, too, with keys of its own; nil means an etcd of its own.
	Etcd *Cluster
	// Progress is told what happens, if it is set.
	Progress func(string)
}

// Cluster is a running cluster.
type Cluster struct {
	Options
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string
	// Requests is the folder with what AuditedGroup asked for; empty if nobody wants to know.
	Requests string

	authority *authority
	port      int
	// etcdURL is where etcd serves its clients.
	etcdURL   string
	etcdPorts [2]int
	etcd      *child
	apiserver *child
	manager   *child
	apiArgs   []string
}

// Start starts a cluster and returns when it answers.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	c := &Cluster{Options: options}
	if err := c.start(ctx); err != nil {
		c.Stop()
		return nil, fmt.Errorf("cluster %s: %w", options.Name, err)
	}
	return c, nil
}

// Prepare makes what clients and servers of a cluster need and starts nothing: its address, its authority, the certificate of its API server and
// the administrator's kubeconfig. The caller serves the API.
func Prepare(options Options) (*Cluster, error) {
	c := &Cluster{Options: options}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return nil, err
	}
	ports, err := FreePorts(1)
	if err != nil {
		return nil, err
	}
	c.port = ports[0]
	return c, c.certify()
}

// certify makes the authority and the administrator's kubeconfig.
func (c *Cluster) certify() (err error) {
	if c.authority, err = newAuthority(c.Dir); err != nil {
		return err
	}
	c.Kubeconfig = filepath.Join(c.Dir, "kubeconfig")
	return c.WriteKubeconfig(c.Kubeconfig, "admin", "system:masters")
}

func (c *Cluster) start(ctx context.Context) error {
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return err
	}
	ports, err := FreePorts(4)
	if err != nil {
		return err
	}
	c.port = ports[0]
	if err := c.certify(); err != nil {
		return err
	}
	if c.Etcd != nil {
		c.etcdURL = c.Etcd.etcdURL
	} else if err := c.startEtcd(ports[1], ports[2]); err != nil {
		return err
	}
	if err := c.audit(); err != nil {
		return err
	}
	c.apiArgs = c.apiserverArgs()
	if err := c.StartAPIServer(ctx); err != nil {
		return err
	}
	if c.ControllerManager {
		return c.startControllerManager(ports[3])
	}
	return nil
}

func (c *Cluster) startEtcd(client, peer int) (err error) {
	c.progress("starting etcd")
	clientURL, peerURL := "http://"+loopback(client), "http://"+loopback(peer)
	c.etcdURL, c.etcdPorts = clientURL, [2]int{client, peer}
	c.etcd, err = startChild("etcd", filepath.Join(c.Dir, "etcd.log"),
		"--name=default", "--data-dir="+filepath.Join(c.Dir, "etcd"), "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls="+clientURL, "--advertise-client-urls="+clientURL,
		"--listen-peer-urls="+peerURL, "--initial-advertise-peer-urls="+peerURL, "--initial-cluster=default="+peerURL,
		"--quota-backend-bytes=8589934592", "--snapshot-count=100000")
	return err
}

func (c *Cluster) apiserverArgs() []string {
	file := func(name string) string { return filepath.Join(c.Dir, name) }
	arguments := []string{
		"--etcd-servers=" + c.etcdURL, "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(c.port), "--endpoint-reconciler-type=none",
		"--tls-cert-file=" + file("apiserver.crt"), "--tls-private-key-file=" + file("apiserver.key"), "--client-ca-file=" + file("ca.crt"),
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=" + file("sa.key"),
		"--service-account-signing-key-file=" + file("sa.key"), "--service-cluster-ip-range=10.0.0.0/16",
		"--allow-privileged=true", "--profiling=false", "--event-ttl=10m",
	}
	if c.Etcd != nil {
		arguments = append(arguments, "--etcd-prefix=/"+c.Name)
	}
	if c.AuthorizationConfig != "" {
		arguments = append(arguments, "--authorization-config="+c.AuthorizationConfig)
	} else {
		arguments = append(arguments, "--authorization-mode=Node,RBAC")
	}
	if !c.ControllerManager {
		// Nobody makes the ServiceAccounts that this plugin wants Pods to have.
		arguments = append(arguments, "--disable-admission-plugins=ServiceAccount")
	}
	return append(arguments, c.APIServerFlags...)
}

// StartAPIServer starts kube-apiserver, also again after StopAPIServer, and waits until it answers.
func (c *Cluster) StartAPIServer(ctx context.Context) (err error) {
	c.progress("starting kube-apiserver")
	if c.apiserver, err = startChild("kube-apiserver", filepath.Join(c.Dir, "kube-apiserver.log"), c.apiArgs...); err != nil {
		return err
	}
	return c.await(ctx)
}

// StopAPIServer ends kube-apiserver; its data stay.
func (c *Cluster) StopAPIServer() { c.apiserver.stop() }

func (c *Cluster) startControllerManager(port int) (err error) {
	c.progress("starting kube-controller-manager")
	file := func(name string) string { return filepath.Join(c.Dir, name) }
	kubeconfig := file("controller-manager.kubeconfig")
	if err := c.WriteKubeconfig(kubeconfig, "system:kube-controller-manager", "system:masters"); err != nil {
		return err
	}
	c.manager, err = startChild("kube-controller-manager", file("kube-controller-manager.log"),
		"--kubeconfig="+kubeconfig, "--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig,
		"--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(port), "--leader-elect=false",
		"--use-service-account-credentials=false", "--service-account-private-key-file="+file("sa.key"), "--root-ca-file="+file("ca.crt"),
		"--cluster-signing-cert-file="+file("ca.crt"), "--cluster-signing-key-file="+file("ca.key"),
		"--kube-api-qps=500", "--kube-api-burst=1000", "--profiling=false",
		"--controllers=*,-bootstrap-signer-controller,-token-cleaner-controller,-node-lifecycle-controller")
	return err
}

// await waits until the API server says that it is ready.
func (c *Cluster) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	certificate, err := c.authority.client("admin", "system:masters")
	if err != nil {
		return err
	}
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		RootCAs: c.authority.pool(), Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12,
	}}}
	for {
		response, err := client.Get(c.URL() + "/readyz")
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("kube-apiserver is not ready, see %s: %w", filepath.Join(c.Dir, "kube-apiserver.log"), ctx.Err())
		case <-c.apiserver.ended:
			return fmt.Errorf("kube-apiserver ended, see %s", filepath.Join(c.Dir, "kube-apiserver.log"))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Stop ends everything.
func (c *Cluster) Stop() {
	for _, process := range []*child{c.manager, c.apiserver, c.etcd} {
		process.stop()
	}
}

// URL is the address of the API server.
func (c *Cluster) URL() string { return "https://" + loopback(c.port) }

// RESTConfig returns a client configuration of a user; no rate limit stands in the way.
func (c *Cluster) RESTConfig(user string, groups ...string) (*rest.Config, error) {
	certificate, key, err := c.authority.issueClient(user, groups...)
	if err != nil {
		return nil, err
	}
	return &rest.Config{Host: c.URL(), QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: c.authority.certificatePEM, CertData: certificate, KeyData: key}}, nil
}

// Admin returns the client configuration of the administrator.
func (c *Cluster) Admin() (*rest.Config, error) { return c.RESTConfig("admin", "system:masters") }

// ServingCertificate writes tls.crt and tls.key for loopback servers into a folder.
func (c *Cluster) ServingCertificate(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return c.authority.writeServing(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
}

func (c *Cluster) progress(text string) {
	if c.Progress != nil {
		c.Progress(c.Name + ": " + text)
	}
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

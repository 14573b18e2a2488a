package dropin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/internal/process"
	"github.com/espalier-project/espalier/test/env/cluster"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/env/kubelet"
	"github.com/espalier-project/espalier/test/must"
)

// pod is one replica of a Deployment.
type pod struct {
	*harness.Process
	t          *testing.T
	on         *audited
	deployment *appsv1.Deployment
	container  *corev1.Container
	files      *kubelet.Container
	// ports are those of this machine, by those of the container.
	ports map[int]int
}

// startPod starts a replica of a Deployment as a kubelet would, without the defaults of an image.
func (a *audited) startPod(t *testing.T, namespace, name string) *pod {
	t.Helper()
	return a.startImage(t, namespace, name, "")
}

// startImage starts a replica of a Deployment as a kubelet would. The image has a file with defaults, which the process finds by a flag here;
// all else is what the Deployment says.
func (a *audited) startImage(t *testing.T, namespace, name, defaults string) *pod {
	t.Helper()
	return a.startFile(t, namespace, name, defaults, func(image string) string {
		return get(t, func() (string, error) { return binary(executableOf(image)) })
	})
}

// withoutReadiness has the status as the reference has it, as in the images; profile contract adds the conditions of kstatus (T4-8).
const withoutReadiness = "profile: contract\ncontrollers: {managedResource: {readyCondition: false}}\n"

// startFile is startImage with the executable that stands for the image.
func (a *audited) startFile(t *testing.T, namespace, name, defaults string, file func(image string) string) *pod {
	t.Helper()
	p := &pod{t: t, on: a, deployment: &appsv1.Deployment{}, ports: map[int]int{}}
	must.Succeed(t, a.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, p.deployment))
	spec := &p.deployment.Spec.Template.Spec
	must.True(t, len(spec.Containers) == 1, "%d containers", len(spec.Containers))
	p.container = &spec.Containers[0]
	root, err := os.MkdirTemp(workDir, "pod-")
	must.Succeed(t, err)
	p.files = &kubelet.Container{Client: a.client, Namespace: namespace, Spec: spec, Root: root, Server: a.URL(), Token: p.token, Listen: p.listen}
	must.Succeed(t, p.files.Mount(t.Context()))
	arguments, environment, err := p.files.Command()
	must.Succeed(t, err)
	if defaults == "" && strings.HasSuffix(executableOf(p.container.Image), "resource-manager") {
		defaults = withoutReadiness
	}
	if defaults != "" {
		below := filepath.Join(root, process.DefaultsFile)
		must.Succeed(t, os.MkdirAll(filepath.Dir(below), 0o755))
		must.Succeed(t, os.WriteFile(below, []byte(defaults), 0o600))
		arguments = append(arguments, "--defaults="+below)
	}
	p.Process, err = harness.Start(executableOf(p.container.Image), file(p.container.Image), root+".log", arguments, environment)
	must.Succeed(t, err)
	t.Cleanup(p.Kill)
	return p
}

// executableOf is the last part of an image's name, without tag and digest.
func executableOf(image string) string {
	name, _, _ := strings.Cut(path.Base(image), "@")
	name, _, _ = strings.Cut(name, ":")
	return name
}

// listen gives a server a free port.
func (p *pod) listen(server map[string]any) error {
	port, ok := server["port"].(float64)
	if !ok {
		return errors.New("it has no port")
	}
	if p.ports[int(port)] == 0 {
		free, err := cluster.FreePorts(1)
		if err != nil {
			return err
		}
		p.ports[int(port)] = free[0]
	}
	server["port"] = p.ports[int(port)]
	return nil
}

// token is one of the Pod's ServiceAccount.
func (p *pod) token(_ context.Context, wanted *corev1.ServiceAccountTokenProjection) (string, error) {
	return p.on.token(p.t, p.deployment.Namespace, p.deployment.Spec.Template.Spec.ServiceAccountName, wanted.Audience, *wanted.ExpirationSeconds), nil
}

// token asks an API server for a token of a ServiceAccount.
func (a *audited) token(t *testing.T, namespace, name, audience string, seconds int64) string {
	t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	if audience != "" {
		request.Spec.Audiences = []string{audience}
	}
	must.Succeed(t, a.client.SubResource("token").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}, request))
	return request.Status.Token
}

// probe asks as a kubelet does.
func (p *pod) probe(probe *corev1.Probe) error {
	return kubelet.Probe(p.t.Context(), probe, fmt.Sprintf("127.0.0.1:%d", p.port(probe.HTTPGet.Port)))
}

// port is where this machine has a port of the container.
func (p *pod) port(port intstr.IntOrString) int { return p.ports[p.files.Port(port)] }

// ready waits until the readiness probe succeeds; then the other one must, too.
func (p *pod) ready() {
	p.t.Helper()
	if err := harness.Poll(p.t.Context(), patience, func() error { return p.probe(p.container.ReadinessProbe) }); err != nil {
		p.t.Fatalf("DPL-70: %v, see %s", err, p.Log)
	}
	if err := p.probe(p.container.LivenessProbe); err != nil {
		p.t.Fatalf("DPL-69: %v", err)
	}
}

// stop ends the process as a kubelet does.
func (p *pod) stop() {
	p.t.Helper()
	if code := p.Stop(); code != 0 {
		p.t.Errorf("exit code %d, see %s", code, p.Log)
	}
}

// client returns a client that reaches Services of a namespace by their names, as kube-dns and kube-proxy would lead it to this replica.
func (p *pod) client(ca *authority) *http.Client {
	pool := x509.NewCertPool()
	pool.AddCert(ca.certificate)
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		host, portText, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		number, err := strconv.Atoi(portText)
		if err != nil {
			return nil, err
		}
		name, rest, _ := strings.Cut(host, ".")
		namespace, _, _ := strings.Cut(rest, ".")
		if namespace == "" {
			namespace = p.deployment.Namespace
		}
		service := &corev1.Service{}
		if err := p.on.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, service); err != nil {
			return nil, err
		}
		if !labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(p.deployment.Spec.Template.Labels)) {
			return nil, fmt.Errorf("the Service does not select the Pod")
		}
		for _, port := range service.Spec.Ports {
			if int(port.Port) == number {
				return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port(port.TargetPort))))
			}
		}
		return nil, fmt.Errorf("the Service has no port %d", number)
	}
	return &http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{DialContext: dial, ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
}

// ask sends a body to a webhook and returns what it answers.
func (p *pod) ask(c *http.Client, url string, body any) (int, map[string]any) {
	p.t.Helper()
	raw, err := json.Marshal(body)
	must.Succeed(p.t, err)
	response, err := c.Post(url, "application/json", strings.NewReader(string(raw)))
	must.Succeed(p.t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	must.Succeed(p.t, err)
	answer := map[string]any{}
	if response.StatusCode == http.StatusOK {
		must.Succeed(p.t, json.Unmarshal(text, &answer))
	}
	return response.StatusCode, answer
}

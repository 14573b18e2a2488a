package dropin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
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
	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/test/cluster"
	"github.com/espalier-project/espalier/test/harness"
)

// serviceAccountDir is where client libraries look for the credentials of a Pod.
const serviceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// pod is one replica of a Deployment.
type pod struct {
	*harness.Process
	t          *testing.T
	on         *audited
	deployment *appsv1.Deployment
	container  *corev1.Container
	root       string
	paths      *strings.Replacer
	// host is where the Pod looks for its API server.
	host string
	// ports are those of this machine, by those of the container.
	ports map[int]int
}

// startPod starts a replica of a Deployment as a kubelet would.
func (a *audited) startPod(t *testing.T, namespace, name string) *pod {
	t.Helper()
	p := &pod{t: t, on: a, deployment: &appsv1.Deployment{}, ports: map[int]int{}}
	must(t, a.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, p.deployment))
	spec := &p.deployment.Spec.Template.Spec
	if len(spec.Containers) != 1 {
		t.Fatalf("%d containers", len(spec.Containers))
	}
	p.container = &spec.Containers[0]
	var err error
	p.root, err = os.MkdirTemp(workDir, "pod-")
	must(t, err)
	var replacements []string
	mounts := slices.Clone(p.container.VolumeMounts)
	slices.SortFunc(mounts, func(x, y corev1.VolumeMount) int { return len(y.MountPath) - len(x.MountPath) })
	for _, mount := range mounts {
		replacements = append(replacements, mount.MountPath, filepath.Join(p.root, mount.MountPath))
	}
	p.paths = strings.NewReplacer(replacements...)
	for _, mount := range mounts {
		p.mount(mount.MountPath, p.volume(spec, mount.Name))
	}
	p.host = "127.0.0.1"
	environment := []string{"KUBERNETES_SERVICE_HOST=" + p.host, "KUBERNETES_SERVICE_PORT=" + a.URL()[strings.LastIndex(a.URL(), ":")+1:], "TMPDIR=" + t.TempDir()}
	for _, variable := range p.container.Env {
		if variable.Name == "KUBERNETES_SERVICE_HOST" {
			p.host = variable.Value
		}
		environment = append(environment, variable.Name+"="+p.paths.Replace(variable.Value))
	}
	var arguments []string
	for _, argument := range p.container.Args {
		arguments = append(arguments, p.paths.Replace(argument))
		if file, isConfig := strings.CutPrefix(argument, "--config="); isConfig {
			environment = append(environment, p.configure(filepath.Join(p.root, file))...)
		}
	}
	file, err := binary(p.container.Image)
	must(t, err)
	p.Process, err = harness.Start(p.container.Image, file, p.root+".log", arguments, environment)
	must(t, err)
	t.Cleanup(p.Kill)
	return p
}

// volume returns the files of a volume.
func (p *pod) volume(spec *corev1.PodSpec, name string) map[string][]byte {
	p.t.Helper()
	i := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == name })
	if i < 0 {
		p.t.Fatalf("there is no volume %s", name)
	}
	files := map[string][]byte{}
	switch v := spec.Volumes[i]; {
	case v.Secret != nil:
		maps.Copy(files, items(p.secret(v.Secret.SecretName), v.Secret.Items))
	case v.ConfigMap != nil:
		maps.Copy(files, items(p.configMap(v.ConfigMap.Name), v.ConfigMap.Items))
	case v.Projected != nil:
		for _, source := range v.Projected.Sources {
			switch {
			case source.Secret != nil:
				maps.Copy(files, items(p.secret(source.Secret.Name), source.Secret.Items))
			case source.ConfigMap != nil:
				maps.Copy(files, items(p.configMap(source.ConfigMap.Name), source.ConfigMap.Items))
			case source.ServiceAccountToken != nil:
				files[source.ServiceAccountToken.Path] = []byte(p.on.token(p.t, p.deployment.Namespace, spec.ServiceAccountName, source.ServiceAccountToken.Audience, *source.ServiceAccountToken.ExpirationSeconds))
			case source.DownwardAPI != nil:
				for _, item := range source.DownwardAPI.Items {
					if item.FieldRef.FieldPath != "metadata.namespace" {
						p.t.Fatalf("no kubelet here knows %s", item.FieldRef.FieldPath)
					}
					files[item.Path] = []byte(p.deployment.Namespace)
				}
			}
		}
	default:
		p.t.Fatalf("no kubelet here knows volume %s", name)
	}
	return files
}

func items(content map[string][]byte, chosen []corev1.KeyToPath) map[string][]byte {
	if len(chosen) == 0 {
		return content
	}
	files := map[string][]byte{}
	for _, item := range chosen {
		files[item.Path] = content[item.Key]
	}
	return files
}

func (p *pod) secret(name string) map[string][]byte {
	secret := &corev1.Secret{}
	must(p.t, p.on.client.Get(p.t.Context(), client.ObjectKey{Namespace: p.deployment.Namespace, Name: name}, secret))
	return secret.Data
}

func (p *pod) configMap(name string) map[string][]byte {
	configMap := &corev1.ConfigMap{}
	must(p.t, p.on.client.Get(p.t.Context(), client.ObjectKey{Namespace: p.deployment.Namespace, Name: name}, configMap))
	content := map[string][]byte{}
	for key, value := range configMap.Data {
		content[key] = []byte(value)
	}
	return content
}

// token asks an API server for a token of a ServiceAccount.
func (a *audited) token(t *testing.T, namespace, name, audience string, seconds int64) string {
	t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	if audience != "" {
		request.Spec.Audiences = []string{audience}
	}
	must(t, a.client.SubResource("token").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}, request))
	return request.Status.Token
}

// mount puts files into a folder, all at once and in place of older ones: a kubelet exchanges the link to a folder that has them.
func (p *pod) mount(path string, files map[string][]byte) {
	p.t.Helper()
	dir := filepath.Join(p.root, path)
	must(p.t, os.MkdirAll(dir, 0o755))
	version, err := os.MkdirTemp(dir, "..")
	must(p.t, err)
	for name, content := range files {
		must(p.t, os.WriteFile(filepath.Join(version, name), []byte(p.paths.Replace(string(content))), 0o600))
	}
	link := filepath.Join(dir, "..data")
	older, err := os.Readlink(link)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.t.Fatal(err)
	}
	must(p.t, os.Symlink(filepath.Base(version), link+"_tmp"))
	must(p.t, os.Rename(link+"_tmp", link))
	if older != "" {
		must(p.t, os.RemoveAll(filepath.Join(dir, older)))
		return
	}
	for name := range files {
		must(p.t, os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)))
	}
}

// configure gives a configuration file free ports, and returns environment variables for connections that rely on the Pod's credentials.
func (p *pod) configure(file string) []string {
	p.t.Helper()
	content, err := os.ReadFile(file)
	must(p.t, err)
	config := map[string]any{}
	must(p.t, yaml.Unmarshal(content, &config))
	servers, _ := config["server"].(map[string]any)
	for _, name := range []string{"webhooks", "healthProbes", "metrics"} {
		server, _ := servers[name].(map[string]any)
		port, ok := server["port"].(float64)
		if !ok {
			p.t.Fatalf("server.%s has no port", name)
		}
		free, err := cluster.FreePorts(1)
		must(p.t, err)
		p.ports[int(port)] = free[0]
		server["port"] = free[0]
	}
	content, err = yaml.Marshal(config)
	must(p.t, err)
	must(p.t, os.WriteFile(file, content, 0o600))
	var environment []string
	for connection, variable := range map[string]string{"sourceClientConnection": "KUBECONFIG", "targetClientConnection": "TARGET_KUBECONFIG", "gardenClientConnection": "KUBECONFIG"} {
		section, found := config[connection].(map[string]any)
		if path, _ := section["kubeconfig"].(string); found && path == "" {
			environment = append(environment, variable+"="+p.inCluster())
		}
	}
	return environment
}

// inCluster writes a kubeconfig that says what client libraries take from the ServiceAccount's folder.
func (p *pod) inCluster() string {
	p.t.Helper()
	dir := filepath.Join(p.root, serviceAccountDir)
	for _, file := range []string{"token", "ca.crt", "namespace"} {
		if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
			p.t.Fatal(err)
		}
	}
	file := filepath.Join(p.root, "in-cluster-kubeconfig")
	must(p.t, os.WriteFile(file, fmt.Appendf(nil, "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"+
		"clusters: [{name: c, cluster: {server: '%s', certificate-authority: %s/ca.crt}}]\nusers: [{name: u, user: {tokenFile: %s/token}}]\n", strings.Replace(p.on.URL(), "127.0.0.1", p.host, 1), dir, dir), 0o600))
	return file
}

// probe asks as a kubelet does.
func (p *pod) probe(probe *corev1.Probe) error {
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Duration(probe.TimeoutSeconds)*time.Second)
	defer cancel()
	url := fmt.Sprintf("%s://127.0.0.1:%d%s", strings.ToLower(string(probe.HTTPGet.Scheme)), p.port(probe.HTTPGet.Port), probe.HTTPGet.Path)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && (response.StatusCode < 200 || response.StatusCode > 399) {
		err = fmt.Errorf("%s: %d %s", probe.HTTPGet.Path, response.StatusCode, body)
	}
	return err
}

// port resolves a port of the container, a number or a name.
func (p *pod) port(port intstr.IntOrString) int {
	number := port.IntValue()
	for _, declared := range p.container.Ports {
		if port.Type == intstr.String && declared.Name == port.StrVal {
			number = int(declared.ContainerPort)
		}
	}
	return p.ports[number]
}

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
	must(p.t, err)
	response, err := c.Post(url, "application/json", strings.NewReader(string(raw)))
	must(p.t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	must(p.t, err)
	answer := map[string]any{}
	if response.StatusCode == http.StatusOK {
		must(p.t, json.Unmarshal(text, &answer))
	}
	return response.StatusCode, answer
}

// Package kubelet gives a process of this machine what a kubelet gives a container: the files of its volumes, its arguments and
// environment, and its API server's address and credentials.
//
// A folder stands for the root of the container's files. The files that client libraries read from the ServiceAccount's folder, whose path is the
// same for all Pods, the process takes from a kubeconfig.
package kubelet

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/test/expect"
)

const (
	// serviceAccountDir is where client libraries look for the credentials of a Pod.
	serviceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"
	serviceHost       = "KUBERNETES_SERVICE_HOST"
	servicePort       = "KUBERNETES_SERVICE_PORT"
)

// Container is the first container of a Pod.
type Container struct {
	// Client reads what volumes refer to.
	Client    client.Client
	Namespace string
	Spec      *corev1.PodSpec
	// Root is the folder that stands for the root of the container's files.
	Root string
	// Server is the URL of the API server, whose host the container's KUBERNETES_SERVICE_HOST replaces.
	Server string
	// Token issues a token of the Pod's ServiceAccount.
	Token func(context.Context, *corev1.ServiceAccountTokenProjection) (string, error)
	// Listen changes a server of the configuration that --config names, as there is one network for all Pods.
	Listen func(server map[string]any) error
}

func (c *Container) spec() *corev1.Container { return &c.Spec.Containers[0] }

// paths replaces the paths of the container by those of this machine, longer ones first.
func (c *Container) paths() *strings.Replacer {
	mounts := slices.Clone(c.spec().VolumeMounts)
	slices.SortFunc(mounts, func(x, y corev1.VolumeMount) int { return len(y.MountPath) - len(x.MountPath) })
	var replacements []string
	for _, mount := range mounts {
		replacements = append(replacements, mount.MountPath, filepath.Join(c.Root, mount.MountPath))
	}
	return strings.NewReplacer(replacements...)
}

// adapted is a file of a volume as the process finds it. A configuration that cannot be parsed stays as it is, so that the process says
// what is wrong with it.
func (c *Container) adapted(path string, content []byte) ([]byte, error) {
	content = []byte(c.paths().Replace(string(content)))
	config := map[string]any{}
	if !slices.Contains(c.spec().Args, "--config="+path) {
		return content, nil
	}
	_ = yaml.Unmarshal(content, &config)
	servers, found := config["server"].(map[string]any)
	if !found {
		return content, nil
	}
	for _, name := range []string{"webhooks", "healthProbes", "metrics"} {
		if server, found := servers[name].(map[string]any); found {
			if err := c.Listen(server); err != nil {
				return nil, fmt.Errorf("server.%s: %w", name, err)
			}
		}
	}
	return yaml.Marshal(config)
}

// Command returns the arguments and the environment of the process. The files must have been mounted.
func (c *Container) Command() (arguments, environment []string, err error) {
	server, err := url.Parse(c.Server)
	if err != nil {
		return nil, nil, err
	}
	temporary := filepath.Join(c.Root, "tmp")
	if err := os.MkdirAll(temporary, 0o755); err != nil {
		return nil, nil, err
	}
	host, paths := server.Hostname(), c.paths()
	var own []string
	for _, variable := range c.spec().Env {
		if variable.Name == serviceHost {
			host = variable.Value
		}
		own = append(own, variable.Name+"="+paths.Replace(variable.Value))
	}
	environment = append([]string{"TMPDIR=" + temporary, serviceHost + "=" + host, servicePort + "=" + server.Port()}, own...)
	server.Host = net.JoinHostPort(host, server.Port())
	for _, argument := range c.spec().Args {
		arguments = append(arguments, paths.Replace(argument))
		if file, isConfig := strings.CutPrefix(argument, "--config="); isConfig {
			connections, err := c.connections(file, server.String())
			if err != nil {
				return nil, nil, err
			}
			environment = append(environment, connections...)
		}
	}
	return arguments, environment, nil
}

// connections are environment variables for those of a configuration that rely on the Pod's credentials.
func (c *Container) connections(file, server string) ([]string, error) {
	kubeconfig, err := c.inCluster(server)
	if err != nil || kubeconfig == "" {
		return nil, err
	}
	content, err := os.ReadFile(filepath.Join(c.Root, file))
	if err != nil {
		return nil, err
	}
	config := map[string]any{}
	_ = yaml.Unmarshal(content, &config) // The process says what is wrong with it.
	variables := map[string]string{"sourceClientConnection": "KUBECONFIG", "targetClientConnection": "TARGET_KUBECONFIG"}
	if config["kind"] == "AdmissionControllerConfiguration" {
		variables = map[string]string{"gardenClientConnection": "KUBECONFIG"}
	}
	var environment []string
	for connection, variable := range variables {
		section, _ := config[connection].(map[string]any)
		if path, _ := section["kubeconfig"].(string); path == "" {
			environment = append(environment, variable+"="+kubeconfig)
		}
	}
	return environment, nil
}

// inCluster writes a kubeconfig that says what is in the ServiceAccount's folder; empty if that is not mounted.
func (c *Container) inCluster(server string) (string, error) {
	if !slices.ContainsFunc(c.spec().VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == serviceAccountDir }) {
		return "", nil
	}
	dir := filepath.Join(c.Root, serviceAccountDir)
	for _, name := range []string{"token", "ca.crt", "namespace"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return "", err
		}
	}
	file := filepath.Join(c.Root, "in-cluster-kubeconfig")
	return file, os.WriteFile(file, fmt.Appendf(nil, "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"+
		"clusters: [{name: c, cluster: {server: '%s', certificate-authority: %s/ca.crt}}]\nusers: [{name: u, user: {tokenFile: %s/token}}]\n", server, dir, dir), 0o600)
}

// Port is the number of a port, which the container may declare by its name.
func (c *Container) Port(port intstr.IntOrString) int {
	for _, declared := range c.spec().Ports {
		if port.Type == intstr.String && declared.Name == port.StrVal {
			return int(declared.ContainerPort)
		}
	}
	return port.IntValue()
}

// Probe asks the process at an address, host and port, what a probe asks.
func Probe(ctx context.Context, probe *corev1.Probe, address string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(max(1, probe.TimeoutSeconds))*time.Second)
	defer cancel()
	asked := url.URL{Scheme: strings.ToLower(string(probe.HTTPGet.Scheme)), Host: address, Path: probe.HTTPGet.Path}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, asked.String(), nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	return expect.Holds(response.StatusCode >= 200 && response.StatusCode <= 399, "%s answers %d", probe.HTTPGet.Path, response.StatusCode)
}

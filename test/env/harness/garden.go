package harness

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/deploy/admissioncontroller"
	"github.com/espalier-project/espalier/internal/seedauthorizer/restriction"
	"github.com/espalier-project/espalier/test/env/cluster"
)

// Garden is a garden cluster in which admission-controller decides: its SeedAuthorizer is wired into kube-apiserver, its
// SeedRestriction is registered.
type Garden struct {
	*cluster.Cluster
	Client client.Client
	REST   *rest.Config
	// Web is the port on which kube-apiserver expects admission-controller.
	Web int

	dir string
}

// StartGarden starts the cluster and installs the garden's API; admission-controller is started by Run.
func StartGarden(ctx context.Context, dir string, progress func(string)) (*Garden, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	ports, err := cluster.FreePorts(1)
	if err != nil {
		return nil, err
	}
	g := &Garden{Web: ports[0], dir: dir}
	configuration := string(admissioncontroller.AuthorizationConfiguration)
	for name, manifest := range map[string][]byte{
		"seed-authorizer-kubeconfig.yaml": admissioncontroller.SeedAuthorizerKubeconfig, "shoot-authorizer-kubeconfig.yaml": admissioncontroller.ShootAuthorizerKubeconfig,
	} {
		kubeconfig := strings.ReplaceAll(g.local(manifest), "certificate-authority: ca.crt", "certificate-authority: "+filepath.Join(dir, "ca.crt"))
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(kubeconfig), 0o600); err != nil {
			return nil, err
		}
		configuration = strings.ReplaceAll(configuration, "/etc/kubernetes/structured/authorization-kubeconfigs/"+name, file)
	}
	configurationFile := filepath.Join(dir, "authorization-configuration.yaml")
	if err := os.WriteFile(configurationFile, []byte(configuration), 0o600); err != nil {
		return nil, err
	}
	if g.Cluster, err = cluster.Start(ctx, cluster.Options{Name: "garden", Dir: dir, AuthorizationConfig: configurationFile, Progress: progress}); err != nil {
		return nil, err
	}
	if err := g.install(ctx); err != nil {
		g.Stop()
		return nil, err
	}
	return g, nil
}

// local replaces the address of admission-controller in a manifest.
func (g *Garden) local(manifest []byte) string {
	return strings.ReplaceAll(string(manifest), admissioncontroller.URL, fmt.Sprintf("https://127.0.0.1:%d", g.Web))
}

func (g *Garden) install(ctx context.Context) error {
	var err error
	if g.REST, g.Client, err = clientFor(g.Cluster); err != nil {
		return err
	}
	if err := InstallGardenAPI(ctx, g.Client); err != nil {
		return err
	}
	for _, namespace := range []string{"garden", "gardener-system-seed-lease", "gardener-system-shoot-issuer"} {
		if err := g.Client.Create(ctx, Object("v1", "Namespace", "", namespace)); err != nil {
			return err
		}
	}
	return nil
}

// Restrict registers the restrictions, and the names that are reserved, of a running admission-controller; it should be ready.
func (g *Garden) Restrict(ctx context.Context, p *Process) error {
	configurations, err := g.printed(p, "gardener-admission-controller", restriction.SeedName, restriction.ShootName, restriction.ReservedName)
	if err != nil {
		return err
	}
	for _, configuration := range configurations {
		if err := g.Client.Create(ctx, configuration); err != nil {
			return err
		}
	}
	return nil
}

// GardenProcessOptions shape an admission-controller.
type GardenProcessOptions struct {
	Binary, Dir string
	// Config is laid over the configuration that leads to the garden.
	Config map[string]any
	// AnyPort makes it listen where kube-apiserver does not ask it.
	AnyPort bool
	// AsAdmin lets it do everything, for a garden that knows no rights. Otherwise it has those that it prints.
	AsAdmin   bool
	Args, Env []string
}

// Run starts an admission-controller with just the rights that it needs, unless AsAdmin is set.
func (g *Garden) Run(o GardenProcessOptions) (*Process, error) {
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, err
	}
	web := g.Web
	if o.AnyPort {
		web = 0
	}
	connection := map[string]any{"kubeconfig": g.Kubeconfig}
	grant := func(file, user string) error {
		var err error
		connection["kubeconfig"], err = Grant(o.Binary, o.Dir, g.Cluster, "garden", user, "--config="+file)
		return err
	}
	if o.AsAdmin {
		grant = nil
	}
	return launch(launchOptions{
		grant: grant,
		name:  "admission-controller", binary: o.Binary, dir: o.Dir, authority: g.Cluster, web: web, over: o.Config, args: o.Args, env: o.Env,
		config: map[string]any{
			"apiVersion":             "admissioncontroller.config.gardener.cloud/v1alpha1",
			"kind":                   "AdmissionControllerConfiguration",
			"gardenClientConnection": connection,
		},
	})
}

// As returns a client of a user, for example of a gardenlet.
func (g *Garden) As(user string, groups ...string) (client.Client, error) {
	config, err := g.RESTConfig(user, groups...)
	if err != nil {
		return nil, err
	}
	config.WarningHandlerWithContext = rest.NoWarnings{}
	return client.New(config, client.Options{Scheme: Scheme()})
}

// Gardenlet returns the client of a seed's gardenlet.
func (g *Garden) Gardenlet(seed string) (client.Client, error) {
	return g.As("gardener.cloud:system:seed:"+seed, "gardener.cloud:system:seeds")
}

// HTTPS returns a client of admission-controller's webhooks.
func (g *Garden) HTTPS() (*http.Client, error) { return https(filepath.Join(g.dir, "ca.crt")) }

func https(file string) (*http.Client, error) {
	ca, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	return &http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}}, nil
}

// Ask sends a body to a path of the webhooks and returns status, header and body.
func (p *Process) Ask(client *http.Client, method, path, contentType string, body []byte) (*http.Response, string, error) {
	request, err := http.NewRequest(method, fmt.Sprintf("https://127.0.0.1:%d%s", p.Web, path), bytes.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	return response, string(answer), err
}

package harness

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/deploy/nodeagentauthorizer"
	machinev1alpha1 "github.com/espalier-project/espalier/internal/foreign/machine/v1alpha1"
	"github.com/espalier-project/espalier/test/cluster"
)

// MachineNamespace is where the Machines of the tests are.
const MachineNamespace = "machines"

// Agents is a shoot whose kube-apiserver asks about agents of nodes.
type Agents struct {
	*cluster.Cluster
	Client client.Client
	// Web is the port on which kube-apiserver expects the authorizer.
	Web int
}

// AgentOptions shape such a shoot.
type AgentOptions struct {
	Name, Dir string
	// ReviewVersion is that of SubjectAccessReviews, v1 or v1beta1.
	ReviewVersion string
	// Web is the port of the authorizer, Path what is appended to its path; zero means any port.
	Web               int
	Path              string
	ControllerManager bool
	Progress          func(string)
}

// StartAgents starts a shoot. The certificate of the authorizer is expected to be signed by the shoot's own CA, unless another is given.
func StartAgents(ctx context.Context, o AgentOptions, ca string) (*Agents, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	a := &Agents{Web: o.Web}
	if a.Web == 0 {
		ports, err := cluster.FreePorts(1)
		if err != nil {
			return nil, err
		}
		a.Web = ports[0]
	}
	if ca == "" {
		ca = filepath.Join(dir, "ca.crt")
	}
	kubeconfig := strings.NewReplacer(
		nodeagentauthorizer.URL+"/webhooks/auth/nodeagent", fmt.Sprintf("https://127.0.0.1:%d/webhooks/auth/nodeagent%s", a.Web, o.Path),
		"certificate-authority: ca.crt", "certificate-authority: "+ca).Replace(string(nodeagentauthorizer.Kubeconfig))
	kubeconfigFile := filepath.Join(dir, "node-agent-authorizer-kubeconfig.yaml")
	configuration := strings.NewReplacer(
		"/etc/kubernetes/structured/authorization-kubeconfigs/node-agent-authorizer-kubeconfig.yaml", kubeconfigFile,
		"    subjectAccessReviewVersion: v1", "    subjectAccessReviewVersion: "+o.ReviewVersion).Replace(string(nodeagentauthorizer.AuthorizationConfiguration))
	configurationFile := filepath.Join(dir, "authorization-configuration.yaml")
	for file, content := range map[string]string{kubeconfigFile: kubeconfig, configurationFile: configuration} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			return nil, err
		}
	}
	if a.Cluster, err = cluster.Start(ctx, cluster.Options{Name: o.Name, Dir: dir, AuthorizationConfig: configurationFile, ControllerManager: o.ControllerManager, Progress: o.Progress}); err != nil {
		return nil, err
	}
	if _, a.Client, err = clientFor(a.Cluster); err != nil {
		a.Stop()
		return nil, err
	}
	if err := createAll(ctx, a.Client, string(nodeagentauthorizer.RBACTarget)); err != nil {
		a.Stop()
		return nil, err
	}
	return a, nil
}

// InstallMachines installs the kind of Machines in a source cluster, with a namespace for them and the rights of the authorizer.
func InstallMachines(ctx context.Context, cl client.Client) error {
	k := gardenKind{machinev1alpha1.Machines.GroupVersion(), machinev1alpha1.Machines.Resource, "Machine", true, machinev1alpha1.Machine{}}
	if err := cl.Create(ctx, k.crd()); err != nil {
		return err
	}
	if err := cl.Create(ctx, Object("v1", "Namespace", "", MachineNamespace)); err != nil {
		return err
	}
	if err := createAll(ctx, cl, string(nodeagentauthorizer.RBACSource)); err != nil {
		return err
	}
	return Poll(ctx, 60*time.Second, func() error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(k.WithKind("MachineList"))
		return cl.List(ctx, list, client.Limit(1))
	})
}

// AuthorizerUser is the user of the authorizer in both clusters.
const AuthorizerUser = "system:serviceaccount:kube-system:node-agent-authorizer"

// AgentProcessOptions shape a node-agent-authorizer.
type AgentProcessOptions struct {
	Binary, Dir string
	// Source has the Machines; nil means that there are none.
	Source *cluster.Cluster
	// AnyPort makes it listen where kube-apiserver does not ask it.
	AnyPort bool
	Config  map[string]any
	Args    []string
	Env     []string
}

// Run starts a node-agent-authorizer with just the rights that it needs.
func (a *Agents) Run(o AgentProcessOptions) (*Process, error) {
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, err
	}
	target := filepath.Join(o.Dir, "target-kubeconfig")
	if err := a.WriteKubeconfig(target, AuthorizerUser); err != nil {
		return nil, err
	}
	config := map[string]any{
		"apiVersion":             "nodeagentauthorizer.config.gardener.cloud/v1alpha1",
		"kind":                   "NodeAgentAuthorizerConfiguration",
		"targetClientConnection": map[string]any{"kubeconfig": target},
	}
	if o.Source != nil {
		source := filepath.Join(o.Dir, "source-kubeconfig")
		if err := o.Source.WriteKubeconfig(source, AuthorizerUser); err != nil {
			return nil, err
		}
		config["sourceClientConnection"] = map[string]any{"kubeconfig": source}
		config["machineNamespace"] = MachineNamespace
	}
	web := a.Web
	if o.AnyPort {
		web = 0
	}
	return launch(launchOptions{
		name: "node-agent-authorizer", binary: o.Binary, dir: o.Dir, authority: a.Cluster, web: web, over: o.Config, args: o.Args, env: o.Env, config: config,
	})
}

// Agent returns the client of a node's agent.
func (a *Agents) Agent(machine string) (client.Client, error) {
	config, err := a.RESTConfig("gardener.cloud:node-agent:machine:"+machine, "gardener.cloud:node-agents")
	if err != nil {
		return nil, err
	}
	return client.NewWithWatch(config, client.Options{Scheme: Scheme()})
}

// HTTPS returns a client of the authorizer's webhook.
func (a *Agents) HTTPS() (*http.Client, error) { return https(filepath.Join(a.Dir, "ca.crt")) }

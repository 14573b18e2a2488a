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
	machinev1alpha1 "github.com/espalier-project/espalier/internal/externalapi/machine/v1alpha1"
	"github.com/espalier-project/espalier/test/env/cluster"
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
	return a, nil
}

// InstallMachines installs the kind of Machines in a source cluster, with a namespace for them.
func InstallMachines(ctx context.Context, cl client.Client) error {
	k := gardenKind{machinev1alpha1.Machines.GroupVersion(), machinev1alpha1.Machines.Resource, "Machine", true, machinev1alpha1.Machine{}}
	if err := cl.Create(ctx, k.crd()); err != nil {
		return err
	}
	if err := cl.Create(ctx, Object("v1", "Namespace", "", MachineNamespace)); err != nil {
		return err
	}
	return Poll(ctx, 60*time.Second, func() error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(k.WithKind("MachineList"))
		return cl.List(ctx, list, client.Limit(1))
	})
}

// AgentProcessOptions shape a node-agent-authorizer.
type AgentProcessOptions struct {
	Binary, Dir string
	// Source has the Machines; nil means that there are none.
	Source *cluster.Cluster
	// AnyPort makes it listen where kube-apiserver does not ask it.
	AnyPort bool
	// Blind means that it has no right at all. Otherwise it has those that it prints.
	Blind  bool
	Config map[string]any
	Args   []string
	Env    []string
}

// Run starts a node-agent-authorizer with just the rights that it needs.
func (a *Agents) Run(o AgentProcessOptions) (*Process, error) {
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, err
	}
	target := map[string]any{}
	config := map[string]any{
		"apiVersion":             "nodeagentauthorizer.config.gardener.cloud/v1alpha1",
		"kind":                   "NodeAgentAuthorizerConfiguration",
		"targetClientConnection": target,
	}
	clusters := map[string]*cluster.Cluster{"target": a.Cluster}
	connections := map[string]map[string]any{"target": target}
	if o.Source != nil {
		source := map[string]any{}
		clusters["source"], connections["source"] = o.Source, source
		config["sourceClientConnection"] = source
		if _, many := o.Config["shootsDirectory"]; !many {
			config["machineNamespace"] = MachineNamespace
		}
	}
	grant := func(file, user string) error {
		for name, c := range clusters {
			kubeconfig := filepath.Join(o.Dir, name+"-kubeconfig")
			var err error
			if o.Blind {
				err = c.WriteKubeconfig(kubeconfig, user)
			} else {
				kubeconfig, err = Grant(o.Binary, o.Dir, c, name, user, "--config="+file)
			}
			if err != nil {
				return err
			}
			connections[name]["kubeconfig"] = kubeconfig
		}
		return nil
	}
	web := a.Web
	if o.AnyPort {
		web = 0
	}
	return launch(launchOptions{
		name: "node-agent-authorizer", binary: o.Binary, dir: o.Dir, authority: a.Cluster, web: web, over: o.Config, args: o.Args, env: o.Env, config: config, grant: grant,
	})
}

// Entry gives a user the rights in the shoot that an authorizer with a folder of shoots prints, and returns a kubeconfig of that user in dir.
func (a *Agents) Entry(binary, dir, user string) (string, error) {
	configuration := filepath.Join(dir, "rights")
	if err := os.WriteFile(configuration, []byte("shootsDirectory: "+dir+"\n"), 0o600); err != nil {
		return "", err
	}
	return Grant(binary, dir, a.Cluster, "target", user, "--config="+configuration)
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

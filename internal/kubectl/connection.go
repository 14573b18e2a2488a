package kubectl

import (
	"cmp"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/espalier-project/espalier/internal/process"
)

// connection are the flags that lead to the source and to the target.
type connection struct {
	source, target access
	namespace      string
	as             string
	asGroups       []string
	timeout        time.Duration
}

// access is how one cluster is found.
type access struct{ kubeconfig, context string }

func (c *connection) add(set *pflag.FlagSet) {
	set.StringVar(&c.source.kubeconfig, "kubeconfig", "", "`file` with the way to the source, where ManagedResources and their Secrets are; as for kubectl, KUBECONFIG and ~/.kube/config otherwise")
	set.StringVar(&c.source.context, "context", "", "`name` of the context of the source")
	set.StringVar(&c.target.kubeconfig, "target-kubeconfig", "", "`file` with the way to the target, where the managed objects are, if that is another cluster than the source")
	set.StringVar(&c.target.context, "target-context", "", "`name` of the context of the target, if that is another cluster than the source")
	set.StringVarP(&c.namespace, "namespace", "n", "", "`namespace`; the default is that of the context")
	set.StringVar(&c.as, "as", "", "`user` to impersonate")
	set.StringArrayVar(&c.asGroups, "as-group", nil, "`group` to impersonate; may be repeated")
	set.DurationVar(&c.timeout, "request-timeout", 0, "how long a single request may take; 0 means as long as it takes")
}

func (c *connection) load(a access) (*rest.Config, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = a.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: a.context, AuthInfo: clientcmdapi.AuthInfo{Impersonate: c.as, ImpersonateGroups: c.asGroups}}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, "", err
	}
	config.Timeout, config.WarningHandler = c.timeout, warningWriter(process.Stderr())
	namespace, _, err := loader.Namespace()
	return config, namespace, err
}

// warningWriter prints the warnings of an API server, each text once, as kubectl does.
func warningWriter(out io.Writer) rest.WarningHandler {
	return rest.NewWarningWriter(out, rest.WarningWriterOptions{Deduplicate: true})
}

// clusters are the source and the target as they were found.
type clusters struct {
	source, target *reader
	// namespace is what the flags or the context of the source say, targetNamespace what those of the target say.
	namespace, targetNamespace string
	sent                       atomic.Int64
}

// open leads to both clusters; nothing is sent yet.
func (c *connection) open() (*clusters, error) {
	found := &clusters{}
	config, namespace, err := c.load(c.source)
	if err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	if found.source, err = newReader(config, &found.sent); err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	found.target, found.namespace = found.source, cmp.Or(c.namespace, namespace)
	found.targetNamespace = found.namespace
	if c.target == (access{}) {
		return found, nil
	}
	target := access{cmp.Or(c.target.kubeconfig, c.source.kubeconfig), c.target.context}
	if config, namespace, err = c.load(target); err != nil {
		return nil, fmt.Errorf("target: %w", err)
	}
	if found.target, err = newReader(config, &found.sent); err != nil {
		return nil, fmt.Errorf("target: %w", err)
	}
	found.targetNamespace = cmp.Or(c.namespace, namespace)
	return found, nil
}

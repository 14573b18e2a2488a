package kubectl

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/espalier-project/espalier/internal/cluster"
	"github.com/espalier-project/espalier/internal/process"
)

// connection has the flags that select the source and the target.
type connection struct {
	source, target access
	// shoot is a Shoot of the garden that the flags of the source select, as <project>/<name>; "" for none.
	shoot string
	flags *pflag.FlagSet
}

// access selects a cluster.
type access struct {
	kubeconfig string
	clientcmd.ConfigOverrides
	// issued is the configuration that the garden issued, if any; namespace is that of the shoot in its seed.
	issued    *rest.Config
	namespace string
}

// ofTarget is the prefix of the flags of the target.
const ofTarget = "target-"

func (c *connection) add(set *pflag.FlagSet) {
	c.flags = set
	c.source.add(set, "", accessTexts{"`path` of the kubeconfig; default: KUBECONFIG or ~/.kube/config", "`name` of the kubeconfig's context"})
	c.target.add(set, ofTarget, accessTexts{"`path` of the target's kubeconfig, if that is another cluster", "`name` of its context"})
	set.StringVar(&c.shoot, "shoot", "", "`project/name` of a Shoot of the garden, to which the flags of the source lead: it issues kubeconfigs for the seed and the shoot")
}

// accessTexts are the descriptions of two flags.
type accessTexts struct{ kubeconfig, context string }

// add adds client-go's own flags, of which the help describes three, and lists the others.
func (a *access) add(set *pflag.FlagSet, prefix string, text accessTexts) {
	names := clientcmd.RecommendedConfigOverrideFlags(prefix)
	if prefix == "" {
		names.ClusterOverrideFlags.APIServer.ShortName = "s"
		names.ContextOverrideFlags.Namespace.Description = "`namespace`; default: that of the context"
	} else {
		names.ContextOverrideFlags.Namespace.LongName = "" // --namespace applies to both clusters.
	}
	names.CurrentContext.Description = text.context
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	clientcmd.BindOverrideFlags(&a.ConfigOverrides, own, names)
	own.VisitAll(func(f *pflag.Flag) {
		if f.Name != names.CurrentContext.LongName && f.Name != clientcmd.FlagNamespace {
			process.Group(f, "Connection flags, which are those of kubectl")
		}
	})
	set.AddFlagSet(own)
	set.StringVar(&a.kubeconfig, prefix+clientcmd.RecommendedConfigPathFlag, "", text.kubeconfig)
}

// toTarget returns the access to the target. It is the source unless a flag selects another cluster. --namespace,
// impersonation and the timeout apply to both.
func (c *connection) toTarget() (a access, other bool) {
	if c.target.issued != nil {
		return c.target, true
	}
	if other = c.hasTarget(); !other {
		return c.source, false
	}
	a = c.target
	a.kubeconfig = cmp.Or(a.kubeconfig, c.source.kubeconfig)
	a.Context.Namespace = c.source.Context.Namespace
	if !c.flags.Changed(ofTarget + "request-timeout") {
		a.Timeout = c.source.Timeout
	}
	if a.AuthInfo.Impersonate == "" && a.AuthInfo.ImpersonateUID == "" && len(a.AuthInfo.ImpersonateGroups) == 0 {
		of := &c.source.AuthInfo
		a.AuthInfo.Impersonate, a.AuthInfo.ImpersonateUID, a.AuthInfo.ImpersonateGroups = of.Impersonate, of.ImpersonateUID, of.ImpersonateGroups
	}
	return a, true
}

func (c *connection) hasTarget() (has bool) {
	c.flags.Visit(func(f *pflag.Flag) { has = has || strings.HasPrefix(f.Name, ofTarget) })
	return has
}

func (a *access) rules() *clientcmd.ClientConfigLoadingRules {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = a.kubeconfig
	return rules
}

// load reads the kubeconfig, and returns the namespace of the flags, else that of the context.
func (a *access) load() (*rest.Config, string, error) {
	if a.issued != nil {
		return a.issued, a.namespace, nil
	}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(a.rules(), &a.ConfigOverrides)
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, "", err
	}
	config.WarningHandler = warningWriter(process.Stderr())
	namespace, _, err := loader.Namespace()
	return cluster.RefuseRedirects(config), namespace, err
}

// warningWriter prints the warnings of an API server, each text once, as kubectl does.
func warningWriter(out io.Writer) rest.WarningHandler {
	return rest.NewWarningWriter(out, rest.WarningWriterOptions{Deduplicate: true})
}

// clusters has readers of the source and of the target, and the namespaces to use.
type clusters struct {
	source, target *reader
	// namespace is from the flags or the context of the source, targetNamespace from those of the target.
	namespace, targetNamespace string
}

// open returns both clusters. It sends requests only with --shoot, to the garden.
func (c *connection) open(ctx context.Context) (*clusters, error) {
	if c.shoot != "" && c.source.issued == nil {
		if err := c.openShoot(ctx); err != nil {
			return nil, fmt.Errorf("--shoot: %w", err)
		}
	}
	found := &clusters{}
	config, namespace, err := c.source.load()
	if err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	if found.source, err = newReader(config); err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	found.namespace, found.target, found.targetNamespace = namespace, found.source, namespace
	target, other := c.toTarget()
	if !other {
		return found, nil
	}
	if config, found.targetNamespace, err = target.load(); err != nil {
		return nil, fmt.Errorf("target: %w", err)
	}
	if found.target, err = newReader(config); err != nil {
		return nil, fmt.Errorf("target: %w", err)
	}
	return found, nil
}

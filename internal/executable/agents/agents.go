// Package agents assembles the node-agent authorizer for the two processes that serve it.
package agents

import (
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/espalier-project/espalier/internal/endpoint"
	"github.com/espalier-project/espalier/internal/endpoint/authorization"
	"github.com/espalier-project/espalier/internal/externalapi/kubernetes"
	machinev1alpha1 "github.com/espalier-project/espalier/internal/externalapi/machine/v1alpha1"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/nodeagentauthorizer/rules"
	"github.com/espalier-project/espalier/internal/nodeagentauthorizer/view"
)

// Options are the parameters of a shoot's authorizer.
type Options struct {
	View          view.Options
	AllowWatchAll bool
	// Shadow is the shadow policy, whose decisions have no effect; nil means that there is none.
	Shadow      *rules.Policy
	Differences *authorization.Differences
	Metrics     *rules.Metrics
	// Bodies bounds the memory of all shoots that share it; nil means a bound for this shoot only.
	Bodies *endpoint.Bodies
}

// Shoot has the view of a shoot, and the endpoint that uses it.
type Shoot struct {
	View    *view.View
	Reviews *authorization.Handler
}

// New returns a shoot. Its objects are watched once its view is started.
func New(o Options) (*Shoot, error) {
	followed, err := view.New(o.View)
	if err != nil {
		return nil, err
	}
	decides := &rules.Authorizer{
		View: followed, ByMachine: followed.ByMachine(), AllowWatchAll: o.AllowWatchAll, Shadow: o.Shadow, Differences: o.Differences,
		Metrics: o.Metrics, Log: o.View.Log,
	}
	return &Shoot{
		View: followed,
		Reviews: authorization.New(authorization.Options{
			Authorizer: decides, Ready: followed.Ready, Concerns: rules.IsAgent, DenyOnError: true, Bodies: o.Bodies, Log: o.View.Log,
		}),
	}, nil
}

// Metrics registers the metrics of the authorizer and of its view.
func Metrics(registry prometheus.Registerer) {
	rules.NewMetrics(registry)
	authorization.NewDifferences(registry, clock.RealClock{})
	view.NewMetrics(registry)
}

// Reads returns the reads for decisions on the agents of a shoot. machineNamespace is the namespace of its Machines
// in the source: nil for none, empty for any.
func Reads(machineNamespace *string) []feature.Read {
	var all []feature.Read
	add := func(cluster feature.Cluster, resource schema.GroupVersionResource, kind, namespace string, clusterScoped bool) {
		for _, form := range []feature.Form{feature.Stream, feature.Live} {
			all = append(all, feature.Read{Cluster: cluster, Kind: resource.GroupVersion().WithKind(kind), Resource: resource.Resource, ClusterScoped: clusterScoped, Namespace: namespace, Form: form})
		}
	}
	add(feature.Target, kubernetes.Nodes, "Node", "", true)
	add(feature.Target, kubernetes.Pods, "Pod", "", false)
	add(feature.Target, kubernetes.CertificateSigningRequests, "CertificateSigningRequest", "", true)
	add(feature.Target, kubernetes.Secrets, "Secret", metav1.NamespaceSystem, false)
	if machineNamespace != nil {
		add(feature.Source, machinev1alpha1.Machines, "Machine", *machineNamespace, false)
	}
	return all
}

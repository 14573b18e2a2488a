package cluster

import (
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/espalier-project/espalier/internal/feature"
)

// Mapper returns a RESTMapper. It has the kinds of the declared reads, so it sends no request for them, and
// controllers can be constructed while the cluster is not available. It finds other kinds by discovery when they are
// first needed.
func Mapper(name feature.Cluster, reads []feature.Read) func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	return func(cfg *rest.Config, httpClient *http.Client) (meta.RESTMapper, error) {
		discovered, err := apiutil.NewDynamicRESTMapper(cfg, httpClient)
		if err != nil {
			return nil, err
		}
		declared := meta.NewDefaultRESTMapper(nil)
		for _, read := range reads {
			if read.Cluster != name || read.Kind.Kind == "" {
				continue
			}
			scope := meta.RESTScopeNamespace
			if read.ClusterScoped {
				scope = meta.RESTScopeRoot
			}
			version := read.Kind.GroupVersion()
			resource := schema.GroupVersionResource{Group: version.Group, Version: version.Version, Resource: read.Resource}
			declared.AddSpecific(read.Kind, resource, resource, scope)
		}
		return meta.FirstHitRESTMapper{MultiRESTMapper: meta.MultiRESTMapper{declared, discovered}}, nil
	}
}

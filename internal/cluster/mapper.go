package cluster

import (
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/espalier-project/espalier/internal/feature"
)

// Mapper returns what knows where kinds are served: those that are read from what the tables say, so that nothing is asked for them and a
// cluster that is away stops nobody from being constructed; others from discovery, once they are asked for.
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

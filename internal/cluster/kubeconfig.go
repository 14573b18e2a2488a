package cluster

import (
	"k8s.io/apimachinery/pkg/runtime"
	kubejson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/versioning"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/tools/clientcmd/api/latest"
	"k8s.io/utils/ptr"

	"github.com/espalier-project/espalier/internal/externalapi/boundedyaml"
)

// codec decodes kubeconfigs in JSON. The client library's codec also accepts YAML, without a limit for its expansion.
var codec = func() runtime.Codec {
	json := kubejson.NewSerializerWithOptions(kubejson.DefaultMetaFactory, latest.Scheme, latest.Scheme, kubejson.SerializerOptions{})
	return versioning.NewDefaultingCodecForScheme(latest.Scheme, json, json, latest.ExternalVersion, runtime.InternalGroupVersioner)
}()

// DecodeKubeconfig decodes a kubeconfig from an untrusted writer like the client library, within the limits of
// package boundedyaml. The error may quote the content.
func DecodeKubeconfig(content []byte) (*clientcmdapi.Config, error) {
	kubeconfig := clientcmdapi.NewConfig()
	if len(content) == 0 {
		return kubeconfig, nil
	}
	text, err := boundedyaml.ToJSON(content)
	if err != nil {
		return nil, err
	}
	_, _, err = codec.Decode(text, ptr.To(latest.ExternalVersion.WithKind("Config")), kubeconfig)
	return kubeconfig, err
}

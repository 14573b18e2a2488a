// Package kubeconfig writes kubeconfigs for tests without a cluster.
package kubeconfig

import (
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/espalier-project/espalier/test/must"
)

// Nowhere is a server that nobody listens at: whoever asks it fails at once.
const Nowhere = "http://127.0.0.1:1"

// File writes a kubeconfig without credentials to a folder of the test, and returns its path.
func File(t testing.TB, server string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"test": {Server: server}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"test": {}},
		Contexts:       map[string]*clientcmdapi.Context{"test": {Cluster: "test", AuthInfo: "test"}},
		CurrentContext: "test",
	}, file)
	must.Succeed(t, err)
	return file
}

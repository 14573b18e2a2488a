package kubectl

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestManifests: CLI-53: manifests prints what the engine decodes, and no value of a Secret.
func TestManifests(t *testing.T) {
	var compressed bytes.Buffer
	w := brotli.NewWriter(&compressed)
	_, _ = w.Write([]byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: b}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: loud}\n"))
	must.Succeed(t, w.Close())
	encoded := func(content []byte) string { return base64.StdEncoding.EncodeToString(content) }
	objects := map[string]string{
		"/apis/resources.gardener.cloud/v1alpha1/namespaces/n/managedresources/x": `{"kind": "ManagedResource", "apiVersion": "resources.gardener.cloud/v1alpha1",
			"metadata": {"name": "x", "namespace": "n"}, "spec": {"secretRefs": [{"name": "one"}, {"name": "two"}]}}`,
		"/api/v1/namespaces/n/secrets/one": fmt.Sprintf(`{"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "one", "namespace": "n"}, "data": {"data.yaml.br": %q}}`, encoded(compressed.Bytes())),
		"/api/v1/namespaces/n/secrets/two": `{"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "two", "namespace": "n"}, "data": {}}`,
	}
	documents := "---\n# index 0 in 'data.yaml.br' in secret 'n/one'\napiVersion: v1\ndata:\n  a: b\nkind: ConfigMap\nmetadata:\n  name: c\n" +
		"---\n# index 1 in 'data.yaml.br' in secret 'n/one'\napiVersion: v1\nkind: Secret\nmetadata:\n  name: s\nstringData:\n  password: '***'\n"
	for arguments, want := range map[string]string{
		"manifests mr/x -n n": documents, "manifests x -n n -o yaml": documents, "manifests x -n n -o name": "ConfigMap c\nSecret s\n",
		"manifests x -n n -o jsonpath={.items[*].kind}": "ConfigMap Secret",
	} {
		code, out, _ := answering(t, objects, strings.Fields(arguments)...)
		expect.True(t, code == 0 && out == want, "CLI-53/%s: exit code %d:\n%s", arguments, code, out)
	}
	code, out, _ := answering(t, objects, "manifests", "y", "-n", "n")
	expect.True(t, code == 2 && out == "Error: ManagedResource n/y does not exist\n", "CLI-53: exit code %d: %s", code, out)
	objects["/api/v1/namespaces/n/secrets/two"] = fmt.Sprintf(`{"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "two", "namespace": "n"}, "data": {"a.yaml": %q}}`, encoded([]byte("loud")))
	if code, out, _ := answering(t, objects, "manifests", "x", "-n", "n"); code != 2 || !strings.HasPrefix(out, documents+"Error: Could not decode all new resources: [Could not decode resource at index 0 in 'a.yaml'") {
		t.Errorf("CLI-53: exit code %d: %s", code, out)
	}
	delete(objects, "/api/v1/namespaces/n/secrets/two")
	if code, out, _ := answering(t, objects, "manifests", "x", "-n", "n"); code != 2 || !strings.HasPrefix(out, "Error: Secret n/two was not read: ") {
		t.Errorf("CLI-53: exit code %d: %s", code, out)
	}
}

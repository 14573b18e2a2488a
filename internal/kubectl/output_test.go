package kubectl

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/espalier-project/espalier/internal/process"
	"github.com/espalier-project/espalier/test/env/kubeconfig"
	"github.com/espalier-project/espalier/test/expect"
)

// TestFormats: CLI-52: -o takes the forms of kubectl, and JSONPath templates with or without braces.
func TestFormats(t *testing.T) {
	value := []map[string]any{{"name": "a", "state": "fine"}, {"name": "b"}}
	for text, want := range map[string]string{
		"json":                          "[\n  {\n    \"name\": \"a\",\n    \"state\": \"fine\"\n  },\n  {\n    \"name\": \"b\"\n  }\n]\n",
		"yaml":                          "- name: a\n  state: fine\n- name: b\n",
		"jsonpath={[*].name}":           "a b",
		"jsonpath={range [*]}{.state};": "",
		"jsonpath={[0].state}{\"\\n\"}": "fine\n",
		"jsonpath=[1].name":             "",
		"jsonpath={[1].state}":          "",
	} {
		var f format
		if err := f.Set(text); err != nil {
			expect.Equal(t, "", want, "CLI-52/%s: %v", text, err)
			continue
		}
		var out strings.Builder
		if err := encode(&out, f, value); !f.structured() || err != nil || want != "" && out.String() != want {
			t.Errorf("CLI-52/%s: %q, %v", text, &out, err)
		}
	}
	for _, text := range []string{"table", "jsonpath=", "jsonpath", "jsonpath={.a"} {
		var f format
		expect.Error(t, f.Set(text), "CLI-52: %s is accepted", text)
	}
}

// answering runs a verb against an API server with these objects by path, and returns what it was asked for. An empty
// object is forbidden.
func answering(t *testing.T, objects map[string]string, arguments ...string) (code int, out string, asked []string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if discover(w, r) {
			return
		}
		asked = append(asked, r.URL.Path+"?"+r.URL.Query().Get("labelSelector"))
		w.Header().Set("Content-Type", "application/json")
		if object, found := objects[r.URL.Path]; found && object == "" {
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "forbidden"}`))
			return
		} else if found {
			_, _ = w.Write([]byte(object))
			return
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404, "details": {"name": "x"}}`))
	}))
	defer server.Close()
	var text strings.Builder
	code = process.Execute(Command(), append(arguments, "--kubeconfig", kubeconfig.File(t, server.URL)), &text, &text)
	return code, text.String(), asked
}

// TestSelectors: CLI-52: tree and diff take a label selector in place of a name.
func TestSelectors(t *testing.T) {
	const path = "/apis/resources.gardener.cloud/v1alpha1/namespaces/n/managedresources"
	list := map[string]string{
		path: `{"kind": "ManagedResourceList", "apiVersion": "resources.gardener.cloud/v1alpha1", "metadata": {}, "items": [
			{"kind": "ManagedResource", "apiVersion": "resources.gardener.cloud/v1alpha1", "metadata": {"name": "a", "namespace": "n"}, "spec": {"secretRefs": []}},
			{"kind": "ManagedResource", "apiVersion": "resources.gardener.cloud/v1alpha1", "metadata": {"name": "b", "namespace": "n", "annotations": {"resources.gardener.cloud/ignore": "true"}},
			"spec": {"secretRefs": []}}]}`,
		"/api/v1/namespaces/n/events": `{"kind": "EventList", "apiVersion": "v1", "metadata": {}, "items": []}`,
	}
	for arguments, want := range map[string]string{
		"tree -n n -l a=b -o name": "managedresource.resources.gardener.cloud/a\nmanagedresource.resources.gardener.cloud/b\n",
		"diff -n n -l a=b -o json": "\"notes\": [\n    \"ManagedResource n/b is ignored: the next run changes nothing\"\n  ]\n}\n",
	} {
		code, out, asked := answering(t, list, strings.Fields(arguments)...)
		if code != 0 && strings.HasPrefix(arguments, "diff") || !strings.HasSuffix(out, want) || len(asked) == 0 || asked[0] != path+"?a=b" {
			t.Errorf("CLI-52/%s: exit code %d, asked %v:\n%s", arguments, code, asked, out)
		}
	}
	for _, arguments := range []string{"tree x -l a=b", "diff x -l a=b", "diff -l a=b -f file", "diff"} {
		code, out, asked := answering(t, list, strings.Fields(arguments)...)
		expect.True(t, code == 2 && len(asked) == 0, "CLI-52/%s: exit code %d, asked %v:\n%s", arguments, code, asked, out)
	}
}

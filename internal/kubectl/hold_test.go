package kubectl

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/env/kubeconfig"
	"github.com/espalier-project/espalier/test/expect"
)

// annotated serves objects by their paths, and takes merge patches of their annotations.
type annotated struct {
	objects map[string]map[string]any
	patches int
}

func (a *annotated) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if discover(w, r) {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	object := a.objects[r.URL.Path]
	if object == nil {
		w.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"details":{"name":"x"}}`)
		return
	}
	if r.Method == http.MethodPatch {
		a.patches++
		var patch struct {
			Metadata struct{ Annotations map[string]any }
		}
		_ = json.NewDecoder(r.Body).Decode(&patch)
		present := object["metadata"].(map[string]any)["annotations"].(map[string]any)
		for name, text := range patch.Metadata.Annotations {
			if present[name] = text; text == nil {
				delete(present, name)
			}
		}
	}
	_ = json.NewEncoder(w).Encode(object)
}

func named(apiVersion, kind string, annotations map[string]any) map[string]any {
	return map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": "x", "namespace": "n", "uid": "u", "annotations": annotations}}
}

// CLI-30: hold and release set and remove the annotations, and nothing else; what resource-manager would refuse is not written.
func TestHoldAndRelease(t *testing.T) {
	const deployment, orphan, mr = "/apis/apps/v1/namespaces/n/deployments/x", "/api/v1/namespaces/n/configmaps/x", "/apis/resources.gardener.cloud/v1alpha1/namespaces/n/managedresources/x"
	for name, tc := range map[string]struct {
		release bool
		object  string
		request holdRequest
		path    string
		before  map[string]any
		after   map[string]any
		out     string
		err     string
	}{
		"CLI-30/an object": {
			object: "deploy x", request: holdRequest{lasts: 2 * time.Hour, reason: "ticket 5"}, path: deployment,
			before: map[string]any{resourcesv1alpha1.AnnotationOrigin: "n/m"},
			after: map[string]any{resourcesv1alpha1.AnnotationOrigin: "n/m", resourcesv1alpha1.AnnotationLeaveAloneUntil: "2026-11-24T20:00:00Z",
				resourcesv1alpha1.AnnotationLeaveAloneReason: "ticket 5"},
			out: `Deployment n/x is left alone until 2026-11-24T20:00:00Z, for the reason "ticket 5"` + "\n",
		},
		"CLI-30/a ManagedResource, once more and without a reason": {
			object: "mr x", request: holdRequest{lasts: 24 * time.Hour}, path: mr,
			before: map[string]any{resourcesv1alpha1.AnnotationLeaveAloneUntil: "2026-11-24T20:00:00Z", resourcesv1alpha1.AnnotationLeaveAloneReason: "ticket 5"},
			after:  map[string]any{resourcesv1alpha1.AnnotationLeaveAloneUntil: "2026-11-25T18:00:00Z"},
			out:    "all of ManagedResource n/x is left alone until 2026-11-25T18:00:00Z\n",
		},
		"CLI-30/release": {
			release: true, object: "deployment x", path: deployment,
			before: map[string]any{"a": "b", resourcesv1alpha1.AnnotationLeaveAloneUntil: "2026-11-24T20:00:00Z", resourcesv1alpha1.AnnotationLeaveAloneReason: "y"},
			after:  map[string]any{"a": "b"}, out: "Deployment n/x: hold removed\n",
		},
		"CLI-30/release of what is not held": {release: true, object: "deployment x", path: deployment, before: map[string]any{}, after: map[string]any{}, out: "Deployment n/x has no hold\n"},
		"CLI-30/more than a day":             {object: "deploy x", request: holdRequest{lasts: 25 * time.Hour}, path: deployment, before: map[string]any{}, after: map[string]any{}, err: "24h0m0s at most"},
		"CLI-30/no time":                     {object: "deploy x", request: holdRequest{}, path: deployment, before: map[string]any{}, after: map[string]any{}, err: "a hold lasts more than nothing"},
		"CLI-30/nobody keeps it":             {object: "cm x", request: holdRequest{lasts: time.Hour}, path: orphan, before: map[string]any{}, after: map[string]any{}, err: "ConfigMap n/x has no origin"},
		"CLI-30/it is not there":             {object: "cm x", request: holdRequest{lasts: time.Hour}, err: "ConfigMap n/x is not there"},
	} {
		t.Run(name, func(t *testing.T) {
			store := &annotated{objects: map[string]map[string]any{}}
			if tc.path != "" {
				store.objects[tc.path] = named("v1", "X", tc.before)
			}
			server := httptest.NewServer(store)
			defer server.Close()
			to, out := &connection{}, &strings.Builder{}
			to.parse(t, "-n", "n", "--kubeconfig", kubeconfig.File(t, server.URL))
			tc.request.now = now
			var err error
			if tc.release {
				err = releaseHold(t.Context(), to, strings.Fields(tc.object), out)
			} else {
				err = tc.request.set(t.Context(), to, strings.Fields(tc.object), out)
			}
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) || out.String() != tc.out {
				t.Fatalf("%v, it prints %q", err, out)
			}
			if err != nil && store.patches > 0 {
				t.Error("it wrote something")
			}
			if tc.path != "" {
				expect.DeepEqual(t, store.objects[tc.path]["metadata"].(map[string]any)["annotations"], tc.after)
			}
		})
	}
}

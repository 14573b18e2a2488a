package controller

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/target"
	"github.com/espalier-project/espalier/test/expect"
)

// panicking is a transport that panics in the goroutine of whoever sends a request of a method for an object a.
type panicking struct {
	http.RoundTripper
	method atomic.Pointer[string]
}

func (p *panicking) RoundTrip(r *http.Request) (*http.Response, error) {
	if method := p.method.Load(); method != nil && r.Method == *method && strings.HasSuffix(r.URL.Path, "/configmaps/a") {
		panic("content of a")
	}
	return p.RoundTripper.RoundTrip(r)
}

// MRC-12, COM-5, MRB-34: a panic while one object is worked on is that object's error, without content; the others go on, and so does a later run.
func TestPanicIsOneObjectsError(t *testing.T) {
	t.Parallel()
	const ignored = "annotations: {resources.gardener.cloud/mode: Ignore}"
	for name, tc := range map[string]struct {
		method    string
		manifests []string
		says      string
	}{
		"apply":   {http.MethodPut, []string{configMap("a", "2", ""), configMap("b", "2", "")}, `ApplyFailed: error during apply of object "v1/ConfigMap/n/a": panic`},
		"delete":  {http.MethodDelete, []string{configMap("b", "2", "")}, `deletion of old resource "v1/ConfigMap/n/a" is still pending: panic`},
		"release": {http.MethodPatch, []string{configMap("a", "2", ignored), configMap("b", "2", "")}, `1 error occurred: releasing object "v1/ConfigMap/n/a": panic`},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(c *config.ManagedResourceControllerConfig) { c.ApplyWhileDeletionPending = ptr.To(true) })
			server := httptest.NewServer(f.target)
			t.Cleanup(server.Close)
			transport := &panicking{RoundTripper: http.DefaultTransport}
			to, err := target.NewClient(&rest.Config{Host: server.URL, QPS: -1}, &http.Client{Transport: transport}, target.NewMetrics(prometheus.NewRegistry()))
			f.must(err)
			f.configure(func(o *Options) { o.Target = to })
			f.apply("m", "a=1", "b=1")
			transport.method.Store(&tc.method)
			f.manifests("m", "2", tc.manifests...)
			said := ""
			f.onSource.SubResourcePatch = func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				err := c.SubResource(sub).Patch(ctx, object, patch, opts...)
				said += f.condition("m") + "\n"
				return err
			}
			_, err = f.run("m")
			expect.True(t, strings.Contains(said, tc.says) && !strings.Contains(said+fmt.Sprint(err)+f.events(), "content of a"),
				"it said %s; %v; events %s", said, err, f.events())
			if value, _ := f.target.value("b"); value != "2" && name != "release" {
				t.Errorf("the other object was not applied: %s", value)
			}
			if name == "apply" {
				told := 0
				f.Tracker.Subscribe(objects.Subscriber{Drift: func(objects.Owner, objects.ID) { told++ }})
				f.Tracker.MarkOutOfSync(configMapKey("a"))
				expect.Equal(t, told, 1, "MRB-34: notices of drift after the panic: its ticket is still open")
			}
			transport.method.Store(nil)
			f.clock.SetTime(f.clock.Now().Add(pendingRetry))
			f.complete("m")
			expect.True(t, strings.HasPrefix(f.condition("m"), "True"), "it says %s", f.condition("m"))
		})
	}
}

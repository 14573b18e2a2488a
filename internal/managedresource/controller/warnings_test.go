package controller

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/espalier-project/espalier/internal/cluster"
	"github.com/espalier-project/espalier/internal/managedresource/target"
	"github.com/espalier-project/espalier/test/expect"
)

// TestWarnings: an Event names the fields that the API server drops, and no text that may quote a value; a metric counts.
func TestWarnings(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			for _, text := range []string{`unknown field \"metadata.lables\"`, `unknown field \"dta\"`, `policy p denied: password is hunter2`} {
				w.Header().Add("Warning", `299 - "`+text+`"`)
			}
		}
		f.target.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	registry := prometheus.NewRegistry()
	to, err := target.NewClient(&rest.Config{Host: server.URL, QPS: -1, WarningHandlerWithContext: cluster.NewWarnings(f.clock)}, server.Client(), target.NewMetrics(registry))
	f.configure(func(o *Options) { o.Target = to })
	f.must(err)
	f.apply("m", "a=1", "b=2")
	told := f.events()
	for _, object := range []string{"n/a", "n/b"} {
		want := `APIWarning: The API server drops fields of ConfigMap "` + object + `" that it does not know, or that are there twice: dta, metadata.lables`
		expect.Equal(t, strings.Count(told, want), 1, "CCH-5, MRB-46: there is no Event %s among\n%s", want, told)
	}
	expect.True(t, strings.Count(told, "The API server warns about ConfigMap") == 1 && !strings.Contains(told, "hunter2"),
		"CCH-5, MRB-46: a text that comes twice is told once, and without the text:\n%s", told)
	families, err := registry.Gather()
	f.must(err)
	counted := map[string]float64{}
	for _, family := range families {
		if family.GetName() == "espalier_target_warnings_total" {
			for _, m := range family.GetMetric() {
				counted[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	expect.DeepEqual(t, counted, map[string]float64{"field": 4, "other": 2}, "MRB-46")
}

package process

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/component-base/version"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestBuildInfo: a process tells its version once, however often it is registered.
func TestBuildInfo(t *testing.T) {
	registry := prometheus.NewRegistry()
	unknownKeys(registry).Set(3)
	first, second := Metrics(registry), Metrics(registry)
	for i := range first {
		expect.Equal(t, first[i], second[i], "%v is registered twice", first[i])
	}
	families, err := registry.Gather()
	must.Succeed(t, err)
	got := map[string]float64{}
	labels := map[string]string{}
	for _, family := range families {
		metric := family.GetMetric()[0]
		got[family.GetName()] = metric.GetGauge().GetValue()
		for _, label := range metric.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
	}
	info := version.Get()
	if got["espalier_build_info"] != 1 || labels["version"] != info.GitVersion || labels["commit"] != info.GitCommit || labels["go_version"] != info.GoVersion {
		t.Errorf("build info is %v with %v", got, labels)
	}
	expect.Equal(t, got["espalier_config_unknown_keys"], 3, "OPB-1/registering once more changes the number of unknown keys: %v", got)
}

// TestMemoryIsTold: the Go runtime's memory has the name that the dashboard of admission-controller falls back to, as gardener-operator's ServiceMonitor
// keeps go_* and drops process_* (ADM-39).
func TestMemoryIsTold(t *testing.T) {
	registry := prometheus.NewRegistry()
	registerOwn(registry)
	families, err := registry.Gather()
	must.Succeed(t, err)
	for _, family := range families {
		if family.GetName() == "go_memory_classes_total_bytes" {
			return
		}
	}
	t.Error("ADM-39/there is no go_memory_classes_total_bytes")
}

package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/espalier-project/espalier/internal/executable/resourcemanager"
	"github.com/espalier-project/espalier/internal/gen/reference"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/must"
)

// TestMetricsOfAll: with all features on nothing is shown that the page about metrics does not have, and what features show without having
// done anything yet is there. Its API servers do not stream what there is, so that all of it is listed, under the rights that are printed.
func TestMetricsOfAll(t *testing.T) {
	executable := resourcemanager.Executable(nil, nil)
	text, err := json.Marshal(executable.Everything())
	must.Succeed(t, err)
	config := map[string]any{}
	must.Succeed(t, json.Unmarshal(text, &config))
	for _, own := range []string{"server", "leaderElection", "sourceClientConnection", "targetClientConnection"} {
		delete(config, own)
	}
	config["controllers"].(map[string]any)["clusterID"] = "all"
	delete(config["debugging"].(map[string]any), "authentication") // Whoever reads the page here has no token.
	p := start(t, config, func(o *harness.ProcessOptions) { o.Env = []string{"KUBE_FEATURE_WatchListClient=false"} })
	page := reference.Metrics(executable)
	eventually(t, func() error {
		names, wrong, err := p.Shown(page)
		if err != nil {
			return err
		}
		if len(wrong) > 0 {
			t.Fatal(wrong)
		}
		for _, m := range page {
			if len(m.Labels) == 0 && !slices.Contains(names, m.Name) {
				return fmt.Errorf("%s is not shown: %s", m.Name, p.Output())
			}
		}
		for _, prefix := range []string{"workqueue_adds_total", "controller_runtime_active_workers", "go_goroutines"} {
			if !slices.Contains(names, prefix) {
				return fmt.Errorf("%s is not shown", prefix)
			}
		}
		return nil
	})
}

package garden

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/seedauthorizer/restriction"
	"github.com/espalier-project/espalier/internal/seedauthorizer/rules"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestLookUps: whatever the authorizers may look up is looked up when nobody has seen it, and the rights that are printed are enough (SA-12).
func TestLookUps(t *testing.T) {
	for _, c := range []struct {
		path, user, group string
		reads             []feature.Read
	}{
		{rules.SeedPath, "gardener.cloud:system:seed:", "gardener.cloud:system:seeds", rules.SeedReads()},
		{rules.ShootPath, "gardener.cloud:system:shoot:garden:", "gardener.cloud:system:shoots", rules.ShootReads()},
	} {
		for i, read := range c.reads {
			namespace := namespaceFor(t, read)
			if c.path == rules.ShootPath { // For a client whose Shoot is not self-hosted nothing is looked up (SHI-3).
				create(t, "Shoot garden/look-up-"+strconv.Itoa(i), selfHosted)
				eventually(t, "SHI-3: the client counts", func() error {
					review := review(c.user+"look-up-"+strconv.Itoa(i), c.group, `{"verb":"create","group":"","resource":"events","namespace":"garden"}`)
					if _, answer := post(t, suite.Process, c.path, "application/json", review); !strings.Contains(answer, `"allowed":true`) {
						return errors.New(answer)
					}
					return nil
				})
			}
			before, failed := lookUps(t)
			for _, verb := range []string{"get", "patch", "delete"} {
				attributes := fmt.Sprintf(`{"verb":%q,"group":%q,"resource":%q,"namespace":%q,"name":"nobody"}`, verb, read.Kind.Group, read.Resource, namespace)
				// Each client has a budget of its own.
				post(t, suite.Process, c.path, "application/json", review(c.user+"look-up-"+strconv.Itoa(i), c.group, attributes))
			}
			after, failures := lookUps(t)
			expect.True(t, after != before && failures == failed,
				"%s: %s.%s: %d look-ups, %d of which failed", c.path, read.Resource, read.Kind.Group, after-before, failures-failed)
		}
	}
}

// namespaceFor is where an object may be of a kind that is read; kinds without namespaces are nowhere.
func namespaceFor(t *testing.T, read feature.Read) string {
	t.Helper()
	mapper := suite.Client.RESTMapper()
	kind, err := mapper.KindFor(schema.GroupVersionResource{Group: read.Kind.Group, Resource: read.Resource})
	must.Succeed(t, err)
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	must.Succeed(t, err)
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return ""
	}
	return "garden"
}

var counted = regexp.MustCompile(`(?m)^gardener_admission_controller_seed_authorizer_live_reads_total\{outcome="(\w+)"\} (\d+)$`)

// lookUps counts those of the authorizers, and those of them that failed.
func lookUps(t *testing.T) (all, failed int) {
	t.Helper()
	_, text := suite.Process.Get(suite.Process.Metrics, "/metrics")
	for _, line := range counted.FindAllStringSubmatch(text, -1) {
		n, err := strconv.Atoi(line[2])
		must.Succeed(t, err)
		if all += n; line[1] == "error" || line[1] == "limited" {
			failed += n
		}
	}
	return all, failed
}

// TestExistence: of each kind whose creation may be refused it is looked up whether the object exists, and the rights that are printed are
// enough (RES-2).
func TestExistence(t *testing.T) {
	for i, read := range restriction.SeedReads() {
		namespace := namespaceFor(t, read)
		body := fmt.Appendf(nil, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","namespace":%q,"name":"nobody","resource":{"group":%q,"version":"v1beta1","resource":%q},"userInfo":{"username":"gardener.cloud:system:seed:existence-%d","groups":["gardener.cloud:system:seeds"]},"object":{}}}`,
			namespace, read.Kind.Group, read.Resource, i)
		if response, answer := post(t, suite.Process, restriction.SeedPath, "application/json", body); response.StatusCode != http.StatusOK || strings.Contains(answer, "forbidden") && strings.Contains(answer, "cannot") {
			t.Errorf("%s.%s: %d %s", read.Resource, read.Kind.Group, response.StatusCode, answer)
		}
	}
}

// TestPages: where API servers do not stream what there is, it is listed page by page; the graph and what webhooks read become complete, and
// the rights that are printed are enough.
func TestPages(t *testing.T) {
	create(t, "Namespace garden-pages", "")
	create(t, "SecretBinding garden-pages/aws", "{provider: {type: aws}, secretRef: {name: labelled, namespace: garden-pages}}")
	p, err := suite.Run(harness.GardenProcessOptions{
		Binary: suite.Binary, Dir: filepath.Join(suite.Dir, "pages"), AnyPort: true, Config: ordinary(), Env: []string{"KUBE_FEATURE_WatchListClient=false"},
	})
	must.Succeed(t, err)
	defer p.Stop()
	must.Succeed(t, p.AwaitReady(t.Context()))
	secret := []byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","namespace":"garden-pages","name":"labelled","resource":{"version":"v1","resource":"secrets"},"object":{"metadata":{"name":"labelled"}}}}`)
	eventually(t, "a label by what is listed", func() error {
		if response, answer := post(t, p, "/webhooks/sync-provider-secret-labels", "application/json", secret); response.StatusCode != http.StatusOK || !strings.Contains(answer, `"patch":`) {
			return fmt.Errorf("%d %s", response.StatusCode, answer)
		}
		return nil
	})
}

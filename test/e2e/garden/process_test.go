package garden

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/espalier-project/espalier/internal/executable/admissioncontroller"
	"github.com/espalier-project/espalier/internal/gen/reference"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

const authPath = "/webhooks/auth/seed"

func review(user, group, attributes string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":%q,"groups":[%q],"resourceAttributes":%s}}`, user, group, attributes)
}

func https(t *testing.T) *http.Client {
	t.Helper()
	c, err := suite.HTTPS()
	must.Succeed(t, err)
	return c
}

func post(t *testing.T, p *harness.Process, path, contentType string, body []byte) (*http.Response, string) {
	t.Helper()
	response, answer, err := p.Ask(https(t), http.MethodPost, path, contentType, body)
	must.Succeed(t, err)
	return response, answer
}

func TestEndpoint(t *testing.T) {
	response, answer := post(t, suite.Process, authPath, "application/json", review("foo", "bar", `{"verb":"get","resource":"secrets"}`))
	if response.StatusCode != http.StatusOK || response.ProtoMajor != 2 || answer != `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","metadata":{},"spec":{},"status":{"allowed":false}}`+"\n" {
		t.Errorf("PRC-40, PRC-43, PRC-44: status %d over %s: %s", response.StatusCode, response.Proto, answer)
	}
	if response, answer = post(t, suite.Process, authPath, "text/plain", []byte("{}")); response.StatusCode != http.StatusOK || !strings.Contains(answer, `"evaluationError":"400 contentType=text/plain, expected application/json"`) {
		t.Errorf("AE-4: status %d: %s", response.StatusCode, answer)
	}
	if response, answer = post(t, suite.Process, authPath, "application/json", []byte("{")); response.StatusCode != http.StatusOK || !strings.Contains(answer, `"evaluationError":"400 couldn't get version/kind`) {
		t.Errorf("AE-5: status %d: %s", response.StatusCode, answer)
	}
	large := fmt.Appendf(nil, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","object":{"x":"%s"}}}`, bytes.Repeat([]byte("x"), 8<<20))
	if _, answer = post(t, suite.Process, "/webhooks/admission/seedrestriction", "application/json", large); !strings.Contains(answer, "limit is 7340032 bytes") {
		t.Errorf("PRC-41: %.300s", answer)
	}
}

// TestMetrics is OBS-21 and OBS-22, BH-GR-6.
func TestMetrics(t *testing.T) {
	count := func() string {
		_, metrics := suite.Process.Get(suite.Process.Metrics, "/metrics")
		return metrics
	}
	requests := regexp.MustCompile(`controller_runtime_webhook_requests_total\{code="200",webhook="/webhooks/auth/seed"\} (\S+)`)
	before := requests.FindStringSubmatch(count())
	post(t, suite.Process, authPath, "application/json", review("gardener.cloud:system:seed:metrics", "gardener.cloud:system:seeds", `{"verb":"get","group":"core.gardener.cloud","resource":"cloudprofiles","name":"nobody"}`))
	create(t, "Project metrics", "spec: {namespace: garden-metrics}")
	eventually(t, "metrics", func() error {
		metrics := count()
		after := requests.FindStringSubmatch(metrics)
		if len(before) != 2 || len(after) != 2 || before[1] == after[1] {
			return fmt.Errorf("operations 7.1: requests went from %v to %v", before, after)
		}
		for _, line := range []string{
			`gardener_admission_controller_seed_authorizer_graph_update_duration_seconds_bucket{kind="Project",operation="CreateOrUpdate",le="0.0001"}`,
			`gardener_admission_controller_seed_authorizer_graph_update_duration_seconds_bucket{kind="Project",operation="CreateOrUpdate",le="0.2048"}`,
			`gardener_admission_controller_seed_authorizer_graph_path_check_duration_seconds_bucket{fromKind="CloudProfile",toKind="Seed",le="1e-07"}`,
			`gardener_admission_controller_seed_authorizer_graph_path_check_duration_seconds_bucket{fromKind="CloudProfile",toKind="Seed",le="0.2048"}`,
			`gardener_admission_controller_seed_authorizer_decisions_total{outcome="no_opinion",rule="SR-5"}`,
			`gardener_admission_controller_seed_authorizer_graph_vertices`, `gardener_admission_controller_seed_authorizer_graph_edges`,
			`gardener_admission_controller_seed_authorizer_graph_lag_seconds_count{kind="Project"}`,
			`gardener_admission_controller_seed_authorizer_live_reads_total{outcome="limited"}`,
			`gardener_admission_controller_seed_authorizer_graph_last_contact_seconds{kind="Project"}`,
			`gardener_admission_controller_seed_authorizer_graph_undecodable_total{kind="Project"} 0`,
		} {
			if !strings.Contains(metrics, line) {
				rule := "operations 7.1"
				switch {
				case strings.Contains(line, "graph_update_duration"):
					rule = "OBS-21/BH-GR-6"
				case strings.Contains(line, "graph_path_check_duration"):
					rule = "OBS-22"
				}
				return fmt.Errorf("%s: there is no %s", rule, line)
			}
		}
		return nil
	})
}

// TestMetricsPage: nothing is shown that the page about metrics does not have.
func TestMetricsPage(t *testing.T) {
	page := reference.Metrics(admissioncontroller.Executable(nil, nil))
	names, wrong, err := suite.Process.Shown(page)
	expect.True(t, err == nil && len(wrong) == 0, "%v, %v", wrong, err)
	for _, m := range page {
		if len(m.Labels) == 0 && !slices.Contains(names, m.Name) {
			t.Errorf("%s is not shown", m.Name)
		}
	}
}

// TestDebugPage is BH-GR-7 to BH-GR-9, PRC-45 for what only a process shows.
func TestDebugPage(t *testing.T) {
	create(t, "Project pages", "spec: {namespace: garden-pages}")
	eventually(t, "BH-GR-8", func() error {
		response, page, err := suite.Process.Ask(https(t), http.MethodGet, "/debug/resource-dependency-graph?kind=Project&name=pages", "", nil)
		if err != nil {
			return err
		}
		if response.Header.Get("Content-Type") != "text/html; charset=utf-8" || !strings.Contains(page, ">Namespace</a>:<a href=\"?kind=Namespace&amp;name=garden-pages\">garden-pages</a><br />") {
			return fmt.Errorf("got %q: %s", response.Header.Get("Content-Type"), page)
		}
		return nil
	})
	var explained struct {
		Explanation struct{ Decision, Rule, Step string }
	}
	_, answer, err := suite.Process.Ask(https(t), http.MethodGet, "/debug/resource-dependency-graph?explain&format=json&user=gardener.cloud:system:seed:x&group=gardener.cloud:system:seeds&verb=get&resource=secrets&objectNamespace=default&objectName=x", "", nil)
	must.Succeed(t, err)
	if err := json.Unmarshal([]byte(answer), &explained); err != nil || explained.Explanation.Rule != "SR-22" || explained.Explanation.Decision != "NoOpinion" {
		t.Errorf("explain: %v: %s", err, answer)
	}
	quiet, err := suite.Run(harness.GardenProcessOptions{Binary: suite.Binary, Dir: filepath.Join(suite.Dir, "quiet"), AnyPort: true})
	must.Succeed(t, err)
	defer quiet.Stop()
	must.Succeed(t, quiet.AwaitReady(t.Context()))
	if response, _, err := quiet.Ask(https(t), http.MethodGet, "/debug/resource-dependency-graph", "", nil); err != nil || response.StatusCode != http.StatusNotFound {
		t.Errorf("BH-GR-10, DBG-1: the page is there by default: %v, %v", response, err)
	}
	if output := quiet.Output(); strings.Contains(output, `"level":"error"`) {
		t.Errorf("there are errors in the log:\n%s", output)
	}
}

// TestNotSynced is AE-22 and B-3: without rights to watch nothing is known, and nothing is allowed.
func TestNotSynced(t *testing.T) {
	p, err := suite.Run(harness.GardenProcessOptions{
		Binary: suite.Binary, Dir: filepath.Join(suite.Dir, "blind"), AnyPort: true,
		Env: []string{"KUBECONFIG=" + anonymousKubeconfig(t)},
	})
	must.Succeed(t, err)
	defer p.Stop()
	eventually(t, "B-3", func() error {
		_, answer, err := p.Ask(https(t), http.MethodPost, authPath, "application/json", review("gardener.cloud:system:seed:x", "gardener.cloud:system:seeds", `{"verb":"create","resource":"secrets"}`))
		if err != nil {
			return err
		}
		expect.Contains(t, answer, `"allowed":false,"evaluationError":"503 not synced yet"`, "B-3")
		return nil
	})
	// Restrictions ask the graph, too: what it does not have yet is no reason for a final 403.
	create := []byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","namespace":"garden","name":"x","resource":{"version":"v1","resource":"secrets"},"userInfo":{"username":"gardener.cloud:system:seed:x","groups":["gardener.cloud:system:seeds"]},"object":{}}}`)
	for _, path := range []string{"/webhooks/admission/seedrestriction", "/webhooks/admission/shootrestriction"} {
		if response, answer := post(t, p, path, "application/json", create); response.StatusCode != http.StatusServiceUnavailable || !strings.Contains(answer, "not synced yet") {
			t.Errorf("B-3, %s: %d %s", path, response.StatusCode, answer)
		}
	}
	if status, body := p.Get(p.Health, "/readyz/informer-sync"); status != http.StatusInternalServerError || !strings.Contains(body, "informers not synced yet") {
		t.Errorf("PRC-58: %d %s", status, body)
	}
	if status, body := p.Get(p.Health, "/healthz"); status != http.StatusOK {
		t.Errorf("AE-22/PRC-57: %d %s", status, body)
	}
	if _, body := p.Get(p.Health, "/readyz?verbose"); !strings.Contains(body, "[+]watch-contact ok") {
		t.Errorf("watch-contact: %s", body)
	}
}

func anonymousKubeconfig(t *testing.T) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(suite.Kubeconfig)
	must.Succeed(t, err)
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: "nobody"}
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	must.Succeed(t, clientcmd.WriteToFile(*config, file))
	return file
}

// runAgain starts the suite's process once more, after it was killed, and waits until it knows the garden.
func runAgain(t *testing.T) {
	t.Helper()
	var err error
	if suite.Process, err = suite.Run(harness.GardenProcessOptions{Binary: suite.Binary, Dir: filepath.Join(suite.Dir, "again-"+t.Name()), Config: ordinary()}); err != nil {
		t.Fatal(err)
	}
	must.Succeed(t, suite.Process.AwaitReady(t.Context()))
}

// TestKill is ADM-6 and AE-24: while nobody answers, seeds are refused and nobody else notices; whoever starts next knows everything.
func TestKill(t *testing.T) {
	a, _, ns := landscape(t, "kill")
	cl := gardenlet(t, a)
	read := func() error { return do(t.Context(), cl, "get", object(t, "Secret "+ns+"/creds-"+a, "")) }
	eventually(t, "before", read)
	suite.Process.Kill()
	expect.Error(t, read(), "ADM-6: a seed is allowed something while nobody decides")
	create(t, "Secret "+ns+"/made-meanwhile", "")
	create(t, "ConfigMap "+ns+"/audit-new", "")
	must.Succeed(t, suite.Client.Patch(t.Context(), object(t, "Shoot "+ns+"/on-"+a, ""), mergePatch(`{"spec":{"kubernetes":{"kubeAPIServer":{"auditConfig":{"auditPolicy":{"configMapRef":{"name":"audit-new"}}}}}}}`)))
	runAgain(t)
	eventually(t, "after", read)
	expect.Succeed(t, do(t.Context(), cl, "get", object(t, "ConfigMap "+ns+"/audit-new", "")), "what changed meanwhile")
	expect.Succeed(t, forbidden(do(t.Context(), cl, "get", object(t, "ConfigMap "+ns+"/audit-"+a, "")), "no relationship found"),
		"what was dropped meanwhile")
}

// TestAPIServerRestarts: what changed while the watches were gone arrives, deletions included (GR-5).
func TestAPIServerRestarts(t *testing.T) {
	a, _, ns := landscape(t, "restart")
	cl := gardenlet(t, a)
	read := func() error { return do(t.Context(), cl, "get", object(t, "Secret "+ns+"/creds-"+a, "")) }
	eventually(t, "before", read)
	suite.StopAPIServer()
	must.Succeed(t, suite.StartAPIServer(t.Context()))
	eventually(t, "afterwards", read)
	must.Succeed(t, suite.Client.Delete(t.Context(), object(t, "SecretBinding "+ns+"/binding-"+a, "")))
	eventually(t, "the binding is gone", func() error { return forbidden(read(), "no relationship found") })
}

// TestScopes is D-1, D-3, D-4, BH-SA-27, SEL through the API, with an instance of its own behind the same kube-apiserver.
func TestScopes(t *testing.T) {
	a, b, ns := landscape(t, "scope")
	p, err := suite.Run(harness.GardenProcessOptions{Binary: suite.Binary, Dir: filepath.Join(suite.Dir, "related"), AnyPort: true,
		Config: map[string]any{"server": map[string]any{"seedAuthorizer": map[string]any{"readScope": "Related", "writeScope": "Owned"}}}})
	must.Succeed(t, err)
	defer p.Stop()
	must.Succeed(t, p.AwaitReady(t.Context()))
	for attributes, want := range map[string]string{
		`{"verb":"list","group":"core.gardener.cloud","resource":"shoots"}`: "must specify field or label selector for name " + a,
		`{"verb":"list","group":"core.gardener.cloud","resource":"shoots","labelSelector":{"requirements":[{"key":"name.seed.gardener.cloud/` + a + `","operator":"In","values":["true"]}]}}`: `"allowed":true`,
		`{"verb":"get","group":"core.gardener.cloud","resource":"shoots","namespace":"` + ns + `","name":"on-` + b + `"}`:                                                                     "no relationship found",
		`{"verb":"get","group":"core.gardener.cloud","resource":"shoots","namespace":"` + ns + `","name":"on-` + a + `"}`:                                                                     `"allowed":true`,
		`{"verb":"get","resource":"namespaces","namespace":"garden","name":"garden"}`:                                                                                                         "no relationship found",
		`{"verb":"watch","resource":"configmaps","namespace":"kube-system","name":"cluster-identity"}`:                                                                                        `"allowed":true`,
		`{"verb":"get","group":"core.gardener.cloud","resource":"seeds","name":"` + a + `"}`:                                                                                                  `"allowed":true`,
		`{"verb":"get","resource":"secrets","namespace":"` + ns + `","name":"creds-` + a + `"}`:                                                                                               `"allowed":true`,
		`{"verb":"update","resource":"secrets","namespace":"` + ns + `","name":"creds-` + a + `"}`:                                                                                            "only referred to",
	} {
		eventually(t, attributes, func() error {
			_, answer, err := p.Ask(https(t), http.MethodPost, authPath, "application/json", review("gardener.cloud:system:seed:"+a, "gardener.cloud:system:seeds", attributes))
			if err != nil {
				return err
			}
			return expect.Holds(strings.Contains(answer, want), "got %s, want %s", answer, want)
		})
	}
}

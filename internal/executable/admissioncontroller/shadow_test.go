package admissioncontroller

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	config "github.com/espalier-project/espalier/api/config/admissioncontroller/v1alpha1"
	"github.com/espalier-project/espalier/internal/seedauthorizer/rules"
	"github.com/espalier-project/espalier/test/expect"
)

// TestJudging: the names that onlyReport takes are those of the webhooks that judge.
func TestJudging(t *testing.T) {
	var names []string
	for _, row := range Table() {
		if row.Validating != nil {
			names = append(names, row.Name)
		}
	}
	slices.Sort(names)
	expect.DeepEqual(t, config.Judging(), names, "SHD-6")
}

// TestShadowOf is what the authorizers are told of the shadow policy: nothing where it is the policy that answers.
func TestShadowOf(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*config.SeedAuthorizerConfiguration)
		want    *rules.Policy
		checked bool
	}{
		"SHD-1/none": {func(*config.SeedAuthorizerConfiguration) {}, nil, false},
		"SHD-1/all": {func(c *config.SeedAuthorizerConfiguration) {
			c.Shadow = &config.SeedAuthorizerShadow{ReadScope: "Related", WriteScope: "Owned", References: "Checked"}
		}, &rules.Policy{WriteOwned: true}, true},
		"SHD-1/one of them": {func(c *config.SeedAuthorizerConfiguration) {
			c.Shadow = &config.SeedAuthorizerShadow{WriteScope: "Owned"}
		}, &rules.Policy{ReadAll: true, WriteOwned: true}, false},
		"SHD-1/the same": {func(c *config.SeedAuthorizerConfiguration) {
			c.Shadow = &config.SeedAuthorizerShadow{ReadScope: "All", WriteScope: "Referenced", References: "Trusted"}
		}, nil, false},
		"SHD-1/the wider one": {func(c *config.SeedAuthorizerConfiguration) {
			c.ReadScope = "Related"
			c.Shadow = &config.SeedAuthorizerShadow{ReadScope: "All"}
		}, &rules.Policy{ReadAll: true}, false},
		"SHD-5/the references": {func(c *config.SeedAuthorizerConfiguration) {
			c.Shadow = &config.SeedAuthorizerShadow{References: "Checked"}
		}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProcess(t, func(cfg *configuration) { c.change(&cfg.Server.SeedAuthorizer) })
			expect.DeepEqual(t, p.seeds.Shadow, c.want)
			if shoots := p.shoots.Shadow; (shoots == nil) != (c.want == nil) || shoots != nil && (shoots.ReadAll != c.want.ReadAll || shoots.WriteOwned) {
				t.Errorf("self-hosted shoots have %+v", shoots)
			}
			got := p.seedRestriction.Shadow
			expect.Equal(t, c.checked, got != nil && *got, "SeedRestriction has %v", got)
		})
	}
}

// TestOnlyReports: a webhook that only reports admits also what it cannot judge yet, and the others do not.
func TestOnlyReports(t *testing.T) {
	p := newProcess(t, func(cfg *configuration) { cfg.Server.OnlyReport = []string{"seedrestriction", "namespace_validator"} })
	const creation = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","operation":"CREATE","object":{}}}`
	if got := post(p, "/webhooks/admission/seedrestriction", creation); got.Code != http.StatusOK || !strings.Contains(got.Body.String(), `"allowed":true`) ||
		!strings.Contains(got.Body.String(), "only-reported") {
		t.Errorf("SHD-6: got %d %s", got.Code, got.Body)
	}
	got := post(p, "/webhooks/admission/shootrestriction", creation)
	expect.Equal(t, got.Code, http.StatusServiceUnavailable, "SHD-6: got %d %s", got.Code, got.Body)
}

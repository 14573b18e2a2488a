package admissioncontroller

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	config "github.com/espalier-project/espalier/api/config/admissioncontroller/v1alpha1"
	"github.com/espalier-project/espalier/internal/endpoint/authorization"
	"github.com/espalier-project/espalier/internal/seedauthorizer/rules"
)

// policyOf returns the configured policy of the authorizers.
func policyOf(cfg *configuration) rules.Policy {
	c := &cfg.Server.SeedAuthorizer
	return rules.Policy{ReadAll: c.ReadScope == config.ReadScopeAll, WriteOwned: c.WriteScope == config.WriteScopeOwned}
}

// shadowOf returns the shadow policy of the authorizers; nil if there is none, or if it has no differences.
func shadowOf(cfg *configuration) *rules.Policy {
	s := cfg.Server.SeedAuthorizer.Shadow
	if s == nil {
		return nil
	}
	answers := policyOf(cfg)
	shadow := answers
	if s.ReadScope != "" {
		shadow.ReadAll = s.ReadScope == config.ReadScopeAll
	}
	if s.WriteScope != "" {
		shadow.WriteOwned = s.WriteScope == config.WriteScopeOwned
	}
	if shadow == answers {
		return nil
	}
	return &shadow
}

// shadowOfShoots returns the shadow policy of the ShootAuthorizer: a self-hosted shoot has no writeScope.
func shadowOfShoots(of *rules.Policy) *rules.Policy {
	if of == nil {
		return nil
	}
	return &rules.Policy{ReadAll: of.ReadAll}
}

// shadowReferences reports whether the shadow policy of SeedRestriction checks the references of a registration; nil
// if there is no shadow policy, or no difference.
func shadowReferences(cfg *configuration) *bool {
	c := &cfg.Server.SeedAuthorizer
	if c.Shadow == nil || c.Shadow.References == "" || c.Shadow.References == c.References {
		return nil
	}
	checked := c.Shadow.References == config.ReferencesChecked
	return &checked
}

// onlyReports reports whether a webhook only reports its refusals.
func (p *Process) onlyReports(row *Row) bool {
	only := row.Validating != nil && slices.Contains(p.Config.Server.OnlyReport, row.Name)
	if only {
		p.Log.Info("A webhook only reports: nothing is refused", "webhook", row.Name)
	}
	return only
}

// authorizerMetrics registers the metrics of an authorizer and its shadow policy.
func authorizerMetrics(registry prometheus.Registerer) {
	rules.NewMetrics(registry)
	authorization.NewDifferences(registry, clock.RealClock{})
}

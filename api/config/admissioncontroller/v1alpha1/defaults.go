package v1alpha1

import (
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
)

// SetDefaults sets the defaults of every field that is unset (contract, operations 1.10).
func SetDefaults(c *AdmissionControllerConfiguration) {
	shared.SetDefaultValue(&c.GardenClientConnection.QPS, 50)
	shared.SetDefaultValue(&c.GardenClientConnection.Burst, 100)
	shared.SetDefaultValue(&c.LogLevel, shared.LogLevelInfo)
	shared.SetDefaultValue(&c.LogFormat, shared.LogFormatJSON)

	s := &c.Server
	shared.SetDefaultValue(&s.Webhooks.Port, 2721)
	shared.SetDefault(&s.HealthProbes, shared.Server{})
	shared.SetDefaultValue(&s.HealthProbes.Port, 2722)
	shared.SetDefault(&s.Metrics, shared.Server{})
	shared.SetDefaultValue(&s.Metrics.Port, 2723)
	shared.SetDefaultValue(&s.SeedAuthorizer.ReadScope, ReadScopeAll)
	shared.SetDefaultValue(&s.SeedAuthorizer.WriteScope, WriteScopeReferenced)
	shared.SetDefaultValue(&s.SeedAuthorizer.References, ReferencesTrusted)
	shared.SetDefault(&s.SeedAuthorizer.MaxStaleness, shared.Duration(10*time.Minute))
	shared.SetDefault(&s.ResourceAdmissionConfiguration, ResourceAdmissionConfiguration{})
	for i := range s.ResourceAdmissionConfiguration.UnrestrictedSubjects {
		subject := &s.ResourceAdmissionConfiguration.UnrestrictedSubjects[i]
		if subject.Kind == rbacv1.UserKind || subject.Kind == rbacv1.GroupKind {
			shared.SetDefaultValue(&subject.APIGroup, rbacv1.GroupName)
		}
	}
}

package v1alpha1

import (
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
)

// Validate returns every error of a defaulted configuration, in the order client, log, server (operations 1.10).
func Validate(c *AdmissionControllerConfiguration) field.ErrorList {
	var all field.ErrorList
	if c.GardenClientConnection.Burst < 0 {
		all = append(all, field.Invalid(field.NewPath("gardenClientConnection", "burst"), c.GardenClientConnection.Burst, "must be non-negative"))
	}
	all = append(all, shared.ValidateLog(c.LogLevel, c.LogFormat)...)
	server := field.NewPath("server")
	servers := map[string]*shared.Server{"webhooks": &c.Server.Webhooks.Server, "healthProbes": c.Server.HealthProbes, "metrics": c.Server.Metrics}
	order := []string{"webhooks", "healthProbes", "metrics"}
	for _, name := range order {
		all = append(all, shared.ValidateServer(servers[name], server.Child(name))...)
	}
	all = append(all, shared.ValidateDistinctPorts(server, servers, order)...)
	if r := c.Server.ResourceAdmissionConfiguration; r != nil {
		all = append(all, validateResourceAdmission(r, server.Child("resourceAdmissionConfiguration"))...)
	}
	all = append(all, shared.ValidateOnlyReport(c.Server.OnlyReport, Judging(), server.Child("onlyReport"))...)
	return append(all, validateScopes(&c.Server.SeedAuthorizer, server.Child("seedAuthorizer"))...)
}

// Judging returns the names of the webhooks that allow or refuse requests and change nothing.
func Judging() []string {
	return []string{
		"auditpolicy_validator", "authenticationconfig_validator", "authorizationconfig_validator", "internal_domain", "kubeconfig_validator",
		"namespace_validator", "reserved_service_accounts", "resource_size_validator", "seedrestriction", "shootkubeconfigsecretref_validator", "shootrestriction", "update_restriction",
	}
}

var (
	readScopes  = []ReadScope{ReadScopeAll, ReadScopeRelated}
	writeScopes = []WriteScope{WriteScopeReferenced, WriteScopeOwned}
	references  = []References{ReferencesTrusted, ReferencesChecked}
)

// validateShadow checks the fields that are set.
func validateShadow(s *SeedAuthorizerShadow, path *field.Path) field.ErrorList {
	var all field.ErrorList
	if s.ReadScope != "" {
		all = append(all, oneOf(s.ReadScope, readScopes, path.Child("readScope"))...)
	}
	if s.WriteScope != "" {
		all = append(all, oneOf(s.WriteScope, writeScopes, path.Child("writeScope"))...)
	}
	if s.References != "" {
		all = append(all, oneOf(s.References, references, path.Child("references"))...)
	}
	if len(all) == 0 && *s == (SeedAuthorizerShadow{}) {
		all = append(all, field.Required(path, "at least one of readScope, writeScope or references"))
	}
	return all
}

func oneOf[T ~string](value T, valid []T, path *field.Path) field.ErrorList {
	if slices.Contains(valid, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, valid)}
}

func validateScopes(s *SeedAuthorizerConfiguration, path *field.Path) field.ErrorList {
	var all field.ErrorList
	all = append(all, oneOf(s.ReadScope, readScopes, path.Child("readScope"))...)
	all = append(all, oneOf(s.WriteScope, writeScopes, path.Child("writeScope"))...)
	all = append(all, oneOf(s.References, references, path.Child("references"))...)
	if d := s.MaxStaleness; d.Duration != 0 && d.Duration < minStaleness {
		all = append(all, field.Invalid(path.Child("maxStaleness"), d.Duration.String(), "must be 0 or at least "+minStaleness.String()))
	}
	if s.Shadow != nil {
		all = append(all, validateShadow(s.Shadow, path.Child("shadow"))...)
	}
	return all
}

// minStaleness covers the longest silence of a healthy watch: without bookmarks, a watch is reopened after two minutes
// of silence, and everything is listed again after two more.
const minStaleness = 5 * time.Minute

func validateResourceAdmission(r *ResourceAdmissionConfiguration, path *field.Path) field.ErrorList {
	var all field.ErrorList
	for i := range r.Limits {
		all = append(all, validateLimit(&r.Limits[i], path.Child("limits").Index(i))...)
	}
	for i := range r.UnrestrictedSubjects {
		all = append(all, validateSubject(&r.UnrestrictedSubjects[i], path.Child("unrestrictedSubjects").Index(i))...)
	}
	if mode := r.OperationMode; mode != nil && *mode != OperationModeBlock && *mode != OperationModeLog {
		// Error messages have always had this path; the key is operationMode (OPB-5).
		err := field.NotSupported(path.Child("mode"), *mode, []string{OperationModeBlock, OperationModeLog})
		err.Detail += " (the key is operationMode)"
		all = append(all, err)
	}
	return all
}

const oneElement = "must at least have one element"

func validateLimit(l *ResourceLimit, path *field.Path) field.ErrorList {
	var all field.ErrorList
	if len(l.APIGroups) == 0 {
		all = append(all, field.Invalid(path.Child("apiGroups"), l.APIGroups, oneElement))
	}
	// Error messages have always had this path for apiVersions (OPB-5).
	versions := path.Child("versions")
	if len(l.APIVersions) == 0 {
		all = append(all, field.Invalid(versions, l.APIVersions, oneElement+" (the key is apiVersions)"))
	}
	for i, version := range l.APIVersions {
		if version == "" {
			all = append(all, field.Invalid(versions.Index(i), version, "must not be empty"))
		}
	}
	if len(l.Resources) == 0 {
		all = append(all, field.Invalid(path.Child("resources"), l.Resources, oneElement))
	}
	for i, name := range l.Resources {
		if name == "" {
			all = append(all, field.Invalid(path.Child("resources").Index(i), name, "must not be empty"))
		}
	}
	if l.Size != nil && l.Size.Sign() < 0 {
		all = append(all, field.Invalid(path.Child("size"), l.Size.String(), "value must not be negative"))
	}
	if l.Count != nil && *l.Count < 0 {
		all = append(all, field.Invalid(path.Child("count"), *l.Count, "value must not be negative"))
	}
	if l.Size == nil && l.Count == nil {
		all = append(all, field.Invalid(path, "", "at least one of size or count must be specified"))
	}
	return all
}

func validateSubject(s *rbacv1.Subject, path *field.Path) field.ErrorList {
	var all field.ErrorList
	if s.Name == "" {
		all = append(all, field.Invalid(path.Child("name"), s.Name, "name must not be empty"))
	}
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		if s.Namespace == "" {
			all = append(all, field.Invalid(path.Child("namespace"), s.Namespace, "name must not be empty"))
		}
		if s.APIGroup != "" {
			all = append(all, field.Invalid(path.Child("apiGroup"), s.APIGroup, "apiGroup must be empty"))
		}
	case rbacv1.UserKind, rbacv1.GroupKind:
		if s.Namespace != "" {
			all = append(all, field.Invalid(path.Child("namespace"), s.Namespace, "name must be empty"))
		}
		if s.APIGroup != rbacv1.GroupName {
			all = append(all, field.NotSupported(path.Child("apiGroup"), s.APIGroup, []string{rbacv1.GroupName}))
		}
	default:
		all = append(all, field.NotSupported(path.Child("kind"), s.Kind, []string{rbacv1.UserKind, rbacv1.GroupKind, rbacv1.ServiceAccountKind}))
	}
	return all
}

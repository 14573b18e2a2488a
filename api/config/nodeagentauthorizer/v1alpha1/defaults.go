package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
)

// SetDefaults sets the defaults of every field that is unset.
func SetDefaults(c *NodeAgentAuthorizerConfiguration) {
	setConnection(&c.SourceClientConnection)
	setConnection(&c.TargetClientConnection)
	shared.SetDefaultValue(&c.LogLevel, shared.LogLevelInfo)
	shared.SetDefaultValue(&c.LogFormat, shared.LogFormatJSON)
	shared.SetDefaultValue(&c.Server.Webhooks.Port, 9449)
	shared.SetDefault(&c.Server.HealthProbes, shared.Server{})
	shared.SetDefaultValue(&c.Server.HealthProbes.Port, 8081)
	shared.SetDefault(&c.Server.Metrics, shared.Server{})
	shared.SetDefaultValue(&c.Server.Metrics.Port, 8080)
	shared.SetDefaultValue(&c.AuthorizeWithSelectors, SelectorsFalse)
	shared.SetDefaultValue(&c.ShootLimits.Pages, 200)
	shared.SetDefault(&c.ShootLimits.ListTimeout, shared.Duration(5*time.Minute))
	shared.SetDefault(&c.MaxStaleness, shared.Duration(10*time.Minute))
}

// SetDefaultsEntry sets the defaults of a shoot's entry.
func SetDefaultsEntry(e *ShootEntry) {
	setConnection(&e.TargetClientConnection)
	shared.SetDefaultValue(&e.AuthorizeWithSelectors, SelectorsFalse)
}

func setConnection(c *ClientConnection) {
	shared.SetDefaultValue(&c.QPS, 100)
	shared.SetDefaultValue(&c.Burst, 130)
}

// Validate returns every error of a defaulted configuration.
func Validate(c *NodeAgentAuthorizerConfiguration) field.ErrorList {
	var all field.ErrorList
	all = append(all, validateConnection(&c.SourceClientConnection, field.NewPath("sourceClientConnection"))...)
	all = append(all, validateConnection(&c.TargetClientConnection, field.NewPath("targetClientConnection"))...)
	server := field.NewPath("server")
	servers := map[string]*shared.Server{"webhooks": &c.Server.Webhooks.Server, "healthProbes": c.Server.HealthProbes, "metrics": c.Server.Metrics}
	order := []string{"webhooks", "healthProbes", "metrics"}
	for _, name := range order {
		all = append(all, shared.ValidateServer(servers[name], server.Child(name))...)
	}
	all = append(all, shared.ValidateDistinctPorts(server, servers, order)...)
	all = append(all, shared.ValidateLog(c.LogLevel, c.LogFormat)...)
	all = append(all, validateAgents(&c.Agents)...)
	if c.MaxStaleness.Duration < 0 {
		all = append(all, field.Invalid(field.NewPath("maxStaleness"), c.MaxStaleness.Duration.String(), "must not be negative"))
	}
	limits := field.NewPath("shootLimits")
	if c.ShootLimits.Pages < 1 {
		all = append(all, field.Invalid(limits.Child("pages"), c.ShootLimits.Pages, "must be at least 1"))
	}
	if c.ShootLimits.ListTimeout.Duration <= 0 {
		all = append(all, field.Invalid(limits.Child("listTimeout"), c.ShootLimits.ListTimeout.Duration.String(), "must be positive"))
	}
	if c.ShootsDirectory != "" && c.MachineNamespace != nil {
		all = append(all, field.Forbidden(field.NewPath("machineNamespace"), "each shoot of shootsDirectory has its own"))
	}
	return all
}

// ValidateEntry returns every error of a defaulted entry.
func ValidateEntry(e *ShootEntry) field.ErrorList {
	all := validateConnection(&e.TargetClientConnection, field.NewPath("targetClientConnection"))
	if e.TargetClientConnection.Kubeconfig == "" {
		all = append(all, field.Required(field.NewPath("targetClientConnection", "kubeconfig"), "each shoot has its own"))
	}
	return append(all, validateAgents(&e.Agents)...)
}

func validateAgents(a *Agents) field.ErrorList {
	var all field.ErrorList
	if a.MachineNamespace != nil && *a.MachineNamespace == "" {
		all = append(all, field.Required(field.NewPath("machineNamespace"), "machine namespace must be nil or not empty"))
	}
	if s := a.Shadow; s != nil && s.AuthorizeWithSelectors == nil && s.Nodes.AllowWatchAll == nil {
		all = append(all, field.Required(field.NewPath("shadow"), "at least one of authorizeWithSelectors or nodes.allowWatchAll"))
	}
	return all
}

func validateConnection(c *ClientConnection, path *field.Path) field.ErrorList {
	if c.Burst < 0 {
		return field.ErrorList{field.Invalid(path.Child("burst"), c.Burst, "must be non-negative")}
	}
	return nil
}

package v1alpha1

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
)

const minSyncPeriod = 15 * time.Second

// Validate returns every error of a defaulted configuration, in the order clients, leader election, server, log,
// controllers, webhooks (CFG-7).
func Validate(c *ResourceManagerConfiguration) field.ErrorList {
	var all field.ErrorList
	all = append(all, shared.ValidateClientConnection(&c.SourceClientConnection, field.NewPath("sourceClientConnection"))...)
	if c.TargetClientConnection != nil {
		all = append(all, shared.ValidateClientConnection(c.TargetClientConnection, field.NewPath("targetClientConnection"))...)
	}
	all = append(all, shared.ValidateLeaderElection(&c.LeaderElection, field.NewPath("leaderElection"))...)
	all = append(all, validateServer(&c.Server, field.NewPath("server"))...)
	all = append(all, shared.ValidateLog(c.LogLevel, c.LogFormat)...)
	all = append(all, validateControllers(&c.Controllers, c.Webhooks.TokenInvalidator.Enabled, field.NewPath("controllers"))...)
	all = append(all, validateWebhooks(&c.Webhooks, field.NewPath("webhooks"))...)
	return all
}

func validateServer(s *ServerConfiguration, path *field.Path) field.ErrorList {
	var all field.ErrorList
	servers := map[string]*shared.Server{"webhooks": &s.Webhooks.Server, "healthProbes": s.HealthProbes, "metrics": s.Metrics}
	order := []string{"webhooks", "healthProbes", "metrics"}
	for _, name := range order {
		if servers[name] == nil {
			return append(all, field.Required(path.Child(name), "must provide a server"))
		}
		all = append(all, shared.ValidateServer(servers[name], path.Child(name))...)
	}
	return append(all, shared.ValidateDistinctPorts(path, servers, order)...)
}

func validateControllers(c *ControllerConfiguration, tokenInvalidatorWebhook bool, path *field.Path) field.ErrorList {
	var all field.ErrorList
	switch id := c.ClusterID; {
	case id == nil:
		all = append(all, field.Required(path.Child("clusterID"), "must provide a cluster id"))
	case strings.ContainsAny(*id, ":/"):
		all = append(all, field.Invalid(path.Child("clusterID"), *id, "must not contain ':' or '/': origin annotations could not be parsed"))
	}
	if c.ResourceClass == nil || *c.ResourceClass == "" {
		all = append(all, field.Required(path.Child("resourceClass"), "must provide a resource class"))
	} else if *c.ResourceClass != "*" {
		// The class becomes the end of a finalizer's name.
		for _, msg := range validation.IsQualifiedName("resources.gardener.cloud/gardener-resource-manager-" + *c.ResourceClass) {
			all = append(all, field.Invalid(path.Child("resourceClass"), *c.ResourceClass, msg))
		}
	}
	if d := c.CacheSyncTimeout; d != nil && d.Duration <= 0 {
		all = append(all, field.Invalid(path.Child("cacheSyncTimeout"), d.Duration.String(), "must be greater than zero"))
	}
	if c.GarbageCollector.Enabled {
		all = append(all, syncPeriod(c.GarbageCollector.SyncPeriod, path.Child("garbageCollector", "syncPeriod"))...)
		all = append(all, notBelowZero(c.GarbageCollector.MinimumAge, path.Child("garbageCollector", "minimumAge"))...)
	}
	all = append(all, workers(c.Health.ConcurrentSyncs, path.Child("health"))...)
	all = append(all, syncPeriod(c.Health.SyncPeriod, path.Child("health", "syncPeriod"))...)
	if c.CSRApprover.Enabled {
		all = append(all, workers(c.CSRApprover.ConcurrentSyncs, path.Child("csrApprover"))...)
		all = append(all, machineNamespace(c.CSRApprover.MachineNamespace, path.Child("csrApprover"))...)
	}
	// Error messages have the plural path, as the documentation does (CFG-10).
	managedResources := path.Child("managedResources")
	all = append(all, workers(c.ManagedResource.ConcurrentSyncs, managedResources)...)
	all = append(all, syncPeriod(c.ManagedResource.SyncPeriod, managedResources.Child("syncPeriod"))...)
	if v := c.ManagedResource.ManagedByLabelValue; v == nil || *v == "" {
		all = append(all, field.Required(managedResources.Child("managedByLabelValue"), "must specify value of managed-by label"))
	} else {
		for _, msg := range validation.IsValidLabelValue(*v) {
			all = append(all, field.Invalid(managedResources.Child("managedByLabelValue"), *v, msg))
		}
	}
	if s := c.ManagedResource.AlwaysUpdateScope; s != AlwaysUpdateAll && s != AlwaysUpdateUnwatched {
		all = append(all, field.NotSupported(managedResources.Child("alwaysUpdateScope"), s, []AlwaysUpdateScope{AlwaysUpdateAll, AlwaysUpdateUnwatched}))
	}
	all = append(all, notBelowZero(c.ManagedResource.DriftRepairDelay, managedResources.Child("driftRepairDelay"))...)
	all = append(all, notBelowZero(c.ManagedResource.MassDeletion.Wait, managedResources.Child("massDeletion", "wait"))...)
	if d := c.ManagedResource.AuditPeriod; d != nil && d.Duration != 0 && d.Duration < time.Minute {
		all = append(all, field.Invalid(managedResources.Child("auditPeriod"), d.Duration.String(), "must be 0 or at least 1m"))
	}
	if c.IstioClusterConfiguration.Enabled {
		all = append(all, workers(c.IstioClusterConfiguration.ConcurrentSyncs, path.Child("istioClusterConfiguration"))...)
	}
	all = append(all, validateNetworkPolicy(&c.NetworkPolicy, path.Child("networkPolicy"))...)
	all = append(all, validateNodes(c, path)...)
	if c.TokenInvalidator.Enabled != tokenInvalidatorWebhook {
		all = append(all, field.Forbidden(path.Child("tokenInvalidator"), "controller and webhook for TokenInvalidator must either be both disabled or enabled"))
	}
	if c.TokenInvalidator.Enabled {
		all = append(all, workers(c.TokenInvalidator.ConcurrentSyncs, path.Child("tokenInvalidator"))...)
	}
	if c.TokenRequestor.Enabled {
		all = append(all, workers(c.TokenRequestor.ConcurrentSyncs, path.Child("tokenRequestor"))...)
		for _, msg := range validation.IsValidLabelValue(ptr.Deref(c.TokenRequestor.Class, "")) {
			all = append(all, field.Invalid(path.Child("tokenRequestor", "class"), *c.TokenRequestor.Class, msg))
		}
	}
	return all
}

func validateNetworkPolicy(c *NetworkPolicyControllerConfig, path *field.Path) field.ErrorList {
	if !c.Enabled {
		return nil
	}
	all := workers(c.ConcurrentSyncs, path)
	if f := c.DescriptionFormat; f != DescriptionFormatLabels && f != DescriptionFormatSelector {
		all = append(all, field.NotSupported(path.Child("descriptionFormat"), f, []DescriptionFormat{DescriptionFormatLabels, DescriptionFormatSelector}))
	}
	for i := range c.NamespaceSelectors {
		all = append(all, selector(&c.NamespaceSelectors[i], path.Child("namespaceSelectors").Index(i))...)
	}
	if s := c.IngressControllerSelector; s != nil {
		all = append(all, selector(&s.PodSelector, path.Child("ingressControllerSelector", "podSelector"))...)
	}
	return all
}

func validateNodes(c *ControllerConfiguration, path *field.Path) field.ErrorList {
	var all field.ErrorList
	if n := &c.NodeCriticalComponents; n.Enabled {
		all = append(all, workers(n.ConcurrentSyncs, path.Child("nodeCriticalComponents"))...)
		if n.Backoff != nil && n.Backoff.Duration <= 0 {
			all = append(all, field.Invalid(path.Child("nodeCriticalComponents", "backoff"), n.Backoff.Duration.String(), "must be greater than zero"))
		}
	}
	if d := &c.NodeAgentReconciliationDelay; d.Enabled {
		p := path.Child("nodeAgentReconciliationDelay")
		all = append(all, notBelowZero(d.MinDelay, p.Child("minDelay"))...)
		all = append(all, notBelowZero(d.MaxDelay, p.Child("maxDelay"))...)
		if d.MinDelay.Duration > d.MaxDelay.Duration {
			all = append(all, field.Invalid(p.Child("minDelay"), d.MinDelay.Duration.String(), "minimum delay must not be higher than maximum delay"))
		}
	}
	return all
}

func validateWebhooks(w *WebhookConfiguration, path *field.Path) field.ErrorList {
	var all field.ErrorList
	ha := path.Child("highAvailabilityConfig")
	all = append(all, notNegative(w.HighAvailabilityConfig.DefaultNotReadyTolerationSeconds, ha.Child("defaultNotReadyTolerationSeconds"))...)
	all = append(all, notNegative(w.HighAvailabilityConfig.DefaultUnreachableTolerationSeconds, ha.Child("defaultUnreachableTolerationSeconds"))...)
	if w.KubernetesServiceHost.Enabled && w.KubernetesServiceHost.Host == "" {
		all = append(all, field.Required(path.Child("kubernetesServiceHost", "host"), "must specify the host when webhook is enabled"))
	}
	for i := range w.SystemComponentsConfig.PodTolerations {
		all = append(all, validateToleration(&w.SystemComponentsConfig.PodTolerations[i],
			path.Child("systemComponentsConfig", "podTolerations").Index(i))...)
	}
	if s := &w.PodSchedulerName; s.Enabled && (s.SchedulerName == nil || *s.SchedulerName == "") {
		all = append(all, field.Required(path.Child("podSchedulerName", "schedulerName"), "must specify schedulerName when webhook is enabled"))
	}
	if p := &w.ProjectedTokenMount; p.Enabled && p.ExpirationSeconds != nil && *p.ExpirationSeconds < 600 {
		all = append(all, field.Invalid(path.Child("projectedTokenMount", "expirationSeconds"), *p.ExpirationSeconds, "must be at least 600"))
	}
	if w.NodeAgentAuthorizer.Enabled {
		all = append(all, machineNamespace(w.NodeAgentAuthorizer.MachineNamespace, path.Child("nodeAgentAuthorizer"))...)
	}
	if s := w.NodeAgentAuthorizer.Shadow; s != nil && s.AuthorizeWithSelectors == nil && s.Nodes.AllowWatchAll == nil {
		all = append(all, field.Required(path.Child("nodeAgentAuthorizer", "shadow"), "at least one of authorizeWithSelectors or nodes.allowWatchAll"))
	}
	if m := w.NodeAgentAuthorizer.MaxStaleness; m != nil && m.Duration < 0 {
		all = append(all, field.Invalid(path.Child("nodeAgentAuthorizer", "maxStaleness"), m.Duration.String(), "must not be negative"))
	}
	return append(all, shared.ValidateOnlyReport(w.OnlyReport, Judging(), path.Child("onlyReport"))...)
}

// Judging returns the names of the webhooks that allow or refuse requests and change nothing.
func Judging() []string { return []string{"crd-deletion-protection", "extension-validation"} }

func validateToleration(t *corev1.Toleration, path *field.Path) field.ErrorList {
	var all field.ErrorList
	if t.Key != "" {
		all = append(all, metav1validation.ValidateLabelName(t.Key, path.Child("key"))...)
	}
	if t.Key == "" && t.Operator != corev1.TolerationOpExists {
		all = append(all, field.Invalid(path.Child("operator"), t.Operator, "operator must be Exists when `key` is empty, which means \"match all values and all keys\""))
	}
	if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
		all = append(all, field.Invalid(path.Child("effect"), t.Effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"))
	}
	switch t.Operator {
	case corev1.TolerationOpEqual, "":
		if errs := validation.IsValidLabelValue(t.Value); len(errs) > 0 {
			all = append(all, field.Invalid(path.Child("operator"), t.Value, strings.Join(errs, ";")))
		}
	case corev1.TolerationOpExists:
		if t.Value != "" {
			all = append(all, field.Invalid(path.Child("operator"), t.Operator, "value must be empty when `operator` is 'Exists'"))
		}
	default:
		all = append(all, field.NotSupported(path.Child("operator"), t.Operator, []corev1.TolerationOperator{corev1.TolerationOpEqual, corev1.TolerationOpExists}))
	}
	switch t.Effect {
	case "", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
	default:
		all = append(all, field.NotSupported(path.Child("effect"), t.Effect,
			[]corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}))
	}
	return all
}

func workers(n *int, path *field.Path) field.ErrorList {
	if n != nil && *n < 1 {
		return field.ErrorList{field.Invalid(path.Child("concurrentSyncs"), *n, "must be at least 1")}
	}
	return nil
}

func syncPeriod(d *metav1.Duration, path *field.Path) field.ErrorList {
	if d != nil && d.Duration < minSyncPeriod {
		return field.ErrorList{field.Invalid(path, d.Duration.String(), "must be at least "+minSyncPeriod.String())}
	}
	return nil
}

func notBelowZero(d *metav1.Duration, path *field.Path) field.ErrorList {
	if d != nil && d.Duration < 0 {
		return field.ErrorList{field.Invalid(path, d.Duration.String(), "must be non-negative")}
	}
	return nil
}

func notNegative(n *int64, path *field.Path) field.ErrorList {
	if n != nil && *n < 0 {
		return field.ErrorList{field.Invalid(path, *n, "must be non-negative")}
	}
	return nil
}

func machineNamespace(namespace *string, path *field.Path) field.ErrorList {
	if namespace != nil && *namespace == "" {
		return field.ErrorList{field.Required(path.Child("machineNamespace"), "machine namespace must be nil or not empty")}
	}
	return nil
}

func selector(s *metav1.LabelSelector, path *field.Path) field.ErrorList {
	return metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, path)
}

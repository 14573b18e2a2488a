package v1alpha1

import (
	"iter"
	"net/url"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
)

// NamespacePlaceholder stands for the namespace of a target in targets.server.
const NamespacePlaceholder = "{namespace}"

// TargetsConfiguration has one process look after the ManagedResources of many targets. A target is a namespace of the
// source: its ManagedResources and Secrets, and a kubeconfig of the cluster that they are for. Exactly one of
// namespaceSelector and directory selects the targets.
type TargetsConfiguration struct {
	// NamespaceSelector selects the namespaces by labels. A namespace that loses the labels is let go, and nothing
	// is deleted.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	// Directory is a folder with a TargetEntry <name>.yaml for each target, instead of namespaceSelector.
	// +optional
	Directory string `json:"directory,omitempty"`
	// Kubeconfig is the Secret in the namespace of the target with its kubeconfig, unless server, ca and token are
	// set.
	// +optional
	Kubeconfig *SecretKey `json:"kubeconfig,omitempty"`
	// Server is the URL of the target's API server, instead of the kubeconfig's; {namespace} stands for the
	// namespace of the target.
	// +optional
	Server string `json:"server,omitempty"`
	// CA is the Secret with the CA certificates of the target, instead of the kubeconfig's.
	// +optional
	CA *SecretKey `json:"ca,omitempty"`
	// Token is the Secret with a bearer token, instead of the kubeconfig's. A changed token is used at once.
	// +optional
	Token *SecretKey `json:"token,omitempty"`
	// Overrides is the Secret with the settings of one target that differ, a TargetOverrides in YAML, if there is
	// one.
	// +optional
	Overrides *SecretKey `json:"overrides,omitempty"`
	// AwaitLease is the name of a Lease in the namespace of the target, by which a resource-manager for this
	// target alone keeps the process waiting. Default gardener-resource-manager.
	// +optional
	AwaitLease *string `json:"awaitLease,omitempty"`
	// Limits configures the resources that targets use in the process.
	// +optional
	Limits TargetLimits `json:"limits,omitempty"`
	// Sharding configures the share of each process in the targets.
	// +optional
	Sharding TargetSharding `json:"sharding,omitempty"`
}

// TargetSharding has several processes share targets. There is no leader then.
type TargetSharding struct {
	// Enabled gives each of several processes with the same configuration an equal share of the targets. Default
	// false: one process leads and has all targets, and others wait.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
}

// SecretKey is a key of a Secret in the namespace of a target.
type SecretKey struct {
	// SecretName is the name of the Secret.
	SecretName string `json:"secretName"`
	// Key is the key of its data. Default kubeconfig, bundle.crt, token or overrides.yaml.
	// +optional
	Key string `json:"key,omitempty"`
}

// TargetLimits restrict the resources that targets use in the process.
type TargetLimits struct {
	// RequestsInFlight limits the concurrent requests to one target, without watches. Default 32.
	// +kubebuilder:validation:Minimum=1
	// +optional
	RequestsInFlight *int `json:"requestsInFlight,omitempty"`
	// BytesInFlight limits all concurrent answers of one target, as text and decoded, without watches; a request
	// that exceeds it fails. Default 64Mi.
	// +optional
	BytesInFlight *resource.Quantity `json:"bytesInFlight,omitempty"`
	// TotalBytesInFlight is the same for all targets together: the target that has most fails first. Default
	// 256Mi.
	// +optional
	TotalBytesInFlight *resource.Quantity `json:"totalBytesInFlight,omitempty"`
	// WatchBytesPerSecond limits the bytes that the watches of one target deliver in a second, with bursts of
	// eight times that. Default 2Mi.
	// +optional
	WatchBytesPerSecond *resource.Quantity `json:"watchBytesPerSecond,omitempty"`
}

// TargetOverrides are the settings of one target that differ. Fields that are not set are as in the configuration.
type TargetOverrides struct {
	// ResourceClass is the class of the ManagedResources to look after.
	// +optional
	ResourceClass *string `json:"resourceClass,omitempty"`
	// QPS is the limit of requests per second.
	// +optional
	QPS *float32 `json:"qps,omitempty"`
	// Burst limits the requests that may exceed QPS for a moment.
	// +optional
	Burst *int32 `json:"burst,omitempty"`
	// ConcurrentSyncs is the number of workers of each controller.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
	// SyncPeriod is that of controllers.managedResource and controllers.health.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
	// DriftRepairDelay is that of controllers.managedResource.
	// +optional
	DriftRepairDelay *metav1.Duration `json:"driftRepairDelay,omitempty"`
}

// TargetEntry is a file in targets.directory.
type TargetEntry struct {
	// Namespace is the namespace of the source with the ManagedResources. Default: the name of the file without its ending.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Kubeconfig is the path of the target's kubeconfig; a relative one begins at the folder.
	Kubeconfig string `json:"kubeconfig"`

	TargetOverrides `json:",inline"`
}

func setDefaultsTargets(c *TargetsConfiguration) {
	if c == nil {
		return
	}
	for key, name := range map[*SecretKey]string{c.Kubeconfig: "kubeconfig", c.CA: "bundle.crt", c.Token: "token", c.Overrides: "overrides.yaml"} {
		if key != nil {
			shared.SetDefaultValue(&key.Key, name)
		}
	}
	shared.SetDefault(&c.AwaitLease, "gardener-resource-manager")
	shared.SetDefault(&c.Limits.RequestsInFlight, 32)
	shared.SetDefault(&c.Limits.BytesInFlight, resource.MustParse("64Mi"))
	shared.SetDefault(&c.Limits.TotalBytesInFlight, resource.MustParse("256Mi"))
	shared.SetDefault(&c.Limits.WatchBytesPerSecond, resource.MustParse("2Mi"))
}

// validateTargets returns the faults of targets, and of settings that targets exclude.
func validateTargets(c *ResourceManagerConfiguration, path *field.Path) field.ErrorList {
	t := c.Targets
	if t == nil {
		return nil
	}
	var all field.ErrorList
	switch {
	case t.NamespaceSelector == nil && t.Directory == "":
		all = append(all, field.Required(path.Child("namespaceSelector"), "must say which targets there are, or directory must"))
	case t.NamespaceSelector != nil && t.Directory != "":
		all = append(all, field.Forbidden(path.Child("directory"), "must not be set beside namespaceSelector"))
	case t.NamespaceSelector != nil:
		all = append(all, validateTargetNamespaces(t, path)...)
	default:
		all = append(all, validateTargetDirectory(t, path)...)
	}
	all = append(all, validateTargetLimits(&t.Limits, path.Child("limits"))...)
	lease := ptr.Deref(t.AwaitLease, "")
	for _, msg := range validation.IsDNS1123Subdomain(lease) {
		all = append(all, field.Invalid(path.Child("awaitLease"), lease, "must name the Lease by which a process holds a target: "+msg))
	}
	if t.Sharding.Enabled {
		all = append(all, validateSharding(c, path.Child("sharding"))...)
	}
	all = append(all, validateProcessLeases(c)...)
	return append(all, validateOneTarget(c)...)
}

// validateSharding returns the faults of settings for one process.
func validateSharding(c *ResourceManagerConfiguration, path *field.Path) field.ErrorList {
	var all field.ErrorList
	if ptr.Deref(c.Controllers.ManagedResource.RolloutGroupNamespace, "") != "" {
		all = append(all, field.Forbidden(path.Child("enabled"), "must not be set with controllers.managedResource.rolloutGroupNamespace: each process would know its own members of a group only"))
	}
	if !ptr.Deref(c.LeaderElection.LeaderElect, true) {
		all = append(all, field.Forbidden(path.Child("enabled"), "must not be set without leaderElection.leaderElect: each process has a Lease, by the settings of the election"))
	}
	return all
}

// validateProcessLeases returns the faults of the settings of the Lease that each process has, whether there is an election or not.
func validateProcessLeases(c *ResourceManagerConfiguration) field.ErrorList {
	l, path := c.LeaderElection, field.NewPath("leaderElection")
	var all field.ErrorList
	if !ptr.Deref(l.LeaderElect, true) {
		l.LeaderElect = ptr.To(true)
		all = shared.ValidateLeaderElection(&l, path)
	}
	for _, msg := range validation.IsValidLabelValue(l.ResourceName) {
		all = append(all, field.Invalid(path.Child("resourceName"), l.ResourceName, "labels the Leases of processes with many targets: "+msg))
	}
	if l.RenewDeadline.Duration < 2*l.RetryPeriod.Duration {
		all = append(all, field.Invalid(path.Child("renewDeadline"), l.RenewDeadline.Duration.String(), "must be at least twice retryPeriod with targets"))
	}
	return all
}

// Sharded reports whether several processes share the targets.
func (c *ResourceManagerConfiguration) Sharded() bool {
	return c.Targets != nil && c.Targets.Sharding.Enabled
}

// keys are the keys of Secrets by the fields that name them.
func (t *TargetsConfiguration) keys() iter.Seq2[string, *SecretKey] {
	return func(yield func(string, *SecretKey) bool) {
		_ = yield("kubeconfig", t.Kubeconfig) && yield("ca", t.CA) &&
			yield("token", t.Token) && yield("overrides", t.Overrides)
	}
}

func validateTargetNamespaces(t *TargetsConfiguration, path *field.Path) field.ErrorList {
	all := selector(t.NamespaceSelector, path.Child("namespaceSelector"))
	if len(t.NamespaceSelector.MatchLabels)+len(t.NamespaceSelector.MatchExpressions) == 0 {
		all = append(all, field.Required(path.Child("namespaceSelector"), "must not select all namespaces"))
	}
	if t.Kubeconfig == nil && (t.Server == "" || t.Token == nil) {
		all = append(all, field.Required(path.Child("kubeconfig"), "must be set, or both server and token"))
	}
	for name, key := range t.keys() {
		if key == nil {
			continue
		}
		for _, msg := range validation.IsDNS1123Subdomain(key.SecretName) {
			all = append(all, field.Invalid(path.Child(name, "secretName"), key.SecretName, msg))
		}
		for _, msg := range validation.IsConfigMapKey(key.Key) {
			all = append(all, field.Invalid(path.Child(name, "key"), key.Key, msg))
		}
	}
	if t.Server != "" {
		server, err := url.Parse(strings.ReplaceAll(t.Server, NamespacePlaceholder, "namespace"))
		if err != nil || server.Scheme != "https" || server.Host == "" {
			all = append(all, field.Invalid(path.Child("server"), t.Server, "must be a URL that begins with https://"))
		}
	}
	return all
}

func validateTargetDirectory(t *TargetsConfiguration, path *field.Path) field.ErrorList {
	var all field.ErrorList
	if !filepath.IsAbs(t.Directory) {
		all = append(all, field.Invalid(path.Child("directory"), t.Directory, "must be an absolute path"))
	}
	for name, key := range t.keys() {
		if key != nil {
			all = append(all, field.Forbidden(path.Child(name), "must not be set with directory: the entries say it"))
		}
	}
	if t.Server != "" {
		all = append(all, field.Forbidden(path.Child("server"), "must not be set with directory: the kubeconfigs say it"))
	}
	return all
}

func validateTargetLimits(l *TargetLimits, path *field.Path) field.ErrorList {
	var all field.ErrorList
	if n := l.RequestsInFlight; n != nil && *n < 1 {
		all = append(all, field.Invalid(path.Child("requestsInFlight"), *n, "must be at least 1"))
	}
	for _, quantity := range []struct {
		name  string
		value *resource.Quantity
		least int64
	}{
		// An object may have 1.5 MiB in etcd, and twice that as JSON.
		{"bytesInFlight", l.BytesInFlight, 4 << 20}, {"totalBytesInFlight", l.TotalBytesInFlight, 4 << 20}, {"watchBytesPerSecond", l.WatchBytesPerSecond, 64 << 10},
	} {
		if quantity.value != nil && quantity.value.Value() < quantity.least {
			all = append(all, field.Invalid(path.Child(quantity.name), quantity.value.String(), "must be at least "+resource.NewQuantity(quantity.least, resource.BinarySI).String()))
		}
	}
	return all
}

// validateOneTarget returns an error for each setting that is about one target.
func validateOneTarget(c *ResourceManagerConfiguration) field.ErrorList {
	const message = "must not be set with targets: "
	var all field.ErrorList
	if c.TargetClientConnection != nil && c.TargetClientConnection.Kubeconfig != "" {
		all = append(all, field.Forbidden(field.NewPath("targetClientConnection", "kubeconfig"), message+"each target has its own"))
	}
	if len(c.SourceClientConnection.Namespaces) > 0 {
		all = append(all, field.Forbidden(field.NewPath("sourceClientConnection", "namespaces"), message+"the targets say which namespaces there are"))
	}
	return all
}

// ValidateOverrides returns the faults of the overrides of one target.
func ValidateOverrides(o *TargetOverrides) field.ErrorList {
	var all field.ErrorList
	if class := o.ResourceClass; class != nil && *class != "*" {
		for _, msg := range validation.IsQualifiedName("resources.gardener.cloud/gardener-resource-manager-" + *class) {
			all = append(all, field.Invalid(field.NewPath("resourceClass"), *class, msg))
		}
	}
	if o.Burst != nil && *o.Burst < 0 {
		all = append(all, field.Invalid(field.NewPath("burst"), *o.Burst, "must be non-negative"))
	}
	all = append(all, workers(o.ConcurrentSyncs, nil)...)
	all = append(all, syncPeriod(o.SyncPeriod, field.NewPath("syncPeriod"))...)
	return append(all, notBelowZero(o.DriftRepairDelay, field.NewPath("driftRepairDelay"))...)
}

// ValidateTargetEntry returns the faults of an entry.
func ValidateTargetEntry(e *TargetEntry) field.ErrorList {
	all := ValidateOverrides(&e.TargetOverrides)
	if e.Kubeconfig == "" {
		all = append(all, field.Required(field.NewPath("kubeconfig"), "must name the kubeconfig of the target"))
	}
	for _, msg := range validation.IsDNS1123Label(e.Namespace) {
		all = append(all, field.Invalid(field.NewPath("namespace"), e.Namespace, msg))
	}
	return all
}

// For returns the configuration for one target, in a namespace of the source.
func (c *ResourceManagerConfiguration) For(namespace string, o *TargetOverrides) *ResourceManagerConfiguration {
	own := c.DeepCopy()
	own.Targets = nil
	own.SourceClientConnection.Namespaces = []string{namespace}
	if o == nil {
		return own
	}
	set(&own.TargetClientConnection.QPS, o.QPS)
	set(&own.TargetClientConnection.Burst, o.Burst)
	set(own.Controllers.ResourceClass, o.ResourceClass)
	set(own.Controllers.ManagedResource.ConcurrentSyncs, o.ConcurrentSyncs)
	set(own.Controllers.Health.ConcurrentSyncs, o.ConcurrentSyncs)
	set(own.Controllers.ManagedResource.SyncPeriod, o.SyncPeriod)
	set(own.Controllers.Health.SyncPeriod, o.SyncPeriod)
	set(own.Controllers.ManagedResource.DriftRepairDelay, o.DriftRepairDelay)
	return own
}

func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

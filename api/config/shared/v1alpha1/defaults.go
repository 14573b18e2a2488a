package v1alpha1

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SetDefault sets *p to value when it is nil.
func SetDefault[T any](p **T, value T) {
	if *p == nil {
		*p = &value
	}
}

// SetDefaultValue sets *p to value when it is the zero value: serialisers write zero values for unset fields (CFG-5).
func SetDefaultValue[T comparable](p *T, value T) {
	var zero T
	if *p == zero {
		*p = value
	}
}

// Duration returns d as an API duration.
func Duration(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }

// SetDefaultsClientConnection sets the defaults of a connection and folds the older field namespace into namespaces.
func SetDefaultsClientConnection(c *ClientConnection, qps float32, burst int32) {
	SetDefaultValue(&c.QPS, qps)
	SetDefaultValue(&c.Burst, burst)
	if c.CacheResyncPeriod == nil || c.CacheResyncPeriod.Duration == 0 {
		c.CacheResyncPeriod = &metav1.Duration{Duration: 24 * time.Hour}
	}
	if c.Namespace != nil && *c.Namespace != "" {
		c.AddNamespace(*c.Namespace)
	}
	c.Namespace = nil
}

// AddNamespace adds a namespace to the list unless it is there.
func (c *ClientConnection) AddNamespace(namespace string) {
	if !slices.Contains(c.Namespaces, namespace) {
		c.Namespaces = append(c.Namespaces, namespace)
	}
}

// SetDefaultsLeaderElection sets the defaults of the election; zero durations count as unset (CFG-5).
func SetDefaultsLeaderElection(l *LeaderElection, resourceName string) {
	SetDefault(&l.LeaderElect, true)
	SetDefaultValue(&l.LeaseDuration, Duration(15*time.Second))
	SetDefaultValue(&l.RenewDeadline, Duration(10*time.Second))
	SetDefaultValue(&l.RetryPeriod, Duration(2*time.Second))
	SetDefaultValue(&l.ResourceLock, "leases")
	SetDefaultValue(&l.ResourceName, resourceName)
}

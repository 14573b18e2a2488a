package v1alpha1

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateClientConnection validates a connection.
func ValidateClientConnection(c *ClientConnection, path *field.Path) field.ErrorList {
	var all field.ErrorList
	if c.Burst < 0 {
		all = append(all, field.Invalid(path.Child("burst"), c.Burst, "must be non-negative"))
	}
	if period := c.CacheResyncPeriod; period != nil && period.Duration < 10*time.Second {
		all = append(all, field.Invalid(path.Child("cacheResyncPeriod"), int64(period.Duration), "must be at least 10s"))
	}
	return all
}

// ValidateLeaderElection validates the election's settings; they only matter when it is on.
func ValidateLeaderElection(l *LeaderElection, path *field.Path) field.ErrorList {
	if l.LeaderElect == nil || !*l.LeaderElect {
		return nil
	}
	var all field.ErrorList
	positive := func(name string, d time.Duration) {
		if d <= 0 {
			all = append(all, field.Invalid(path.Child(name), d.String(), "must be greater than zero"))
		}
	}
	positive("leaseDuration", l.LeaseDuration.Duration)
	positive("renewDeadline", l.RenewDeadline.Duration)
	positive("retryPeriod", l.RetryPeriod.Duration)
	if l.LeaseDuration.Duration <= l.RenewDeadline.Duration {
		all = append(all, field.Invalid(path.Child("leaseDuration"), l.RenewDeadline.Duration.String(), "must be greater than `RenewDeadline`"))
	}
	switch l.ResourceLock {
	case "leases":
	case "":
		all = append(all, field.Required(path.Child("resourceLock"), ""))
	default:
		all = append(all, field.NotSupported(path.Child("resourceLock"), l.ResourceLock, []string{"leases"}))
	}
	if l.ResourceName == "" {
		all = append(all, field.Required(path.Child("resourceName"), ""))
	}
	if l.ResourceNamespace == "" {
		all = append(all, field.Required(path.Child("resourceNamespace"), ""))
	}
	return all
}

// ValidateServer validates the port of a server.
func ValidateServer(s *Server, path *field.Path) field.ErrorList {
	if s.Port < 0 {
		return field.ErrorList{field.Invalid(path.Child("port"), s.Port, "must be greater than or equal to 0")}
	}
	if s.Port > 65535 {
		return field.ErrorList{field.Invalid(path.Child("port"), s.Port, "must be at most 65535")}
	}
	return nil
}

// ValidateDistinctPorts refuses two servers on one port (OPB-4).
func ValidateDistinctPorts(path *field.Path, servers map[string]*Server, order []string) field.ErrorList {
	var all field.ErrorList
	for i, name := range order {
		for _, earlier := range order[:i] {
			a, b := servers[name], servers[earlier]
			if a.Port > 0 && a.Port == b.Port && (a.BindAddress == b.BindAddress || a.BindAddress == "" || b.BindAddress == "") {
				all = append(all, field.Invalid(path.Child(name, "port"), a.Port, "is the port of "+path.Child(earlier).String()+", too"))
			}
		}
	}
	return all
}

// ValidateLog validates logLevel and logFormat.
func ValidateLog(level, format string) field.ErrorList {
	var all field.ErrorList
	if !slices.Contains([]string{LogLevelDebug, LogLevelInfo, LogLevelError}, level) {
		all = append(all, field.NotSupported(field.NewPath("logLevel"), level, []string{LogLevelDebug, LogLevelInfo, LogLevelError}))
	}
	if !slices.Contains([]string{LogFormatJSON, LogFormatText}, format) {
		all = append(all, field.NotSupported(field.NewPath("logFormat"), format, []string{LogFormatJSON, LogFormatText}))
	}
	return all
}

// ValidateOnlyReport requires that each listed name is in judging, and is listed once.
func ValidateOnlyReport(listed, judging []string, path *field.Path) field.ErrorList {
	var all field.ErrorList
	for i, name := range listed {
		switch {
		case !slices.Contains(judging, name):
			all = append(all, field.NotSupported(path.Index(i), name, judging))
		case slices.Contains(listed[:i], name):
			all = append(all, field.Duplicate(path.Index(i), name))
		}
	}
	return all
}

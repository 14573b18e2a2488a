package cluster

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
)

const (
	// RequestsVariable is the environment variable with the folder for the requests of AuditedGroup; without it none is written down.
	RequestsVariable = "ESPALIER_REQUESTS"
	// AuditedGroup has the users whose requests are written down.
	AuditedGroup = "espalier:audited"
	// RequestsLog is the file with the requests, in the folder of a cluster. Those that the log is rotated to begin alike.
	RequestsLog = "requests.log"
)

// auditPolicy tells of who asked for what, and never of a body.
//
//go:embed audit-policy.yaml
var auditPolicy []byte

// audit has the API server write the requests of AuditedGroup into a folder of the cluster's own, if somebody wants to know them.
func (c *Cluster) audit() error {
	base := os.Getenv(RequestsVariable)
	if base == "" {
		return nil
	}
	c.Requests = filepath.Join(base, fmt.Sprintf("%s-%d-%d", c.Name, os.Getpid(), c.port))
	if err := os.MkdirAll(c.Requests, 0o755); err != nil {
		return err
	}
	policy := filepath.Join(c.Dir, "audit-policy.yaml")
	if err := os.WriteFile(policy, auditPolicy, 0o600); err != nil {
		return err
	}
	// Those of the options come after them, and are in force.
	c.APIServerFlags = append([]string{"--audit-policy-file=" + policy, "--audit-log-path=" + filepath.Join(c.Requests, RequestsLog)}, c.APIServerFlags...)
	return nil
}

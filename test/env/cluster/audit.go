package cluster

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

const (
	// RequestsVariable is the environment variable with the folder for the requests of AuditedGroup; without it none is written down.
	RequestsVariable = "ESPALIER_REQUESTS"
	// AuditedGroup has the users whose requests are written down.
	AuditedGroup = "espalier:audited"
	// RequestsLog is the file with the requests, in the folder of a cluster. Rotated files begin alike.
	RequestsLog = "requests.log"
)

// Request is what an API server writes down about one that it was asked.
type Request struct {
	Stage string `json:"stage"`
	Verb  string `json:"verb"`
	User  struct {
		Name string `json:"username"`
	} `json:"user"`
	Object struct {
		Group       string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	Response struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	UserAgent string `json:"userAgent"`
	// Answer is the metadata of the answer, where the audit policy has it.
	Answer struct {
		Metadata struct {
			UID               string   `json:"uid"`
			ResourceVersion   string   `json:"resourceVersion"`
			DeletionTimestamp string   `json:"deletionTimestamp"`
			Finalizers        []string `json:"finalizers"`
		} `json:"metadata"`
	} `json:"responseObject"`
}

// Resource is the resource with its subresource, as rules name them.
func (r *Request) Resource() string {
	if r.Object.Subresource == "" {
		return r.Object.Resource
	}
	return r.Object.Resource + "/" + r.Object.Subresource
}

// EachRequest reads what an API server wrote into a file, a request a line: those lines that have a text, such as the name of a user.
func EachRequest(log, having string, do func(*Request)) error {
	file, err := os.Open(log)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF): // Also of a line that the API server did not get to write whole.
			return nil
		case err != nil:
			return err
		}
		if !bytes.Contains(line, []byte(having)) {
			continue
		}
		r := &Request{}
		if err := json.Unmarshal(line, r); err != nil {
			return fmt.Errorf("%s: %w", log, err)
		}
		do(r)
	}
}

// auditPolicy reports who asked for what, and never of a body.
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
	policy := filepath.Join(c.Dir, "requests-policy.yaml") // Users of a cluster may have an audit-policy.yaml of their own.
	if err := os.WriteFile(policy, auditPolicy, 0o600); err != nil {
		return err
	}
	// Those of the options come after them, and are in force.
	c.APIServerFlags = append([]string{"--audit-policy-file=" + policy, "--audit-log-path=" + filepath.Join(c.Requests, RequestsLog)}, c.APIServerFlags...)
	return nil
}

// Package auditgen writes audit logs as kube-apiserver does, for tests and benchmarks of replay. A log depends on the arguments only.
package auditgen

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/espalier-project/espalier/test/gen/landscape"
)

// Log is a log that is written.
type Log struct {
	out  *bufio.Writer
	line []byte
	n    int
}

// New returns a log; Flush ends it.
func New(to io.Writer) *Log { return &Log{out: bufio.NewWriterSize(to, 1<<20)} }

// Flush writes what is left.
func (l *Log) Flush() error { return l.out.Flush() }

// Lines is the number of lines.
func (l *Log) Lines() int { return l.n }

// Request is a request and what became of it.
type Request struct {
	User   string
	Groups []string
	// At is <verb> <resource>[.<group>][/<subresource>] [<namespace>/][<name>].
	At    string
	Query string
	// Code is that of the response; 0 means 200, or 403 for a request that is forbidden.
	Code   int
	Reason string
	// Object is the body of the response, and Request that of the request; nil means that the log has none.
	Object    any
	Request   any
	Forbidden bool
	// Untold leaves the annotations out.
	Untold bool
	// Stage is ResponseComplete if it is empty.
	Stage string
	// Began is the line of the request's first event, 0 if this is it.
	Began int
}

// Seed is a request of the gardenlet of a seed.
func Seed(seed, at string) Request {
	return Request{User: "gardener.cloud:system:seed:" + seed, Groups: []string{"gardener.cloud:system:seeds", "system:authenticated"}, At: at}
}

// Operator is a request of somebody who may do everything.
func Operator(at string, object any) Request {
	return Request{User: "kubernetes-admin", Groups: []string{"system:masters"}, At: at, Object: object, Reason: "RBAC: allowed by ClusterRoleBinding \"cluster-admin\""}
}

// But is the request forbidden.
func (r Request) But() Request { r.Forbidden = true; return r }

// Add writes an event.
func (l *Log) Add(r Request) {
	words := strings.Fields(r.At)
	verb, resource, name := words[0], words[1], ""
	if len(words) > 2 {
		name = words[2]
	}
	resource, subresource, _ := strings.Cut(resource, "/")
	resource, group, _ := strings.Cut(resource, ".")
	namespace := ""
	if before, after, found := strings.Cut(name, "/"); found {
		namespace, name = before, after
	}
	code, decision := 200, "allow"
	if r.Forbidden {
		code, decision = 403, "forbid"
	}
	if r.Code != 0 {
		code = r.Code
	}
	stage := "ResponseComplete"
	if r.Stage != "" {
		stage = r.Stage
	}
	groups, _ := json.Marshal(r.Groups)
	l.n++
	began := l.n
	if r.Began > 0 {
		began = r.Began
	}
	received, reached := timeOf(began), timeOf(l.n)
	at := "/apis/" + group + "/v1beta1/namespaces/" + namespace + "/" + resource + "/" + name
	level := "Metadata"
	if r.Object != nil {
		level = "RequestResponse"
	}
	b := l.line[:0]
	b = fmt.Appendf(b, `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":%q,"auditID":"%08x-1a2b-4c3d-8e9f-0123456789ab","stage":%q,"requestURI":%q,"verb":%q,`, level, began, stage, at+r.Query, verb)
	b = fmt.Appendf(b, `"user":{"username":%q,"uid":"0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9","groups":%s,"extra":{"authentication.kubernetes.io/credential-id":["X509SHA256=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"]}},`, r.User, groups)
	b = append(b, `"sourceIPs":["10.11.12.13","192.168.10.20"],"userAgent":"gardenlet/v0.0.0 (linux/amd64) kubernetes/$Format",`...)
	b = fmt.Appendf(b, `"objectRef":{"resource":%q,"namespace":%q,"name":%q,"apiGroup":%q,"apiVersion":"v1beta1","subresource":%q},"responseStatus":{"metadata":{},"code":%d},`, resource, namespace, name, group, subresource, code)
	for name, object := range map[string]any{"requestObject": r.Request, "responseObject": r.Object} {
		if object == nil {
			continue
		}
		body, err := json.Marshal(object)
		if err != nil {
			panic(err) // Objects of tests can be marshalled.
		}
		b = append(append(append(b, `"`+name+`":`...), body...), ',')
	}
	b = fmt.Appendf(b, `"requestReceivedTimestamp":%q,"stageTimestamp":%q`, received, reached)
	if !r.Untold {
		b = fmt.Appendf(b, `,"annotations":{"authorization.k8s.io/decision":%q,"authorization.k8s.io/reason":%q}`, decision, r.Reason)
	}
	b = append(b, "}\n"...)
	l.line = b
	_, _ = l.out.Write(b) // The error stays until Flush.
}

// timeOf is the time of a line: there are a hundred in a second.
func timeOf(line int) string {
	return time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC).Add(time.Duration(line) * 10 * time.Millisecond).Format("2006-01-02T15:04:05.000000Z")
}

// Landscape writes how a garden came to be, with bodies, and then what its gardenlets asked for. One request of ten is for another seed's object, and is
// forbidden.
func (l *Log) Landscape(o landscape.Options, requests int) error {
	groups := map[string]string{}
	err := o.Generate(func(object landscape.Object) error {
		group, _, found := strings.Cut(object.Content["apiVersion"].(string), "/")
		if !found {
			group = ""
		}
		groups[object.Resource] = group
		metadata := object.Content["metadata"].(map[string]any)
		namespace, _ := metadata["namespace"].(string)
		l.Add(Operator("create "+named(object.Resource, group)+" "+namespace+"/"+metadata["name"].(string), object.Content))
		return nil
	})
	for i := range requests {
		l.Add(requestOf(o, i))
	}
	return err
}

func named(resource, group string) string {
	if group == "" {
		return resource
	}
	return resource + "." + group
}

// requestOf is one of what the gardenlets of a garden ask for.
func requestOf(o landscape.Options, i int) Request {
	shoot := (i * 7919) % o.Shoots
	namespace, name := o.ShootName(shoot)
	seed := o.SeedOf(shoot)
	at := namespace + "/" + name
	switch i % 10 {
	case 0, 1, 2:
		return Seed(seed, "get secrets "+at+"-dns")
	case 3:
		return Seed(seed, "patch shoots.core.gardener.cloud/status "+at)
	case 4:
		return Seed(seed, "get shoots.core.gardener.cloud "+at)
	case 5:
		r := Seed(seed, "watch shoots.core.gardener.cloud")
		r.Query = fmt.Sprintf("?allowWatchBookmarks=true&labelSelector=name.seed.gardener.cloud%%2F%s%%3Dtrue&resourceVersion=%d&watch=true", seed, 1000+i)
		return r
	case 6:
		return Seed(seed, "create events "+namespace+"/x")
	case 7:
		return Seed(seed, "get backupentries.core.gardener.cloud "+namespace+"/shoot--"+name)
	case 8:
		return Seed(seed, "get cloudprofiles.core.gardener.cloud "+landscape.CloudProfile)
	}
	return Seed(o.IdleSeed(), "get secrets "+at+"-dns").But()
}

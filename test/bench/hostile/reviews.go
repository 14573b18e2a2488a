package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
)

type fields = map[string]any

// object is what an AdmissionReview is about.
type object struct {
	apiVersion, kind, resource, namespace, name string
	// content is what it has beside its names.
	content fields
}

// review is an AdmissionReview of a request of a user.
func review(operation, user string, groups []string, o object, old fields) []byte {
	group, version := "", o.apiVersion
	if before, after, found := strings.Cut(o.apiVersion, "/"); found {
		group, version = before, after
	}
	content := fields{"apiVersion": o.apiVersion, "kind": o.kind}
	metadata := fields{"name": o.name, "namespace": o.namespace}
	for key, value := range o.content {
		if key != "metadata" {
			content[key] = value
			continue
		}
		for name, value := range value.(fields) {
			metadata[name] = value
		}
	}
	content["metadata"] = metadata
	request := fields{
		"uid": "0df28fbd-5f5f-11e8-bc74-36e6bb280816", "operation": operation, "namespace": o.namespace, "name": o.name,
		"kind": fields{"group": group, "version": version, "kind": o.kind}, "resource": fields{"group": group, "version": version, "resource": o.resource},
		"userInfo": fields{"username": user, "groups": groups}, "object": content, "oldObject": nil,
	}
	if old != nil {
		before := fields{"apiVersion": o.apiVersion, "kind": o.kind, "metadata": fields{"name": o.name, "namespace": o.namespace}}
		for key, value := range old {
			before[key] = value
		}
		request["oldObject"] = before
	}
	return encoded(fields{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
}

// access is a SubjectAccessReview.
func access(user string, groups []string, verb, group, resource, namespace, name string) []byte {
	return encoded(fields{"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": fields{
		"user": user, "groups": groups,
		"resourceAttributes": fields{"verb": verb, "group": group, "version": "v1", "resource": resource, "namespace": namespace, "name": name},
	}})
}

func encoded(value any) []byte {
	content, err := json.Marshal(value)
	if err != nil {
		panic(err) // It is made of literals.
	}
	return content
}

// member is a member of a project.
const member = "somebody@example.com"

var people = []string{"system:authenticated"}

// secret is the creation of a Secret by a member of a project.
func secret(namespace, name string, content fields) []byte {
	return review("CREATE", member, people, object{apiVersion: "v1", kind: "Secret", resource: "secrets", namespace: namespace, name: name, content: content}, nil)
}

// shoot is the creation of a Shoot of a size whose API server has a configuration.
func shoot(namespace, name string, size int, server fields) []byte {
	return review("CREATE", member, people, object{apiVersion: core, kind: "Shoot", resource: "shoots", namespace: namespace, name: name, content: fields{
		"metadata": fields{"annotations": fields{"size": strings.Repeat("x", size)}}, "spec": fields{"kubernetes": fields{"version": "1.34.1", "kubeAPIServer": server}},
	}}, nil)
}

const core = "core.gardener.cloud/v1beta1"

// aliasBomb is YAML of a size whose aliases expand to about size²/24 bytes.
func aliasBomb(size int) string {
	return "a: &a \"" + strings.Repeat("x", size/2) + "\"\nb: [*a" + strings.Repeat(",*a", size/6) + "]\n"
}

func base64Of(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// kubeconfig is one that is admitted, of about a size.
func kubeconfig(size int) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],`+
		`"clusters":[{"name":"c","cluster":{"server":"https://example.com"}}],"users":[{"name":"u","user":{"token":"%s"}}]}`, strings.Repeat("t", size))
}

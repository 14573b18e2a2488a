package dropin

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// request is one that an API server has answered.
type request struct {
	Stage string `json:"stage"`
	Verb  string `json:"verb"`
	URI   string `json:"requestURI"`
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
}

func (r *request) String() string {
	resource := r.Object.Resource
	if r.Object.Subresource != "" {
		resource += "/" + r.Object.Subresource
	}
	return fmt.Sprintf("%s %s %s/%s", r.Verb, resource, r.Object.Namespace, r.Object.Name)
}

// requests returns those of a user that a condition holds for.
func (a *audited) requests(t *testing.T, user string, which func(*request) bool) []string {
	t.Helper()
	file, err := os.Open(a.log)
	must(t, err)
	defer func() { _ = file.Close() }()
	var found []string
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		if !strings.Contains(scanner.Text(), user) {
			continue
		}
		r := &request{}
		must(t, json.Unmarshal(scanner.Bytes(), r))
		if r.User.Name == user && r.Stage == "ResponseComplete" && which(r) {
			found = append(found, r.String())
		}
	}
	must(t, scanner.Err())
	return found
}

// writes are requests that may change something. Questions about a token or a user, asked by POST, are none; nor are Leases and Events, which
// belong to the process and not to what it looks after.
func writes(r *request) bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.Verb) &&
		!slices.Contains([]string{"tokenreviews", "subjectaccessreviews", "selfsubjectaccessreviews", "leases", "events"}, r.Object.Resource)
}

// forbidden are requests that RBAC has refused.
func forbidden(r *request) bool { return r.Response.Code == 403 }

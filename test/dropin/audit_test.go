package dropin

import (
	"fmt"
	"slices"
	"testing"

	"github.com/espalier-project/espalier/test/env/cluster"
	"github.com/espalier-project/espalier/test/must"
)

// request is one that an API server has answered.
type request cluster.Request

func (r *request) String() string {
	return fmt.Sprintf("%s %s %s/%s", r.Verb, (*cluster.Request)(r).Resource(), r.Object.Namespace, r.Object.Name)
}

// requests returns those of a user that a condition holds for.
func (a *audited) requests(t *testing.T, user string, which func(*request) bool) []string {
	t.Helper()
	var found []string
	must.Succeed(t, cluster.EachRequest(a.log, user, func(each *cluster.Request) {
		if r := (*request)(each); r.User.Name == user && r.Stage == "ResponseComplete" && which(r) {
			found = append(found, r.String())
		}
	}))
	return found
}

// writes are requests that may change something. Questions about a token or a user, asked by POST, are none; nor are Leases and Events, which
// belong to the process and not to what it looks after.
func writes(r *request) bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.Verb) &&
		!slices.Contains([]string{"tokenreviews", "subjectaccessreviews", "selfsubjectaccessreviews", "leases", "events"}, r.Object.Resource)
}

// forbidden are requests that RBAC has refused.
func forbidden(r *request) bool {
	return r.Response.Code == 403
}

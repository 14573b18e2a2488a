package restriction

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/internal/endpoint/authorization"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
)

// judgeAsShadow decides a request once more with the shadow policy (SHD-5), if that has other rules for it: for the
// references with which a gardenlet registers itself. Neither policy reads anything for these kinds, so that a second
// decision costs the garden nothing.
func (q *request) judgeAsShadow(ctx context.Context, err error) {
	if q.Shadow == nil || *q.Shadow == q.Checked || !q.registers() {
		return
	}
	again := *q
	handler := *q.Handler
	handler.Checked, again.Handler = *q.Shadow, &handler
	other := dispatch(ctx, &again, q.AdmissionRequest, again.rules())
	difference := authorization.Difference{Authorizer: SeedName, Rule: "RES-37", Client: string(q.client.Type), Outcome: authorization.WouldRefuse}
	reason := ""
	switch {
	case err == nil && other == nil || err != nil && other != nil:
		return
	case other == nil:
		difference.Outcome = authorization.WouldAllow
	default:
		reason = other.Error()
		admission.Annotate(ctx, admission.ShadowRefuses, reason)
	}
	q.Differences.Count(difference, q.Log, reason, "user", q.UserInfo.Username, "operation", q.Operation, "resource", q.resource(),
		"namespace", q.Namespace, "name", q.Name)
}

// registers reports whether the request is one with which a gardenlet registers itself.
func (q *request) registers() bool {
	for kind, all := range registering {
		if relation.WatchOf(kind).Resource.GroupResource() == (schema.GroupResource{Group: q.Resource.Group, Resource: q.Resource.Resource}) {
			return slices.Contains(all, q.Operation)
		}
	}
	return false
}

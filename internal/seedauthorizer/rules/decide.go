package rules

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/espalier-project/espalier/internal/externalapi/wellknown"
	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
)

// request is a request under decision, in the terms of the rules.
type request struct {
	authorizer  *Authorizer
	client      client
	verb        verbs
	namespace   string
	name        string
	subresource string
	attributes  authorizer.Attributes
	policy      Policy
	// differs is set if the decision depends on the policy, and the shadow policy may decide differently (shadow.go).
	differs bool
	// judged is the result of the graph if the shadow policy may decide differently with it; valid is set if there is
	// one.
	judged struct {
		graph.Result
		valid bool
	}
	asking
}

// decision is the result for a request, with its derivation.
type decision struct {
	allowed bool
	reason  string
	// rule is the rule that decided; step is a step of the algorithm or an exception of the rule.
	rule, step string
	// undecided is set if a shadow policy would have to read something.
	undecided bool
	// vertex is set if the graph was checked.
	vertex  graph.Vertex
	checked bool
	// narrow is set if only a path whose first edge is a managed one gives access (B-6).
	narrow bool
	// shadow is the decision of the shadow policy.
	shadow shadowed
}

func (q *request) allow(step string) decision { return decision{allowed: true, step: step} }

func (q *request) allowIf(condition bool, step string) (decision, bool) {
	return decision{allowed: condition, step: step}, condition
}

func (q *request) noOpinion(step, reason string) decision {
	return decision{step: step, reason: reason}
}

func (q *request) inSeedNamespace() bool {
	seed, found := strings.CutPrefix(q.namespace, wellknown.SeedPrefix)
	return found && seed == q.client.Seed
}

// decide executes the algorithm (section 3 of the authorization contract). The first step that applies decides. No
// request is denied, only left to the next authorizer ("no opinion", C2):
//
//	SA-1   the user is no client of this table, or one of a Shoot that is not self-hosted (SHI-3): no opinion
//	SA-2   the request is for no resource: no opinion
//	SA-3   the table has no rule for the resource: no opinion
//	SA-4   an exception of the rule applies: its decision
//	SA-5   the rule is for one namespace, and this is another: no opinion; reads are open under readScope All (D-2)
//	SA-6   the subresource is not in the rule: no opinion; for Events the verb is checked first (SR-13)
//	SA-7   the verb is always allowed, by the rule or for reads by readScope All (D-1): allow
//	SA-8   the verb is not allowed by path either: no opinion
//	SA-9   list or watch of several objects, and the API server sends selectors: allow with the rule's, else no opinion (SEL-1 … SEL-10)
//	SA-10  there is no name: no opinion
//	SA-11  the object's vertex is its kind, namespace and name; that of a Namespace has no namespace
//	SA-12  delete of an object that the graph does not have, and that a live read does not find: allow (R17)
//	SA-13  the vertex leads to the client's Seed, or self-hosted Shoot: allow; for writes under writeScope Owned by a managed edge (B-6)
//	SA-14  otherwise: no opinion, with the link that is missing
//
// A table may decide about some clients without its rules, between SA-2 and SA-3: gardenadm (SH-22), extensions of a
// Shoot that is a seed (SH-23).
func (a *Authorizer) decide(ctx context.Context, attributes authorizer.Attributes, how asking) (decision, error) {
	who := attributes.GetUser()
	if who == nil {
		return decision{step: "SA-1"}, nil
	}
	client, ok := a.identify(who)
	if !ok {
		return decision{step: "SA-1"}, nil
	}
	if !attributes.IsResourceRequest() {
		return decision{step: "SA-2"}, nil
	}
	q := &request{
		authorizer: a, client: client, verb: verbOf(attributes.GetVerb()), namespace: attributes.GetNamespace(), name: attributes.GetName(),
		subresource: attributes.GetSubresource(), attributes: attributes, policy: a.policy(), asking: how,
	}
	if a.table.before != nil {
		if v, decided, err := a.table.before(ctx, q); decided || err != nil {
			return v, err
		}
	}
	r := a.table.ruleFor(attributes.GetAPIGroup(), attributes.GetResource(), q.client.Type)
	if r == nil {
		return decision{step: "SA-3"}, nil
	}
	v, err := a.apply(ctx, r, q)
	v.rule = r.id
	if err == nil && !v.allowed {
		v.reason += " (" + r.id + ")"
	}
	if err == nil && q.differs {
		v.shadow = a.decideAsShadow(ctx, r, q, v.allowed)
	}
	return v, err
}

// apply applies a rule: SA-4 to SA-10, and SA-11 to SA-14 in byPath.
func (a *Authorizer) apply(ctx context.Context, r *rule, q *request) (decision, error) {
	for i := range r.exceptions {
		if v, decided := r.exceptions[i].decide(q); decided {
			return v, nil
		}
	}
	if r.lookup != nil {
		if v, decided, err := r.lookup(ctx, q); decided || err != nil {
			return v, err
		}
	}
	always, openNamespace := r.always, ""
	if r.namespace != nil {
		openNamespace = r.namespace(&q.client)
	}
	if r.seedReads && q.verb.has(reads) && q.readsAll() {
		always |= reads
		openNamespace = "" // Reads are open in any namespace (D-2).
	}
	switch {
	case openNamespace != "" && q.namespace != openNamespace:
		return q.noOpinion("SA-5", namespacesAllowed+"["+openNamespace+"]"), nil
	case r.free && !always.has(q.verb):
		return q.noOpinion("SA-8", r.verbText), nil
	case !r.allowsSubresource(q.subresource):
		return q.noOpinion("SA-6", r.subresourceText), nil
	case always.has(q.verb):
		return q.allow("SA-7"), nil
	case !r.path.has(q.verb):
		return q.noOpinion("SA-8", r.verbText), nil
	}
	if q.verb.has(verbList|verbWatch) && (q.name == "" || r.selectsByName()) {
		if v, decided, err := a.selected(ctx, r, q); decided || err != nil {
			return v, err
		}
	}
	if q.name == "" {
		return q.noOpinion("SA-10", noName), nil
	}
	return a.byPath(ctx, r, q), nil
}

func (r *rule) selectsByName() bool {
	for _, s := range r.selectors {
		for _, key := range s.keys {
			if key == "metadata.name" {
				return true
			}
		}
	}
	return false
}

// selected implements SA-9 (section 5 of the contract). If the API server sends selectors (SEL-1), one of the rule's
// selectors is required (SEL-2 to SEL-6). If it does not, a client whose rule has a selector gets all objects
// (SEL-7), and other clients continue with SA-10 (SEL-8).
func (a *Authorizer) selected(ctx context.Context, r *rule, q *request) (decision, bool, error) {
	possible, err := q.selectorsPossible(ctx)
	switch {
	case err != nil:
		return decision{step: "SEL-1"}, true, fmt.Errorf("failed checking if authorization with selectors is possible: failed checking whether 'AuthorizeWithSelectors' feature is enabled: %w", err)
	case !possible && len(r.selectors) > 0:
		return q.allow("SEL-7"), true, nil
	case !possible:
		return decision{}, false, nil
	}
	for _, s := range r.selectors {
		if s.label != nil && q.selectsLabel(s.label(&q.client)) {
			return q.allow("SEL-4"), true, nil
		}
		if s.fields != nil && q.selectsFields(s.keys, s.fields(&q.client)) {
			return q.allow("SEL-3"), true, nil
		}
	}
	return q.noOpinion("SEL-2", "must specify field or label selector for name "+q.client.name), true, nil
}

func (q *request) selectorsPossible(ctx context.Context) (bool, error) {
	if q.live {
		return q.authorizer.Selectors.Possible(ctx)
	}
	possible, known := q.authorizer.Selectors.Known()
	if !known {
		return false, errors.New("it is not known yet whether the API server sends selectors")
	}
	return possible, nil
}

// selectsFields requires all fields of a selector: one of several would not limit the result to the client's objects
// (B-7).
func (q *request) selectsFields(keys, values []string) bool {
	for i, key := range keys {
		if !q.selectsField(key, values[i]) {
			return false
		}
	}
	return true
}

func (q *request) selectsField(key, value string) bool {
	requirements, _ := q.attributes.GetFieldSelector() // The valid requirements count, even if others are not (SEL-6).
	for _, r := range requirements {
		switch r.Operator {
		case selection.Equals, selection.DoubleEquals, selection.In:
			if r.Field == key && r.Value == value {
				return true
			}
		}
	}
	return false
}

// selectsLabel requires one requirement that only objects with the client's label meet (B-7). Requirements are joined
// by "and", so that further requirements only narrow the result. A requirement that the key exists (T3-3) is
// sufficient only if the key itself names the client: for gardener.cloud/role=shoot-service-account-issuer only the
// value distinguishes it from every other role.
func (q *request) selectsLabel(own ownLabel) bool {
	requirements, _ := q.attributes.GetLabelSelector()
	for _, r := range requirements {
		if r.Key() != own.key {
			continue
		}
		switch r.Operator() {
		case selection.Exists:
			if own.keyNamesClient {
				return true
			}
		case selection.Equals, selection.DoubleEquals, selection.In:
			if !slices.ContainsFunc(r.ValuesUnsorted(), func(value string) bool { return value != own.value }) {
				return true
			}
		}
	}
	return false
}

// byPath checks the graph (SA-11 to SA-14), and reads objects that the graph does not have from the garden.
func (a *Authorizer) byPath(ctx context.Context, r *rule, q *request) decision {
	from := graph.Vertex{Kind: r.kind, Namespace: q.namespace, Name: q.name}
	if r.kind == relation.Namespace {
		from.Namespace = "" // The API server sends the name in both.
	}
	v := decision{step: "SA-13", vertex: from, checked: true}
	if q.shadow && q.judged.valid {
		a.judge(r, q, q.judged.Result, &v)
		return v
	}
	managed := r.referenced && q.verb.has(writes) && a.asksManaged()
	checked := a.check(from, q, managed)
	if !checked.Known {
		if shoot, found := olderName(from); found {
			if of := a.check(shoot, q, managed); of.Reached {
				v.vertex, checked = shoot, of
				checked.Managed = true
			}
		}
	}
	a.judge(r, q, checked, &v)
	switch {
	case q.shadow && !v.allowed && !checked.Watched && a.Watches.Of(r.kind) != nil:
		v.undecided = true // The graph does not have the object, and a shadow policy reads nothing.
	case !checked.Reached && q.live && a.Live != nil:
		a.lookAgain(ctx, r, q, checked, &v)
	}
	return v
}

// judge derives the decision from a check of the graph's edges, or of the edges of an object that was read.
func (a *Authorizer) judge(r *rule, q *request, checked graph.Result, v *decision) {
	v.narrow = r.referenced && q.verb.has(writes) && q.policy.WriteOwned
	narrow := checked.Reached && !checked.Managed && r.referenced && q.verb.has(writes) && q.writesOwned(checked)
	v.allowed, v.step, v.reason = checked.Reached && !narrow, "SA-13", ""
	switch {
	case v.allowed:
	case checked.Reached:
		v.step = "B-6"
		v.reason = fmt.Sprintf("no relationship found: %s is only referred to by objects of %s, which gives no right to write it", relation.Schema.String(v.vertex), relation.Schema.String(q.client.sink))
	default:
		v.step = "SA-14"
		v.reason = refusal(v.vertex, q.client.sink, checked.Known)
	}
}

// refusal names the missing path. Refusals are as frequent as permissions, so this is one allocation.
func refusal(from, to graph.Vertex, known bool) string {
	what := " is not known to lead to "
	if known {
		what = " does not lead to "
	}
	fromSlash, toSlash := "/", "/"
	if from.Namespace == "" {
		fromSlash = ""
	}
	if to.Namespace == "" {
		toSlash = ""
	}
	return "no relationship found: " + relation.Schema.Names[from.Kind] + ":" + from.Namespace + fromSlash + from.Name + what +
		relation.Schema.Names[to.Kind] + ":" + to.Namespace + toSlash + to.Name
}

// check checks the graph; managed is set if the result must include whether the vertex is managed.
func (a *Authorizer) check(from graph.Vertex, q *request, managed bool) graph.Result {
	to := q.client.sink
	if a.Metrics == nil || !q.counted {
		return a.ask(from, to, managed)
	}
	started := time.Now()
	result := a.ask(from, to, managed)
	a.Metrics.checked(from.Kind, to.Kind, time.Since(started))
	return result
}

func (a *Authorizer) ask(from, to graph.Vertex, managed bool) graph.Result {
	if managed {
		return a.Graph.CheckManaged(from, to)
	}
	return a.Graph.Check(from, to)
}

// olderName returns the vertex of the Shoot to which a Secret of an older release belongs. Such Secrets have no
// vertex (2.4).
func olderName(v graph.Vertex) (graph.Vertex, bool) {
	shoot, found := strings.CutSuffix(v.Name, wellknown.ShootKubeconfig)
	return graph.Vertex{Kind: relation.Shoot, Namespace: v.Namespace, Name: shoot}, found && v.Kind == relation.Secret
}

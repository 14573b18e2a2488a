package replay

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/espalier-project/espalier/internal/endpoint/auditlog"
	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/dump"
	"github.com/espalier-project/espalier/internal/seedauthorizer/identity"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/internal/seedauthorizer/rules"
)

// RuleSet is a policy, and a table of edges without some rules.
type RuleSet struct {
	Policy rules.Policy
	// Without are the rules whose edges are not made.
	Without []string
}

// Options has the input of a replay.
type Options struct {
	Source auditlog.Source
	// Dump is the folder with a dump of the garden; empty means that the log is the only source.
	Dump string
	// First decides each request. If Second is set, it decides, too, and the log's own decisions are not used.
	First  RuleSet
	Second *RuleSet
	// Against, if it is set, decides in place of a second rule set: another release of the executable (against.go).
	Against *Against
	// Each, if it is set, receives each decision, and nothing is compared.
	Each func(e *auditlog.Event, d rules.Decision) error
	// Selectors is set if the API server sends selectors to authorizers.
	Selectors bool
}

// Result is the result of a replay.
type Result struct {
	auditlog.Summary
	auditlog.Table
	// Decided counts the requests of clients, Undecided those that could not be decided without a read, and ByOthers
	// those that another authorizer allowed.
	Decided, Undecided, ByOthers int
	auditlog.Followed
	// Objects is the number of objects in the dump, which was taken at Taken.
	Objects int
	Taken   time.Time
}

// Texts of decisions.
const (
	allow     = rules.Allow
	noOpinion = rules.NoOpinion
)

// Run reads a log and decides about it.
func Run(ctx context.Context, o Options) (*Result, error) {
	p, err := newPlayer(o)
	if err != nil {
		return nil, err
	}
	p.against, p.each = o.Against, o.Each
	o.Source.Keep = keep
	p.result.Summary, err = o.Source.Read(func(e *auditlog.Event) error { return p.play(ctx, e) })
	return p.result, err
}

// keep keeps answered requests of clients, and writes of others that change the graphs.
func keep(e *auditlog.Event) bool {
	return e.Resource != "" && e.Answered() && (isClient(e) || isWrite(e))
}

func isClient(e *auditlog.Event) bool {
	if _, is := identity.OfSeed(e.User, e.Groups); is {
		return true
	}
	_, is := identity.OfShoot(e.User, e.Groups)
	return is
}

// deciders are the authorizers of a rule set.
type deciders struct {
	seeds, shoots *rules.Authorizer
	world         *world
}

// player decides about one event after the other.
type player struct {
	clock   *eventClock
	worlds  []*world
	first   deciders
	second  *deciders
	against *Against
	each    func(*auditlog.Event, rules.Decision) error
	result  *Result
	// requests finds the time at which a request was decided.
	requests *auditlog.Requests
	// fromLog are the objects that writes of the log have set.
	fromLog map[graph.Vertex]struct{}
	record  authorizer.AttributesRecord
	user    user.DefaultInfo
}

func newPlayer(o Options) (*player, error) {
	p := &player{clock: &eventClock{}, result: &Result{}, requests: auditlog.NewRequests(), fromLog: map[graph.Vertex]struct{}{}}
	p.first = p.deciders(o.First, o.Selectors)
	if o.Second != nil {
		second := p.deciders(*o.Second, o.Selectors)
		p.second = &second
	}
	if o.Dump == "" {
		return p, nil
	}
	header, err := dump.ReadHeader(o.Dump)
	if err != nil {
		return nil, err
	}
	p.clock.now = header.Taken
	_, err = dump.Read(o.Dump, func(kind graph.Kind, object runtime.Object) error {
		for _, w := range p.worlds {
			w.Set(kind, object)
		}
		return nil
	})
	p.result.Objects, p.result.Taken = header.Objects(), header.Taken
	return p, err
}

// deciders returns the authorizers of a rule set. Rule sets with the same edges share their graphs.
func (p *player) deciders(set RuleSet, selectors bool) deciders {
	at := slices.IndexFunc(p.worlds, func(w *world) bool { return slices.Equal(w.withoutEdges, set.Without) })
	if at < 0 {
		at = len(p.worlds)
		p.worlds = append(p.worlds, &world{relation.NewGarden(p.clock, set.Without...), set.Without})
	}
	w := p.worlds[at]
	options := rules.Options{
		Graph: w.Seeds.Graph, Watches: w.SeedTable, Facts: w.Seeds.Facts(), Selectors: sends(selectors), Log: logr.Discard(),
		ReadAll: set.Policy.ReadAll, WriteOwned: set.Policy.WriteOwned,
	}
	d := deciders{seeds: rules.NewSeedAuthorizer(options), world: w}
	options.Graph, options.Watches, options.Facts, options.WriteOwned = w.Shoots.Graph, w.ShootTable, w.Shoots.Facts(), false
	d.shoots = rules.NewShootAuthorizer(options, d.seeds)
	return d
}

// sends reports whether an API server sends selectors.
type sends bool

// Possible implements rules.Selectors.
func (s sends) Possible(context.Context) (bool, error) { return bool(s), nil }

// Known implements rules.Selectors.
func (s sends) Known() (possible, known bool) { return bool(s), true }

// of returns the authorizer that decides about a client of a seed or of a self-hosted shoot.
func (d *deciders) of(attributes authorizer.Attributes) *rules.Authorizer {
	if d.seeds.Decides(attributes) {
		return d.seeds
	}
	return d.shoots
}

// play decides about an event, and then applies its write to the graphs.
func (p *player) play(ctx context.Context, e *auditlog.Event) error {
	if isClient(e) && p.requests.Counts(e) {
		if err := p.decide(ctx, e); err != nil {
			return err
		}
	}
	if isWrite(e) {
		p.write(e)
	}
	return nil
}

func (p *player) write(e *auditlog.Event) {
	changes, known := writtenBy(e)
	p.result.Count(e, known)
	if !known {
		return
	}
	p.requests.Wrote(e)
	if received, err := time.Parse(time.RFC3339Nano, e.Received); err == nil {
		p.clock.now = received
	}
	for _, w := range changes {
		for _, world := range p.worlds {
			if w.object == nil {
				world.Delete(w.kind, w.namespace, w.name)
			} else {
				world.Set(w.kind, w.object)
			}
		}
		p.fromLog[graph.Vertex{Kind: w.kind, Namespace: w.namespace, Name: w.name}] = struct{}{}
	}
}

// decide compares decisions about a request.
func (p *player) decide(ctx context.Context, e *auditlog.Event) error {
	p.attributes(e)
	is, err := p.first.of(&p.record).Decide(ctx, &p.record)
	if err != nil {
		return err
	}
	p.result.Decided++
	other := rules.Decision{}
	switch {
	case p.each != nil:
		return p.each(e, is)
	case p.against != nil:
		other, err = p.against.next(e)
	case p.second != nil:
		other, err = p.second.of(&p.record).Decide(ctx, &p.record)
	default:
		p.compareLog(ctx, e, is)
		return nil
	}
	if err != nil || is.Allowed == other.Allowed {
		return err
	}
	p.differ(ctx, e, is, other)
	return nil
}

// differ counts a request that two rule sets decide differently.
func (p *player) differ(ctx context.Context, e *auditlog.Event, is, other rules.Decision) {
	refused, refuses := other, p.second
	if !is.Allowed {
		refused, refuses = is, &p.first
	}
	if refuses == nil { // Another executable refuses it, and its graph is not available.
		refused.Vertex, refused.Asked, refuses = is.Vertex, is.Asked, &p.first
	}
	if refused.Unseen || (is.Asked || other.Asked) && p.requests.Overtaken(e) {
		p.result.Undecided++
		return
	}
	key := p.key(e, is, text(is.Allowed), text(other.Allowed))
	p.result.Add(key, e, func(c *auditlog.Cell) { p.describe(ctx, c, refused, refuses) })
}

func text(allowed bool) string {
	if allowed {
		return allow
	}
	return noOpinion
}

// compareLog compares a decision with that in the log: in its annotation, or else in its status code.
func (p *player) compareLog(ctx context.Context, e *auditlog.Event, is rules.Decision) {
	allowed, known := e.Allowed()
	switch {
	case !known:
		p.result.Undecided++ // The log does not show whether it was allowed.
	case allowed == is.Allowed:
	case allowed && e.Reason != "":
		p.result.ByOthers++ // RBAC gives a reason; the authorizers here give none when they allow.
	case !is.Allowed && is.Unseen, is.Asked && p.requests.Overtaken(e):
		p.result.Undecided++
	default:
		key := p.key(e, is, text(allowed), text(is.Allowed))
		p.result.Add(key, e, func(c *auditlog.Cell) { p.describe(ctx, c, is, &p.first) })
	}
}

func (p *player) key(e *auditlog.Event, d rules.Decision, was, is string) auditlog.Key {
	return auditlog.Key{
		Rule: d.Rule, Client: p.first.of(&p.record).ClientOf(&p.record), Resource: auditlog.Resource(e.APIGroup, e.Resource, e.Subresource), Was: was, Is: is,
	}
}

// describe adds to an example the missing links, the authorizer that refuses it, and the sources of the facts.
func (p *player) describe(ctx context.Context, c *auditlog.Cell, refused rules.Decision, by *deciders) {
	path := p.pathOf(refused)
	if refused.Asked {
		c.Known = p.knownFrom(by, append(path, refused.Vertex))
	}
	if refused.Allowed {
		return
	}
	c.Reason = refused.Reason
	if c.Missing = by.lacks(&p.record, path); c.Missing == nil {
		c.Missing = missing(by.of(&p.record).Explain(ctx, &p.record))
	}
}

// pathOf returns the path over which one of the rule sets allows a request.
func (p *player) pathOf(d rules.Decision) []graph.Vertex {
	for _, each := range []*deciders{&p.first, p.second} {
		if each == nil {
			continue
		}
		if found := each.of(&p.record).PathOf(d, &p.record); found != nil {
			return found
		}
	}
	return nil
}

// lacks returns the edges of another rule set's path that these rules do not make.
func (d *deciders) lacks(attributes authorizer.Attributes, path []graph.Vertex) []string {
	var all []string
	known := d.of(attributes).Graph
	for i := 1; i < len(path); i++ {
		from, to := path[i-1], path[i]
		if slices.ContainsFunc(known.EdgesFrom(from), func(e graph.Edge) bool { return e.To == to }) {
			continue
		}
		all = append(all, relation.Schema.String(from)+" -> "+relation.Schema.String(to)+d.without(from.Kind, to.Kind))
	}
	return all
}

// without returns the name of the edge between two kinds that is not made.
func (d *deciders) without(from, to graph.Kind) string {
	for _, w := range slices.Concat(d.world.SeedTable, d.world.ShootTable) {
		for _, r := range w.Rows {
			if slices.Contains(d.world.withoutEdges, r.ID) && slices.Contains(r.From, from) && slices.Contains(r.To, to) {
				return " (" + r.ID + ")"
			}
		}
	}
	return ""
}

// alternatives is the number of sets of missing links that an example shows.
const alternatives = 3

// missing returns the likeliest sets of links that would allow a request, one in each line.
func missing(answer rules.Explanation) []string {
	var all []string
	for _, candidate := range answer.Candidates[:min(alternatives, len(answer.Candidates))] {
		var links []string
		for i := range candidate.Links {
			links = append(links, candidate.Links[i].String())
		}
		all = append(all, strings.Join(links, " and "))
	}
	return all
}

// knownFrom returns the sources of the objects on a path.
func (p *player) knownFrom(by *deciders, path []graph.Vertex) string {
	log, dumped := false, false
	for _, v := range path {
		if _, is := p.fromLog[v]; is {
			log = true
			continue
		}
		_, bySeeds := by.world.Seeds.Graph.Contribution(v)
		_, byShoots := by.world.Shoots.Graph.Contribution(v)
		dumped = dumped || bySeeds || byShoots
	}
	switch {
	case log && dumped:
		return "log and dump"
	case log:
		return "log"
	case dumped:
		return "dump"
	}
	return "nothing"
}

// attributes fills in the attributes of an event's request.
func (p *player) attributes(e *auditlog.Event) {
	p.user = user.DefaultInfo{Name: e.User, Groups: e.Groups}
	p.record = authorizer.AttributesRecord{
		User: &p.user, Verb: e.Verb, Namespace: e.Namespace, APIGroup: e.APIGroup, Resource: e.Resource, Subresource: e.Subresource, Name: e.Name, ResourceRequest: true,
	}
	if e.Verb == "create" && e.Subresource == "" {
		p.record.Name = "" // A log has the name of the new object, and authorizers have none.
	}
	if e.Verb != "list" && e.Verb != "watch" && e.Verb != "deletecollection" {
		return
	}
	_, query, _ := strings.Cut(e.RequestURI, "?")
	values, _ := url.ParseQuery(query) // The API server ignores invalid parameters, too.
	byLabels, err := labels.Parse(values.Get("labelSelector"))
	if p.record.LabelSelectorParsingErr = err; err == nil {
		p.record.LabelSelectorRequirements, _ = byLabels.Requirements()
	}
	byFields, err := fields.ParseSelector(values.Get("fieldSelector"))
	if p.record.FieldSelectorParsingErr = err; err == nil {
		p.record.FieldSelectorRequirements = byFields.Requirements()
	}
}

// CheckEdges returns an error if a rule of an edge does not exist.
func CheckEdges(ids []string) error {
	tables := slices.Concat(relation.Watches, relation.SelfHosted)
	for _, id := range ids {
		if !slices.ContainsFunc(tables, func(w *relation.Watch) bool { return w.Has(id) }) {
			return fmt.Errorf("there is no edge %s; docs/reference/graph.md has them", id)
		}
	}
	return nil
}

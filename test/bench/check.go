package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/utils/clock"

	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/internal/seedauthorizer/rules"
	"github.com/espalier-project/espalier/test/landscape"
)

// inProcess holds a graph of a landscape.
type inProcess struct {
	landscape.Options
	state *relation.State
}

func decodeObject(w *relation.Watch, content map[string]any) (k8sruntime.Object, error) {
	raw, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	object := w.New()
	return object, json.Unmarshal(raw, object)
}

func load(o landscape.Options) (*inProcess, error) {
	p := &inProcess{Options: o, state: relation.NewState(graph.New(relation.Schema), clock.RealClock{}, nil)}
	byResource := map[string]*relation.Watch{}
	for _, w := range relation.Watches {
		byResource[w.Resource.Resource] = w
	}
	return p, o.Generate(func(object landscape.Object) error {
		w := byResource[object.Resource]
		if w == nil {
			return nil
		}
		decoded, err := decodeObject(w, object.Content)
		if err == nil {
			p.state.Set(w, decoded)
		}
		return err
	})
}

// shootEdges returns a Shoot's object, made anew by change.
func (p *inProcess) shoot(i int, change func(map[string]any)) (k8sruntime.Object, error) {
	wanted, name := p.ShootName(i)
	var found k8sruntime.Object
	err := p.Generate(func(object landscape.Object) error {
		metadata := object.Content["metadata"].(map[string]any)
		if object.Resource != "shoots" || metadata["name"] != name || metadata["namespace"] != wanted {
			return nil
		}
		change(object.Content)
		var err error
		found, err = decodeObject(relation.WatchOf(relation.Shoot), object.Content)
		return err
	})
	return found, err
}

var largest = landscape.Options{Seeds: 100, Projects: 500, Shoots: 10_000}

// huge is what is not made in a real garden here, only in process.
var huge = landscape.Options{Seeds: 1000, Projects: 5000, Shoots: 100_000}

// checks measures single checks in process, beside a search over the same landscape and Kubernetes' own Node authorizer.
func checks(ctx context.Context, b *bench) error {
	smaller := map[string]float64{}
	var tenth *inProcess
	for _, o := range []landscape.Options{{Seeds: 20, Projects: 100, Shoots: 1000}, largest, huge} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		p, err := load(o)
		if err != nil {
			return err
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		vertices, edges := p.state.Graph.Size()
		title := fmt.Sprintf("%d seeds, %d shoots: ", o.Seeds, o.Shoots)
		b.add(title+"vertices", float64(vertices), "", fmt.Sprintf("%d edges", edges), "")
		target := ""
		if o == huge {
			target = "target ≤ 2400"
		}
		b.add(title+"memory a shoot", float64(after.HeapAlloc-before.HeapAlloc)/float64(o.Shoots), "bytes", "", target)
		first := len(b.rows)
		if o == huge {
			p.measureInTurns(b, title, tenth)
		} else {
			p.measure(b, title)
		}
		p.measureDecisions(b, title)
		if o.Shoots >= largest.Shoots {
			if err := p.measureUpdates(b, title); err != nil {
				return err
			}
		}
		compareRows(b.rows[first:], title, smaller, o == huge)
		tenth = p
	}
	return nodeAuthorizer(ctx, b)
}

// compareRows says how the rows of a landscape compare with those of the smaller one before it.
func compareRows(rows []row, title string, smaller map[string]float64, target bool) {
	for i := range rows {
		what := strings.TrimPrefix(rows[i].what, title)
		value, err := strconv.ParseFloat(rows[i].value, 64)
		if err != nil {
			continue
		}
		if before, known := smaller[what]; known && target && !strings.Contains(rows[i].compared, "tenth") {
			compared := fmt.Sprintf("%.2f × the landscape of a tenth; target ≤ 1.5", value/before)
			if rows[i].compared != "" {
				compared += "; " + rows[i].compared
			}
			rows[i].compared = compared
		}
		smaller[what] = value
	}
}

// sample is one kind of question.
type sample struct {
	name     string
	from, to func(i int) graph.Vertex
}

func (p *inProcess) samples() []sample {
	shootSecret := func(i int) graph.Vertex {
		namespace, name := p.ShootName(i % p.Shoots)
		return graph.Vertex{Kind: relation.Secret, Namespace: namespace, Name: name + ".ca-cluster"}
	}
	own := func(i int) graph.Vertex { return relation.SeedVertex(p.SeedOf(i % p.Shoots)) }
	idle := func(int) graph.Vertex { return relation.SeedVertex(p.IdleSeed()) }
	profile := func(int) graph.Vertex { return graph.Vertex{Kind: relation.CloudProfile, Name: landscape.CloudProfile} }
	return []sample{
		{"narrow allowed (a Shoot's Secret)", shootSecret, own},
		{"narrow refused", shootSecret, idle},
		{"wide allowed (CloudProfile of all)", profile, own},
		{"wide refused", profile, idle},
	}
}

// question is a check that is asked for.
type question struct{ from, to graph.Vertex }

func (p *inProcess) questions(s sample) []question {
	questions := make([]question, 1024)
	for i := range questions {
		n := rand.IntN(p.Shoots)
		questions[i] = question{s.from(n), s.to(n)}
	}
	return questions
}

func (p *inProcess) measure(b *bench, title string) {
	var narrow float64
	for _, s := range p.samples() {
		questions := p.questions(s)
		result := testing.Benchmark(func(tb *testing.B) {
			tb.ReportAllocs()
			for i := range tb.N {
				q := &questions[i%len(questions)]
				p.state.Graph.Check(q.from, q.to)
			}
		})
		ns := float64(result.T.Nanoseconds()) / float64(result.N)
		if narrow == 0 {
			narrow = ns
		}
		search := testing.Benchmark(func(tb *testing.B) {
			out := p.adjacency()
			tb.ResetTimer()
			for i := range tb.N {
				q := &questions[i%len(questions)]
				searchPath(out, q.from, q.to)
			}
		})
		searched := float64(search.T.Nanoseconds()) / float64(search.N)
		b.add(title+"check, "+s.name, ns, "ns", fmt.Sprintf("%d allocations", result.AllocsPerOp()),
			fmt.Sprintf("%.2f × the narrow allowed one; a plain search takes %.3g × as long", ns/narrow, searched/ns))
	}
}

// measureInTurns compares checks with those in a landscape of a tenth, in turns of a millisecond of which the quickest tenth counts: on a
// machine that does other work all others measure that work, and what it left of the caches.
func (p *inProcess) measureInTurns(b *bench, title string, tenth *inProcess) {
	const turns, rounds = 500, 4
	for k, s := range p.samples() {
		var took [2][]float64
		questions := [2][]question{tenth.questions(tenth.samples()[k]), p.questions(s)}
		for range turns {
			for side, g := range []*graph.Graph{tenth.state.Graph, p.state.Graph} {
				checkAll(g, questions[side], 1)
				started := time.Now()
				checkAll(g, questions[side], rounds)
				took[side] = append(took[side], float64(time.Since(started).Nanoseconds())/float64(rounds*len(questions[side])))
			}
		}
		var quick [2]float64
		for side := range took {
			slices.Sort(took[side])
			quick[side] = took[side][turns/10]
		}
		b.add(title+"check, "+s.name, quick[1], "ns", fmt.Sprintf("median %.0f", took[1][turns/2]),
			fmt.Sprintf("%.2f × the landscape of a tenth, %.0f ns, in turns; target ≤ 1.5", quick[1]/quick[0], quick[0]))
	}
}

func checkAll(g *graph.Graph, questions []question, rounds int) {
	for range rounds {
		for i := range questions {
			g.Check(questions[i].from, questions[i].to)
		}
	}
}

// measureDecisions measures all that a decision takes but decoding: rule, check, reason.
func (p *inProcess) measureDecisions(b *bench, title string) {
	options := rules.Options{Graph: p.state.Graph, Watches: relation.Watches, Facts: p.state.Facts(), ReadAll: true, Log: logr.Discard()}
	bare := rules.NewSeedAuthorizer(options)
	options.Metrics = rules.NewMetrics(prometheus.NewRegistry())
	measured := rules.NewSeedAuthorizer(options)
	namespace, name := p.ShootName(7)
	for _, c := range []struct{ name, seed, group, resource, namespace, object string }{
		{"allowed (a Shoot's Secret)", p.SeedOf(7), "", "secrets", namespace, name + ".ca-cluster"},
		{"refused (a Shoot's Secret)", p.IdleSeed(), "", "secrets", namespace, name + ".ca-cluster"},
		{"allowed (CloudProfile of all)", p.SeedOf(7), "core.gardener.cloud", "cloudprofiles", "", landscape.CloudProfile},
		{"refused (CloudProfile of all)", p.IdleSeed(), "core.gardener.cloud", "cloudprofiles", "", landscape.CloudProfile},
	} {
		attributes := authorizer.AttributesRecord{
			User: &user.DefaultInfo{Name: gardenletOf(c.seed), Groups: []string{seedsGroup, "system:authenticated"}}, Verb: "get",
			APIGroup: c.group, Resource: c.resource, Namespace: c.namespace, Name: c.object, ResourceRequest: true,
		}
		ask := func(a *rules.Authorizer) (float64, int64) {
			result := testing.Benchmark(func(tb *testing.B) {
				tb.ReportAllocs()
				var question authorizer.Attributes = attributes
				for range tb.N {
					if _, _, err := a.Authorize(context.Background(), question); err != nil {
						tb.Fatal(err)
					}
				}
			})
			return float64(result.T.Nanoseconds()) / float64(result.N), result.AllocsPerOp()
		}
		took, allocations := ask(bare)
		withMetrics, _ := ask(measured)
		b.add(title+"whole decision, "+c.name, took, "ns", fmt.Sprintf("%d allocations", allocations), fmt.Sprintf("%.0f ns with metrics", withMetrics))
	}
}

// adjacency is the graph as a search needs it.
func (p *inProcess) adjacency() map[graph.Vertex][]graph.Vertex {
	out := map[graph.Vertex][]graph.Vertex{}
	all, _ := p.state.Graph.Neighbourhoods(func(graph.Vertex) bool { return true }, graph.Bounds{})
	for _, n := range all {
		for _, to := range n.Out {
			out[n.Vertex] = append(out[n.Vertex], to.Vertex)
		}
	}
	return out
}

func searchPath(out map[graph.Vertex][]graph.Vertex, from, to graph.Vertex) bool {
	visited := map[graph.Vertex]bool{}
	stack := []graph.Vertex{from}
	for len(stack) > 0 {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if v == to {
			return true
		}
		if visited[v] {
			continue
		}
		visited[v] = true
		stack = append(stack, out[v]...)
	}
	return false
}

func (p *inProcess) measureUpdates(b *bench, title string) error {
	watch := relation.WatchOf(relation.Shoot)
	same, err := p.shoot(4711, func(map[string]any) {})
	if err != nil {
		return err
	}
	changed, err := p.shoot(4711, func(content map[string]any) {
		content["spec"].(map[string]any)["exposureClassName"] = "internet"
	})
	if err != nil {
		return err
	}
	moved, err := p.shoot(4711, func(content map[string]any) {
		content["spec"].(map[string]any)["seedName"] = p.SeedOf(4712)
		content["status"] = map[string]any{}
	})
	if err != nil {
		return err
	}
	for _, c := range []struct {
		name string
		a, b k8sruntime.Object
	}{{"update, nothing new", same, same}, {"update, a reference comes and goes", same, changed}, {"update, to another seed and back", same, moved}} {
		result := testing.Benchmark(func(tb *testing.B) {
			for i := range tb.N {
				if i%2 == 0 {
					p.state.Set(watch, c.b)
				} else {
					p.state.Set(watch, c.a)
				}
			}
		})
		b.add(title+c.name, float64(result.T.Nanoseconds())/float64(result.N)/1000, "µs", "", "")
	}
	p.state.Set(watch, same)
	b.add(title+"p99 of checks at 100 writes/s", p.checksWhileWriting(watch, same, moved), "µs", "", "")
	return nil
}

// checksWhileWriting returns the 99th percentile of checks while Shoots change.
func (p *inProcess) checksWhileWriting(watch *relation.Watch, a, b k8sruntime.Object) float64 {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-ticker.C:
				p.state.Set(watch, []k8sruntime.Object{a, b}[i%2])
			}
		}
	}()
	s := p.samples()[0]
	var took []time.Duration
	for started := time.Now(); time.Since(started) < 3*time.Second; {
		n := rand.IntN(p.Shoots)
		from, to := s.from(n), s.to(n)
		begin := time.Now()
		p.state.Graph.Check(from, to)
		took = append(took, time.Since(begin))
	}
	close(stop)
	<-done
	slices.Sort(took)
	return float64(took[len(took)*99/100].Nanoseconds()) / 1000
}

var benchmarkLine = regexp.MustCompile(`(?m)^BenchmarkAuthorization/([\w/ _-]+?)(?:-\d+)?\s+\d+\s+([\d.]+) ns/op`)

// nodeAuthorizer runs the benchmark of Kubernetes' own Node authorizer.
func nodeAuthorizer(ctx context.Context, b *bench) error {
	command := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "BenchmarkAuthorization", "-benchtime", "1s", "k8s.io/kubernetes/plugin/pkg/auth/authorizer/node")
	command.Dir = "test/controlplane"
	out, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("benchmark of the Node authorizer: %w: %s", err, bytes.TrimSpace(out))
	}
	for _, match := range benchmarkLine.FindAllStringSubmatch(string(out), -1) {
		ns, err := strconv.ParseFloat(match[2], 64)
		if err != nil {
			return err
		}
		b.add("Kubernetes' Node authorizer: "+match[1], ns, "ns", "", "")
	}
	return nil
}

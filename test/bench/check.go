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
	"time"

	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/test/gen/landscape"
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

var largest = landscape.Options{Seeds: 100, Projects: 500, Shoots: 10_000}

// huge is what is not made in a real garden here, only in process.
var huge = landscape.Options{Seeds: 1000, Projects: 5000, Shoots: 100_000}

// checks measures single checks in process, and the benchmark of Kubernetes' own Node authorizer.
func checks(ctx context.Context, b *bench) error {
	var tenth *inProcess
	for _, o := range []landscape.Options{largest, huge} {
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
		b.add(title+"vertices", float64(vertices), "", "")
		b.add(title+"edges", float64(edges), "", "")
		b.add(title+"memory a shoot", float64(after.HeapAlloc-before.HeapAlloc)/float64(o.Shoots), "bytes", "≤ 2400")
		if o == huge {
			p.measureInTurns(b, title, tenth)
		}
		tenth = p
	}
	return nodeAuthorizer(ctx, b)
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
		b.add(title+"check, "+s.name, quick[1], "ns", "≤ 300")
		b.add(title+"compared with the landscape of a tenth: "+s.name, quick[1]/quick[0], "×", "≤ 1.5")
	}
}

func checkAll(g *graph.Graph, questions []question, rounds int) {
	for range rounds {
		for i := range questions {
			g.Check(questions[i].from, questions[i].to)
		}
	}
}

var benchmarkLine = regexp.MustCompile(`(?m)^BenchmarkAuthorization/([\w/ _-]+?)(?:-\d+)?\s+\d+\s+([\d.]+) ns/op`)

// nodeAuthorizer runs the benchmark of Kubernetes' own Node authorizer.
func nodeAuthorizer(ctx context.Context, b *bench) error {
	command := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "BenchmarkAuthorization", "-benchtime", "1s", "k8s.io/kubernetes/plugin/pkg/auth/authorizer/node")
	command.Dir = "test/env/controlplane"
	out, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("benchmark of the Node authorizer: %w: %s", err, bytes.TrimSpace(out))
	}
	for _, match := range benchmarkLine.FindAllStringSubmatch(string(out), -1) {
		ns, err := strconv.ParseFloat(match[2], 64)
		if err != nil {
			return err
		}
		b.add("Kubernetes' Node authorizer: "+match[1], ns, "ns", "")
	}
	return nil
}

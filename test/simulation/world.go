package simulation

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-project/espalier/test/fake"
)

const (
	sourceNamespace = "garden"
	// settle is the time that the world is given to come to rest after the last fault: some sync periods and the longest back-off.
	settle = 6 * time.Minute
	// mostRequests is ten times what the busiest run needs that ends well.
	mostRequests = 8000
	// idle is the time that it is watched afterwards.
	idle = 3 * time.Minute
	// arrival is longer than any request is on its way.
	arrival = time.Minute
	// stuck is the longest time that a run may take in real time. It is a thousand times what it takes.
	stuck = 2 * time.Minute
)

var (
	managedResources = schema.GroupResource{Group: "resources.gardener.cloud", Resource: "managedresources"}
	secretResource   = schema.GroupResource{Resource: "secrets"}
	crdResource      = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}

	deploymentResource = schema.GroupResource{Group: "apps", Resource: "deployments"}
	replicaSets        = schema.GroupResource{Group: "apps", Resource: "replicasets"}
	eventResource      = schema.GroupResource{Resource: "events"}
)

// world is one run.
type world struct {
	scenario       *Scenario
	source, target *fake.Server
	logger         logr.Logger
	begin          time.Time
	*oracle

	// process is what an instance runs. heard, if it is set, is told of each request of an instance when it is answered, or not; meddler
	// is somebody else who changes what was just written, or deletes it.
	process func(context.Context, *instance) error
	heard   func(n *network, r *fake.Request, answered bool)
	meddler func(cluster string, r *fake.Request, remove bool)
	// beside, if it is set, is called before and after a server carries out a request of an instance.
	beside func(n *network, r *fake.Request, done bool)

	chances  sync.Mutex
	happened map[string]int

	mu        sync.Mutex
	leader    *instance
	other     *instance
	instances []*instance
	seen      map[string]int // requests by class, for faults
	stalled   map[string]time.Time
	denied    map[string]time.Time
	down      map[string]time.Time
	backups   map[string][]fake.Snapshot
	forbidden map[string]bool
	healed    bool
	sent      map[string]int
	asks      map[ask]int // since countFrom, but for watches
	total     int
	rebooting sync.WaitGroup
	news      chan struct{}
	lines     []line
}

// line is one of the trace. It is put into words only if somebody asks: nearly all runs end well.
type line struct {
	at        time.Duration
	format    string
	arguments []any
}

// later is an argument of a line that is worked out when the line is put into words. Its object must not change.
type later func() string

func (l later) String() string { return l() }

// Result is how a run ended.
type Result struct {
	// Violations are the invariants that did not hold, in order.
	Violations []Violation
	trace      []line
	// Requests counts what the instances sent.
	Requests int
	// Excuses are what the oracle did not judge in the end.
	Excuses excuses
	met     coverage
}

// Violation is an invariant that did not hold.
type Violation struct {
	Invariant string
	At        time.Duration
	Text      string
}

// Trace tells what happened when, line by line.
func (r Result) Trace() string {
	var b strings.Builder
	for _, l := range r.trace {
		fmt.Fprintf(&b, "%12v %s\n", l.at.Round(time.Microsecond), fmt.Sprintf(l.format, l.arguments...))
	}
	return b.String()
}

func (v Violation) String() string { return fmt.Sprintf("%s at %v: %s", v.Invariant, v.At, v.Text) }

// Run lets a scenario happen in a bubble of its own.
func Run(t *testing.T, scenario *Scenario, logger logr.Logger) Result {
	return inBubble(t, scenario, func() *world {
		w := newWorld(scenario, logger)
		w.run()
		return w
	})
}

// inBubble lets a world happen in a bubble of its own.
func inBubble(t *testing.T, scenario *Scenario, happen func() *world) Result {
	var result Result
	// Outside of the bubble it is real time that passes. Time in the bubble stands still as long as somebody waits for a mutex.
	watchdog := time.AfterFunc(stuck, func() {
		debug.SetTraceback("all")
		panic("the bubble's time stands still: somebody waits for a mutex that is held by somebody who waits for time to pass\n" + scenario.String())
	})
	defer watchdog.Stop()
	defer func() {
		if r := recover(); r != nil && !leftByLibraries(r) {
			panic(r)
		}
	}()
	seedBubbles(scenario.Seed)
	synctest.Test(t, func(*testing.T) {
		w := happen()
		w.lock.Lock()
		defer w.lock.Unlock()
		result = Result{Violations: w.violations, trace: w.lines, Excuses: w.excuses, met: w.met}
		for _, n := range w.sent {
			result.Requests += n
		}
	})
	return result
}

// leftByLibraries reports whether a panic is about goroutines that are left at the end of a bubble, and none of them is ours: the cache of
// controller-runtime leaves some behind when it ends while it begins, or with an event at hand.
func leftByLibraries(reason any) bool {
	if !strings.Contains(fmt.Sprint(reason), "blocked goroutines remain") {
		return false
	}
	stacks := make([]byte, 16<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for _, goroutine := range strings.Split(string(stacks), "\n\n") {
		first, rest, _ := strings.Cut(goroutine, "\n")
		if strings.Contains(first, "synctest bubble") && strings.Contains(rest, "github.com/espalier-project/espalier") {
			return false
		}
	}
	return true
}

func newWorld(scenario *Scenario, logger logr.Logger) *world {
	w := &world{
		scenario: scenario, logger: logger, begin: time.Now(), happened: map[string]int{}, seen: map[string]int{},
		stalled: map[string]time.Time{}, denied: map[string]time.Time{}, down: map[string]time.Time{},
		backups: map[string][]fake.Snapshot{}, forbidden: map[string]bool{}, sent: map[string]int{}, news: make(chan struct{}, 1),
	}
	w.oracle, w.process, w.meddler = newOracle(w), w.runInstance, w.meddle
	kinds := append(fake.BuiltIn(), fake.CustomKind(managedResources.Group, "v1alpha1", "ManagedResource", managedResources.Resource, true))
	w.source = fake.New(&w.lock, kinds, w.sourceChanged, sourceNamespace)
	w.target = fake.New(&w.lock, fake.BuiltIn(), w.targetChanged, targetNamespace)
	w.target.Cluster = 1
	return w
}

func (w *world) run() {
	stop := make(chan struct{})
	var controllers sync.WaitGroup
	controllers.Go(func() { w.controlPlane(stop) })
	w.populate()
	w.mu.Lock()
	w.leader = w.bootLocked("")
	if w.scenario.Classes {
		w.other = w.bootLocked("other")
	}
	w.mu.Unlock()
	time.Sleep(time.Second)
	w.eachStep(w.take)
	w.heal()
	time.Sleep(settle)
	w.checkSettled()
	w.mend()
	time.Sleep(settle)
	w.checkSettled()
	w.countFrom()
	time.Sleep(idle)
	w.checkIdle()
	w.end()
	close(stop)
	controllers.Wait()
}

// end ends all instances.
func (w *world) end() {
	w.rebooting.Wait()
	for _, i := range w.instances {
		i.cancel()
		<-i.done
		if i.err != nil && !i.lost.Load() {
			w.violate("the process goes on", "instance %s ended: %v", i.name, i.err)
		}
	}
	// Messages on the way when an instance ended arrive: the bubble's time stands still once its first goroutine is done.
	time.Sleep(arrival)
}

// populate makes what is there at the start.
func (w *world) populate() {
	for i, c := range w.scenario.Secrets {
		w.takeSecret(i, c)
	}
	for i, refs := range w.scenario.References {
		if refs != 0 {
			w.reference(i, refs)
		}
	}
	if w.scenario.Widgets > 0 {
		w.define(w.scenario.Widgets == 1)
		time.Sleep(time.Second)
	}
	for i, t := range things {
		if value, found := w.scenario.Strangers[i]; found {
			w.create(t, value)
		}
	}
}

func (w *world) bootLocked(class string) *instance {
	name := fmt.Sprintf("i%d", len(w.instances))
	w.lock.Lock()
	w.classes[name] = class
	w.lock.Unlock()
	i := w.boot(name, class)
	w.lock.Lock()
	w.booted = append(w.booted, i)
	w.lock.Unlock()
	w.instances = append(w.instances, i)
	return i
}

// crash ends an instance between two instructions; another one begins later.
func (w *world) crash(i *instance) {
	if i.lost.Swap(true) {
		return
	}
	w.tracef("== %s crashes", i.name)
	i.cancel()
	w.rebooting.Go(func() {
		<-i.done
		time.Sleep(time.Second + time.Duration(w.chance("reboot")%5000)*time.Millisecond)
		w.mu.Lock()
		defer w.mu.Unlock()
		switch i {
		case w.leader:
			w.leader = w.bootLocked("")
		case w.other:
			w.other = w.bootLocked("other")
		}
	})
}

// handOver lets another instance begin while the present one does not know yet that it has lost the lease.
func (w *world) handOver(overlap time.Duration) {
	w.mu.Lock()
	old := w.leader
	w.leader = w.bootLocked("")
	w.mu.Unlock()
	w.lock.Lock()
	w.superseded[old.name] = true
	w.lock.Unlock()
	w.rebooting.Go(func() {
		time.Sleep(overlap)
		old.lost.Store(true)
		old.cancel()
	})
}

// eachStep lets the steps of the scenario happen; before each one both clusters are backed up.
func (w *world) eachStep(take func(Step)) {
	for _, step := range w.scenario.Steps {
		for _, cluster := range []string{"source", "target"} {
			w.backups[cluster] = append(w.backups[cluster], w.server(cluster).Backup())
		}
		time.Sleep(step.Wait)
		w.tracef("== %s", step)
		w.meets("step " + step.Do)
		take(step)
	}
}

// endFaults ends all faults of the network.
func (w *world) endFaults() {
	w.tracef("== faults end")
	w.mu.Lock()
	defer w.mu.Unlock()
	w.healed = true
	for _, until := range []map[string]time.Time{w.stalled, w.denied, w.down} {
		clear(until)
	}
}

// heal ends all faults, and lets go of what somebody holds.
func (w *world) heal() {
	w.endFaults()
	for _, t := range things {
		w.editThing(t, func(o object) { delete(fake.Meta(o), "finalizers") })
	}
}

// meet returns the fault that a request meets, "" for none, and counts it.
func (w *world) meet(n *network, r *fake.Request) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	class := "read"
	switch {
	case r.Writes():
		class = "write"
	case r.Verb == "watch":
		class = "watch"
	}
	w.sent[n.cluster+" "+class]++
	if class != "watch" && !asksForRevision(r) && w.asks != nil {
		w.asks[askOf(n.cluster, r)]++
	}
	if w.total++; w.total == mostRequests {
		n.instance.lost.Store(true)
		go w.violate(fewRequests, "%d requests were sent, the last one: %s %s", w.total, n.cluster, r)
	}
	if w.total > mostRequests {
		n.instance.lost.Store(true)
		n.instance.cancel()
	}
	if w.healed {
		return ""
	}
	key := n.cluster + " " + class
	w.seen[key]++
	for _, fault := range w.scenario.Faults {
		if fault.Cluster == n.cluster && fault.Class == class && fault.Nth == w.seen[key] {
			return fault.What
		}
	}
	return ""
}

func (w *world) isDown(cluster string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Before(w.down[cluster])
}

func (w *world) isDenied(cluster string, r *fake.Request) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if cluster == "target" && w.forbidden[r.Resource] && (r.Verb == "list" || r.Verb == "watch") {
		return true
	}
	return (r.Verb == "list" || r.Verb == "watch") && time.Now().Before(w.denied[cluster+"/"+r.Resource])
}

func (w *world) stalledFor(cluster, resource string) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return max(time.Until(w.stalled[cluster+"/"+resource]), time.Until(w.stalled[cluster+"/"]))
}

func (w *world) tracef(format string, arguments ...any) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.traceLocked(format, arguments...)
}

func (w *world) traceLocked(format string, arguments ...any) {
	w.lines = append(w.lines, line{time.Since(w.begin), format, arguments})
}

// request sends a request of somebody who is no instance and whom no fault hits; it returns the status code.
func (w *world) request(server *fake.Server, method, path string, body object) int {
	var content []byte
	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			panic(err)
		}
	}
	from, err := http.NewRequest(method, "http://simulated"+path, bytes.NewReader(content))
	if err != nil {
		panic(err)
	}
	from.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		from.Header.Set("Content-Type", "application/merge-patch+json")
	}
	response, err := (&fake.Transport{Server: server, By: "somebody"}).RoundTrip(from)
	if err != nil {
		panic(err)
	}
	defer response.Body.Close() //nolint:errcheck // it is in memory
	return response.StatusCode
}

// pathOf is the path of an object.
func (w *world) pathOf(server *fake.Server, key fake.Key) string {
	w.lock.Lock()
	defer w.lock.Unlock()
	version := "v1"
	if k := server.ServedLocked(key.GroupResource); k != nil {
		version = k.Version
	}
	path := "/api/" + version
	if key.Group != "" {
		path = "/apis/" + key.Group + "/" + version
	}
	if key.Namespace != "" {
		path += "/namespaces/" + key.Namespace
	}
	path += "/" + key.Resource
	return strings.TrimSuffix(path+"/"+key.Name, "/")
}

func (w *world) get(server *fake.Server, key fake.Key) object {
	w.lock.Lock()
	defer w.lock.Unlock()
	return server.GetLocked(key)
}

func isNotFound(code int) bool {
	return code == int(apierrors.NewNotFound(schema.GroupResource{}, "").Status().Code)
}

package simulation

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/cluster"
	"github.com/espalier-project/espalier/internal/controller/kit"
	"github.com/espalier-project/espalier/internal/executable/resourcemanager"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/managedresource/engine"
	"github.com/espalier-project/espalier/test/fake"
)

// act is what a world of controllers is about: one of them, who it works for, and what it must never do.
type act interface {
	// configure switches on what runs.
	configure(*config.ResourceManagerConfiguration)
	// populate makes what is there at the start.
	populate()
	// do lets a step of users happen.
	do(Step)
	// changed judges a write, by an instance or by anybody else. The lock is held.
	changed(side string, c fake.Change)
	// look takes note of what there is, after writes by anybody and after a restore. The lock is held.
	look()
	// play does on the target what Kubernetes' own controllers do.
	play(objects map[fake.Key]object)
	// settled judges the world at rest.
	settled()
}

// settleControllers is the time that a world of controllers is given: the longest wait between two tries, and some more (COM-4).
const settleControllers = 25 * time.Minute

// stage is a world with controllers in the place of the engine.
type stage struct {
	*world
	act act

	hearing sync.Mutex
	// answered and failed are when a request of an instance last was.
	answered, failed map[string]time.Time
	// processes are the instances' by name, for who passes them. hearing guards it.
	processes map[string]*resourcemanager.Process
	// issued are the tokens that the target has issued. The lock guards it.
	issued map[string]issuedToken
}

// actor is how an act is set up.
type actor struct {
	name string
	new  func(*stage) act
	// kinds are those of users' steps, resources those that the controllers watch.
	kinds     []string
	resources []string
}

// acts are the controllers that are simulated.
var acts = []actor{
	{"collector", newCollector, []string{"make", "make", "refer", "refer", "refer", "unrefer", "remake", "touch", "pass", "pass"}, []string{"target/deployments", "target/pods", "target/cronjobs", "target/secrets"}},
	{"tokens", newTokens, []string{"ask", "ask", "withdraw", "forget", "garbage", "edit", "account-delete", "target-delete", "account-edit", "rename", "lifetime"}, []string{"source/secrets"}},
	{"invalidator", newInvalidator, []string{"account", "account", "mount", "mount", "unmount", "secret", "secret-delete", "purpose"}, []string{"target/secrets", "target/serviceaccounts"}},
	{"certificates", newCertificates, []string{"node", "node", "node-delete", "machine", "machine", "machine-delete", "ask", "ask", "ask", "ask", "decide"}, []string{"target/certificatesigningrequests"}},
	{"policies", newPolicies, []string{"service", "service", "service", "service-delete", "namespace", "namespace", "namespace-end", "edit", "delete", "strip", "orphan", "ingress", "ingress"}, []string{"target/services", "target/namespaces", "target/networkpolicies", "target/ingresses"}},
	{"nodes", newNodes, []string{"node", "node", "node-delete", "taint", "daemonset", "daemonset-delete", "ready", "ready", "ready", "csi", "pod-delete", "serial"}, []string{"target/nodes", "target/pods", "target/daemonsets", "target/secrets"}},
}

// RunControllers lets a scenario happen in a bubble of its own.
func RunControllers(t *testing.T, scenario *Scenario, logger logr.Logger) Result {
	return inBubble(t, scenario, func() *world {
		s := newStage(scenario, logger)
		s.run()
		return s.world
	})
}

func newStage(scenario *Scenario, logger logr.Logger) *stage {
	s := &stage{world: newWorld(scenario, logger), answered: map[string]time.Time{}, failed: map[string]time.Time{}, processes: map[string]*resourcemanager.Process{}, issued: map[string]issuedToken{}}
	s.process, s.heard, s.meddler = s.runControllers, s.hear, s.change
	kinds := append(fake.BuiltIn(), fake.CustomKind("machine.sapcloud.io", "v1alpha1", "Machine", "machines", true))
	s.source = fake.New(&s.lock, kinds, func(c fake.Change) { s.observe("source", c) }, sourceNamespace, machineNamespace)
	s.target = fake.New(&s.lock, s.targetKinds(), func(c fake.Change) { s.observe("target", c) }, targetNamespace, "kube-system")
	s.target.Cluster = 1
	s.source.QuietEnd, s.target.QuietEnd = true, true
	for _, a := range acts {
		if a.name == scenario.Act {
			s.act = a.new(s)
		}
	}
	return s
}

// targetKinds are those of the engine's world and what else controllers ask for.
func (s *stage) targetKinds() []*fake.Kind {
	kinds := fake.BuiltIn()
	add := func(group, version, name, resource string, namespaced bool) *fake.Kind {
		k := fake.BuiltInKind(group, version, name, resource, namespaced)
		kinds = append(kinds, k)
		return k
	}
	for _, k := range []*fake.Kind{
		add("apps", "v1", "StatefulSet", "statefulsets", true), add("apps", "v1", "DaemonSet", "daemonsets", true),
		add("batch", "v1", "Job", "jobs", true), add("batch", "v1", "CronJob", "cronjobs", true),
		add("networking.k8s.io", "v1", "Ingress", "ingresses", true),
	} {
		k.Status, k.Counts = true, true
	}
	add("", "v1", "Service", "services", true).Status = true
	add("", "v1", "Node", "nodes", false).Status = true
	add("storage.k8s.io", "v1", "CSINode", "csinodes", false)
	requests := add("certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests", false)
	requests.Status, requests.Approval = true, true
	add("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", false).Answer = s.reviewToken
	for _, k := range kinds {
		switch k.Resource {
		case "serviceaccounts":
			k.Issue = map[string]func(of, sent object) (object, error){"token": s.issueToken}
		case "secrets":
			defaults := k.Defaults
			k.Defaults = func(o object) { defaults(o); invalidate(o) }
		}
	}
	return kinds
}

// runControllers runs the rows of the table that are switched on, as the leader of the executable does.
func (s *stage) runControllers(ctx context.Context, i *instance) error {
	cfg := &config.ResourceManagerConfiguration{}
	cfg.LeaderElection.LeaderElect = ptr.To(false)
	s.act.configure(cfg)
	config.SetDefaults(cfg)
	rows := slices.DeleteFunc(feature.Enabled(resourcemanager.Table(), cfg), func(r resourcemanager.Row) bool {
		return r.Runs != feature.Leader || r.Name == "managedresource"
	})
	reads := feature.AllReads(rows, cfg)
	source := clusterOf(s.source, &network{world: s.world, instance: i, cluster: "source"})
	sourceScheme, err := engine.Scheme()
	if err != nil {
		return err
	}
	cache, err := cluster.CacheOptions(feature.Source, cluster.Options{Scheme: sourceScheme, Reads: reads, Resync: &cfg.SourceClientConnection.CacheResyncPeriod.Duration})
	if err != nil {
		return err
	}
	mgr, err := manager.New(source.REST, manager.Options{
		Scheme: sourceScheme, Logger: s.logger, Cache: cache, MapperProvider: cluster.Mapper(feature.Source, reads),
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", Controller: ctrlconfig.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		return err
	}
	p := &resourcemanager.Process{Config: cfg, Manager: mgr, Clock: clock.RealClock{}, Registry: prometheus.NewRegistry(), Log: s.logger}
	if p.Source, err = cluster.Managed(mgr, source.REST); err != nil {
		return err
	}
	targetScheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, resourcesv1alpha1.AddToScheme} {
		if err := add(targetScheme); err != nil {
			return err
		}
	}
	target := clusterOf(s.target, &network{world: s.world, instance: i, cluster: "target"})
	if p.Target, err = target.Caching(feature.Target, cluster.Options{Scheme: targetScheme, Reads: reads, Resync: &cfg.TargetClientConnection.CacheResyncPeriod.Duration}); err != nil {
		return err
	}
	if err := mgr.Add(p.Target); err != nil {
		return err
	}
	if cfg.Controllers.GarbageCollector.Enabled {
		p.Marked = resourcemanager.NewMarked(p)
	}
	s.hearing.Lock()
	s.processes[i.name] = p
	s.hearing.Unlock()
	if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return startRows(ctx, p, rows) })); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func startRows(ctx context.Context, p *resourcemanager.Process, rows []resourcemanager.Row) error {
	byName := map[feature.Cluster]*cluster.Cluster{feature.Source: p.Source, feature.Target: p.Target}
	return kit.Run(ctx, p.Manager, func(group *kit.Group) error {
		for _, row := range rows {
			var reads []feature.Read
			if row.Reads != nil {
				reads = row.Reads(p.Config)
			}
			kept, err := cluster.Keep(byName, reads, p.Clock, p.Log)
			if err != nil {
				return err
			}
			if err := kept.Start(group.Context()); err != nil || group.Context().Err() != nil {
				return err
			}
			of := *p
			of.Manager = group
			if err := row.Start(group.Context(), &of); err != nil {
				return fmt.Errorf("%s: %w", row.Name, err)
			}
		}
		return nil
	})
}

func (s *stage) run() {
	stop := make(chan struct{})
	var others sync.WaitGroup
	others.Go(func() { s.playKubernetes(stop) })
	s.act.populate()
	s.mu.Lock()
	s.leader = s.bootLocked("")
	s.mu.Unlock()
	time.Sleep(time.Second)
	s.eachStep(s.takeStep)
	s.endFaults()
	time.Sleep(settleControllers)
	s.act.settled()
	s.end()
	close(stop)
	others.Wait()
}

// takeStep lets a step happen.
func (s *stage) takeStep(step Step) {
	resource := ""
	for _, a := range acts {
		if a.name == s.scenario.Act && len(a.resources) > 0 {
			resource = a.resources[step.A%len(a.resources)]
		}
	}
	side, name, _ := strings.Cut(resource, "/")
	lasts := []time.Duration{time.Second, 5 * time.Second, 20 * time.Second}[step.B%3]
	matches := func(_ string, k *fake.Kind) bool { return k.Resource == name }
	switch step.Do {
	case "crash", "handover", "compact", "down", "restore":
		s.take(step)
		s.lock.Lock()
		s.act.look()
		s.lock.Unlock()
	case "cut", "stall", "deny":
		if resource == "" {
			return // Nothing is watched.
		}
		switch step.Do {
		case "stall":
			s.disturb(s.stalled, resource, lasts)
			return
		case "deny":
			s.disturb(s.denied, resource, lasts)
		}
		s.server(side).CutWatches(matches)
	default:
		s.act.do(step)
	}
}

func (s *stage) observe(side string, c fake.Change) {
	if s.act == nil {
		return // The namespaces of the beginning.
	}
	s.traceLocked("-- %s %ss %s %s: %s", c.By, c.Verb, side, c.Key, later(func() string { return shown(c.After) }))
	s.act.changed(side, c)
	s.act.look()
	if side == "target" {
		s.poke()
	}
}

// shown is an object in one line, without what is long and means little.
func shown(o object) string {
	if o == nil {
		return "gone"
	}
	o = runtime.DeepCopyJSON(o)
	for _, name := range []string{"uid", "creationTimestamp"} {
		delete(fake.Meta(o), name)
	}
	return marshal(o)
}

// playKubernetes does on the target what others do there, when something has changed.
func (s *stage) playKubernetes(stop <-chan struct{}) {
	s.atNews(stop, s.act.play)
}

// hear notes when an instance has learned something.
func (s *stage) hear(n *network, r *fake.Request, answered bool) {
	s.hearing.Lock()
	defer s.hearing.Unlock()
	which := s.answered
	if !answered {
		which = s.failed
	}
	for _, what := range []string{r.Name, ""} {
		which[strings.Join([]string{n.instance.name, n.cluster, r.Verb, r.Resource, r.Namespace, what}, " ")] = time.Now()
	}
}

// heardAt is when a request of an instance was last answered; the zero time if never.
func (s *stage) heardAt(by, side, verb, resource, namespace, name string) time.Time {
	s.hearing.Lock()
	defer s.hearing.Unlock()
	return s.answered[strings.Join([]string{by, side, verb, resource, namespace, name}, " ")]
}

func (s *stage) failedAt(by, side, verb, resource, namespace, name string) time.Time {
	s.hearing.Lock()
	defer s.hearing.Unlock()
	return s.failed[strings.Join([]string{by, side, verb, resource, namespace, name}, " ")]
}

// change lets somebody else change what was just written, or delete it.
func (s *stage) change(side string, r *fake.Request, remove bool) {
	key := r.Key()
	if r.Verb == "create" {
		key.Name = fake.Text(decode(string(r.Body)), "metadata", "name")
	}
	if r.Verb == "delete" || r.Subresource != "" || key.Name == "" || key.Resource == "events" {
		return
	}
	server := s.server(side)
	if remove {
		s.request(server, http.MethodDelete, s.pathOf(server, key), nil)
		return
	}
	s.request(server, http.MethodPatch, s.pathOf(server, key), object{"metadata": object{"annotations": object{"example.org/meddled": fmt.Sprint(s.chance("meddle") % 5)}}})
}

// put creates an object, or replaces it; the path is that of its key.
func (s *stage) put(server *fake.Server, key fake.Key, o object) {
	metadata := fake.Meta(o)
	metadata["name"] = key.Name
	if isNotFound(s.request(server, http.MethodPut, s.pathOf(server, key), o)) {
		at := key
		at.Name = ""
		s.request(server, http.MethodPost, s.pathOf(server, at), o)
	}
}

func (s *stage) remove(server *fake.Server, key fake.Key) {
	s.request(server, http.MethodDelete, s.pathOf(server, key), nil)
}

func (s *stage) patch(server *fake.Server, key fake.Key, patch object) {
	s.request(server, http.MethodPatch, s.pathOf(server, key), patch)
}

// status writes the status of an object.
func (s *stage) status(server *fake.Server, key fake.Key, status object) {
	s.request(server, http.MethodPatch, s.pathOf(server, key)+"/status", object{"status": status})
}

func keyOf(group, resource, namespace, name string) fake.Key {
	return fake.Key{GroupResource: schema.GroupResource{Group: group, Resource: resource}, Namespace: namespace, Name: name}
}

// typed returns an object as its Go type.
func typed[T any](o object) *T {
	var t T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o, &t); err != nil {
		panic(err)
	}
	return &t
}

// without returns an object less what is at the paths, and less what the API server counts.
func without(o object, paths ...string) object {
	o = runtime.DeepCopyJSON(o)
	for _, path := range append(paths, "metadata resourceVersion", "metadata generation", "metadata managedFields") {
		parts := strings.SplitN(path, " ", 3)
		at := o
		for _, part := range parts[:len(parts)-1] {
			next, _ := at[part].(map[string]any)
			if next == nil {
				at = object{}
				break
			}
			at = next
		}
		delete(at, parts[len(parts)-1])
	}
	for _, path := range [][2]string{{"metadata", "labels"}, {"metadata", "annotations"}} {
		if parent, ok := o[path[0]].(map[string]any); ok {
			if m, ok := parent[path[1]].(map[string]any); ok && len(m) == 0 {
				delete(parent, path[1])
			}
		}
	}
	return o
}

// onlyChanges reports whether nothing changed but what is at the paths, and names the rest if it did.
func onlyChanges(c fake.Change, paths ...string) string {
	before, after := marshal(without(c.Before, paths...)), marshal(without(c.After, paths...))
	if before == after {
		return ""
	}
	return before + " became " + after
}

// since keeps for each key since when something holds, without a break.
type since map[fake.Key]time.Time

func (s since) note(key fake.Key, holds bool) {
	_, did := s[key]
	switch {
	case holds && !did:
		s[key] = time.Now()
	case !holds:
		delete(s, key)
	}
}

// before reports whether something holds since a time or longer.
func (s since) before(key fake.Key, at time.Time) bool {
	began, holds := s[key]
	return holds && !began.After(at)
}

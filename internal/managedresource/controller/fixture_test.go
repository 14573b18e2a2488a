package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	ktesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/source"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
	"github.com/espalier-project/espalier/internal/managedresource/target"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// fixture is a Reconciler between a source in memory and a target that serves ConfigMaps, with nothing running beside it: what
// happens between two requests is what a test does there.
type fixture struct {
	*testing.T
	*Reconciler
	ctx    context.Context
	source client.Client
	// onSource is called before each write to the source.
	onSource interceptor.Funcs
	secrets  *fake.Clientset
	// recorded takes the Events. They are created beside the runs, so they have a client of their own: reactors must not be
	// added to one that is being used.
	recorded *fake.Clientset
	target   *store
	triggers *Triggers
	clock    *clocktesting.FakePassiveClock
	applied  int
}

// TestMain logs nowhere. Without a logger, controller-runtime would look for one after half a minute, in the middle of some test.
func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

func newFixture(t *testing.T, change ...func(*config.ManagedResourceControllerConfig)) *fixture {
	t.Helper()
	f := &fixture{T: t, ctx: t.Context(), clock: clocktesting.NewFakePassiveClock(time.Now()), target: newStore()}
	scheme := runtime.NewScheme()
	must.Succeed(t, resourcesv1alpha1.AddToScheme(scheme))
	f.source = crfake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&resourcesv1alpha1.ManagedResource{}).WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			if f.onSource.SubResourcePatch != nil {
				return f.onSource.SubResourcePatch(ctx, c, sub, object, patch, opts...)
			}
			return c.SubResource(sub).Patch(ctx, object, patch, opts...)
		},
	}).Build()
	f.secrets, f.recorded = fake.NewClientset(), fake.NewClientset()
	server := httptest.NewServer(f.target)
	t.Cleanup(server.Close)
	targetClient, err := target.NewClient(&rest.Config{Host: server.URL, QPS: -1}, server.Client(), target.NewMetrics(prometheus.NewRegistry()))
	must.Succeed(t, err)
	cfg := config.ManagedResourceControllerConfig{
		SyncPeriod: &metav1.Duration{Duration: time.Minute}, AlwaysUpdate: ptr.To(false), ManagedByLabelValue: ptr.To("gardener"),
		ApplyWhileDeletionPending: ptr.To(false), DeleteForeignObjects: ptr.To(false), DriftRepairDelay: &metav1.Duration{},
	}
	for _, c := range change {
		c(&cfg)
	}
	l := objects.New()
	watches := target.NewWatches(targetClient, l, target.WatchOptions{Log: logr.Discard()})
	events := source.NewEvents(f.recorded.CoreV1(), f.clock)
	f.Reconciler = New(Options{
		Config: cfg, Class: meta.NewClass(""), Tracker: l, Watches: watches, Clock: f.clock, Target: targetClient, Events: events,
		Statuses: source.NewStatuses(f.source, f.source, f.source, f.clock, events),
		Secrets:  source.NewSecrets(f.secrets.CoreV1(), nil, logr.Discard()),
		Assessor: target.NewAssessor(targetClient, l, watches, f.clock),
		Applied:  func(objects.Owner) { f.applied++ },
	})
	f.triggers = f.Triggers
	l.Subscribe(objects.Subscriber{Drift: f.triggers.Drift})
	return f
}

// configure changes the options of the reconciler.
func (f *fixture) configure(change func(*Options)) {
	change(&f.Options)
	f.assemble()
}

func (f *fixture) must(err error) {
	f.Helper()
	must.Succeed(f, err)
}

// managed creates a ManagedResource with one Secret of the same name, which has ConfigMaps with those names.
func (f *fixture) managed(name string, configMaps ...string) {
	f.Helper()
	f.secret(name, "1", configMaps...)
	f.must(f.source.Create(f.ctx, &resourcesv1alpha1.ManagedResource{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID(name), Generation: 1, Finalizers: []string{resourcesv1alpha1.FinalizerName}},
		Spec:       resourcesv1alpha1.ManagedResourceSpec{SecretRefs: []corev1.LocalObjectReference{{Name: name}}},
	}))
}

// sharing creates ManagedResources that all have the ConfigMap a, one after the other.
func (f *fixture) sharing(names ...string) {
	f.Helper()
	for _, name := range names {
		f.managed(name, "a=1")
		f.complete(name)
	}
}

// secret writes a Secret; a ConfigMap is <name>=<value>, and <name>!=<value> if it is to be created only once.
func (f *fixture) secret(name, version string, configMaps ...string) {
	f.Helper()
	var manifests strings.Builder
	for _, cm := range configMaps {
		name, value, _ := strings.Cut(cm, "=")
		name, more, once := strings.Cut(name, "!")
		if once {
			more = ", annotations: {" + resourcesv1alpha1.AnnotationIgnore + ": 'true'}"
		}
		fmt.Fprintf(&manifests, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: 'n', name: '%s'%s}\ndata: {v: '%s'}\n", name, more, value)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID(name), ResourceVersion: version}, Data: map[string][]byte{"x.yaml": []byte(manifests.String())}}
	if _, err := f.secrets.CoreV1().Secrets("n").Create(f.ctx, secret, metav1.CreateOptions{}); err != nil {
		_, err = f.secrets.CoreV1().Secrets("n").Update(f.ctx, secret, metav1.UpdateOptions{})
		f.must(err)
	}
	f.triggers.SecretChanged(types.NamespacedName{Namespace: "n", Name: name}, name+"/"+version)
}

// withoutSecret deletes a Secret, and reports it as the watch does.
func (f *fixture) withoutSecret(name string) {
	f.Helper()
	f.must(f.secrets.CoreV1().Secrets("n").Delete(f.ctx, name, metav1.DeleteOptions{}))
	f.triggers.SecretChanged(types.NamespacedName{Namespace: "n", Name: name}, "")
}

// manifests writes a Secret with manifests as they are, such as those of configMap.
func (f *fixture) manifests(name, version string, manifests ...string) {
	f.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID(name), ResourceVersion: version}, Data: map[string][]byte{"x.yaml": []byte(strings.Join(manifests, ""))}}
	_, err := f.secrets.CoreV1().Secrets("n").Update(f.ctx, secret, metav1.UpdateOptions{})
	f.must(err)
	f.triggers.SecretChanged(types.NamespacedName{Namespace: "n", Name: name}, name+"/"+version)
}

// configMap is a manifest with more metadata, such as "labels: {a: b}".
func configMap(name, value, metadata string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: 'n', name: '%s', %s}\ndata: {v: '%s'}\n", name, metadata, value)
}

// live is an object of the target as it is.
func (f *fixture) live(name string) *unstructured.Unstructured {
	f.target.mu.Lock()
	defer f.target.mu.Unlock()
	return (&unstructured.Unstructured{Object: f.target.objects[name]}).DeepCopy()
}

// refuse answers requests for one object with a code from now on; zero ends that.
func (f *fixture) refuse(method, name string, code int) {
	f.target.mu.Lock()
	defer f.target.mu.Unlock()
	f.target.on = func(m, n string) int {
		if m == method && n == name {
			return code
		}
		return 0
	}
}

// edited changes an object as somebody else would, and reports it as a watch does.
func (f *fixture) edited(name string, change func(*unstructured.Unstructured)) {
	f.target.change(name, change)
	f.Tracker.Observe(f.Watches.View().Observation(f.live(name)))
}

// observeGone reports that an object is gone; without a resource version, as a read that was sent now does.
func (f *fixture) observeGone(id objects.ID, uid types.UID, resourceVersion string) {
	gone := objects.Observation{ID: id, UID: uid, ResourceVersion: resourceVersion, Gone: true}
	if resourceVersion == "" {
		gone.Since = f.Tracker.Get(id).Revision
	}
	f.Tracker.Observe(gone)
}

func setValue(value string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) { _ = unstructured.SetNestedField(o.Object, value, "data", "v") }
}

func setAnnotation(key, value string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		annotations := o.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[key] = value
		o.SetAnnotations(annotations)
	}
}

// tellOfWrites reports each write before it is answered, as a watch may.
func (f *fixture) tellOfWrites() {
	f.target.mu.Lock()
	defer f.target.mu.Unlock()
	f.target.after = func(method, name string) int {
		if method == http.MethodGet {
			return 0
		}
		f.target.mu.Lock()
		object, scoped := f.target.objects[name], f.target.clusterScoped
		f.target.version++
		version := fmt.Sprint(f.target.version)
		f.target.mu.Unlock()
		key := objects.ID{Kind: "ConfigMap", Namespace: "n", Name: name}
		if scoped {
			key.Namespace = ""
		}
		if object == nil {
			f.observeGone(key, "", version)
		} else {
			f.Tracker.Observe(f.Watches.View().Observation(f.live(name)))
		}
		return 0
	}
}

func (f *fixture) get(name string) *resourcesv1alpha1.ManagedResource {
	f.Helper()
	mr := &resourcesv1alpha1.ManagedResource{}
	f.must(f.source.Get(f.ctx, types.NamespacedName{Namespace: "n", Name: name}, mr))
	return mr
}

// edit changes the specification of a ManagedResource as a user would.
func (f *fixture) edit(name string, change func(*resourcesv1alpha1.ManagedResource)) {
	f.Helper()
	mr := f.get(name)
	change(mr)
	mr.Generation++
	f.must(f.source.Update(f.ctx, mr))
}

// setIgnored annotates a ManagedResource as one to be ignored, and lets it be run.
func (f *fixture) setIgnored(name string) {
	f.Helper()
	mr := f.get(name)
	mr.Annotations = map[string]string{resourcesv1alpha1.AnnotationIgnore: "true"}
	f.must(f.source.Update(f.ctx, mr))
	_, _ = f.run(name)
}

func (f *fixture) run(name string) (reconcile.Result, error) {
	return f.Reconcile(f.ctx, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "n", Name: name}})
}

// watch lets watches cover what ManagedResources have from now on, so that a run with nothing in doubt does nothing.
func (f *fixture) watch() {
	f.target.mu.Lock()
	f.target.watched = true
	f.target.mu.Unlock()
	ctx, cancel := context.WithCancel(f.ctx)
	ended := make(chan error, 1)
	go func() { ended <- f.Watches.Start(ctx) }()
	f.Cleanup(func() {
		cancel()
		expect.Succeed(f, <-ended)
	})
}

// awaitCovered waits until watches cover what a ManagedResource has.
func (f *fixture) awaitCovered(name string) {
	f.Helper()
	for _, ref := range f.Tracker.Progress(objects.Owner{Namespace: "n", Name: name}).Refs {
		poll(f.T, ref.Name+" is covered", func() bool { return f.Watches.Covered(ref) })
	}
}

// newApplied returns a fixture with a ManagedResource of these objects, which are applied.
func newApplied(t *testing.T, name string, objects ...string) *fixture {
	t.Helper()
	f := newFixture(t)
	f.apply(name, objects...)
	return f
}

// apply makes a ManagedResource of these objects, and runs it until it is complete.
func (f *fixture) apply(name string, objects ...string) {
	f.Helper()
	f.managed(name, objects...)
	f.complete(name)
}

// runs runs a ManagedResource several times, whatever the results are.
func (f *fixture) runs(name string, times int) {
	for range times {
		_, _ = f.run(name)
	}
}

// complete runs until no other run is due at once.
func (f *fixture) complete(name string) {
	f.Helper()
	for range 10 {
		result, err := f.run(name)
		if err == nil && result.RequeueAfter != time.Millisecond {
			return
		}
	}
	f.Fatalf("%s does not settle", name)
}

// rest runs until watches cover everything, and a run sends no request to the target.
func (f *fixture) rest(name string) {
	f.Helper()
	methods := []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
	poll(f.T, "MRT-6: "+name+" is at rest", func() bool {
		before := f.target.count(methods...)
		f.complete(name)
		return f.allInSync(steps.OwnerOf(f.get(name))) && f.target.count(methods...) == before
	})
}

func (f *fixture) condition(name string) string {
	f.Helper()
	c := meta.Conditions(f.get(name).Status.Conditions).Get(resourcesv1alpha1.ResourcesApplied)
	if c == nil {
		return ""
	}
	return string(c.Status) + "/" + c.Reason + ": " + c.Message
}

func (f *fixture) inventory(name string) string {
	f.Helper()
	var entries []string
	for _, ref := range f.get(name).Status.Resources {
		entry := ref.Name
		if meta.Tentative(&ref) {
			entry += "(planned)"
		}
		entries = append(entries, entry)
	}
	return strings.Join(entries, " ")
}

func (f *fixture) uid(name string) string { return string(f.live(name).GetUID()) }

// events returns all Events but those about writes.
func (f *fixture) events() string {
	f.Helper()
	return strings.Join(f.told(func(event *corev1.Event) bool { return event.Reason != meta.ReasonObjectsWritten }), "\n")
}

// told returns the Events that are chosen, in their order. The clock stands still, so that several have one name and the store the first.
func (f *fixture) told(chosen func(*corev1.Event) bool) (messages []string) {
	f.Helper()
	f.Events.Flush(f.ctx)
	for _, action := range f.recorded.Actions() {
		if create, is := action.(ktesting.CreateAction); is && action.GetResource().Resource == "events" {
			if event := create.GetObject().(*corev1.Event); chosen(event) {
				messages = append(messages, event.Reason+": "+event.Message)
			}
		}
	}
	return messages
}

// store serves ConfigMaps of namespace n, with resource versions, preconditions and finalizers.
type store struct {
	mu      sync.Mutex
	version int
	objects map[string]map[string]any
	// requests counts by method; on is called before a request, and what it returns is answered if it is not zero. after is
	// called when the request was carried out, and what it returns is answered in place of the answer.
	requests  map[string]int
	on, after func(method, name string) int
	// clusterScoped is true if ConfigMaps have no namespaces here.
	clusterScoped bool
	// oldAbsent is true if old.example is not served.
	// unreadable says that objects can be created only.
	unreadable bool
	oldAbsent  bool
	// watched is true if ConfigMaps can be listed and watched. Nothing is told but what is listed.
	watched bool
	// broken is a path that is answered with 500.
	broken string
	// dropped is a key of data that is taken and left out, as a field is whose feature is switched off.
	dropped string
}

func newStore() *store {
	return &store{objects: map[string]map[string]any{}, requests: map[string]int{}}
}

// hook sets what is called before a request.
func (s *store) hook(on func(method, name string) int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on = on
}

// poll waits until something holds.
func poll(t *testing.T, what string, holds func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) { return holds(), nil })
	expect.Succeed(t, err, "%s", what)
}

func metaOf(object map[string]any) map[string]any {
	meta, _ := object["metadata"].(map[string]any)
	return meta
}

// put writes an object as somebody else would.
func (s *store) put(name, value string, meta map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.putLocked(name, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": maps.Clone(meta), "data": map[string]any{"v": value}})
}

func (s *store) putLocked(name string, object map[string]any) map[string]any {
	s.version++
	meta := metaOf(object)
	if len(meta) == 0 {
		meta = map[string]any{}
		object["metadata"] = meta
	}
	meta["namespace"], meta["name"], meta["resourceVersion"] = "n", name, fmt.Sprint(s.version)
	if s.clusterScoped {
		delete(meta, "namespace")
	}
	if meta["uid"] == nil {
		meta["uid"] = fmt.Sprint("uid", s.version)
	}
	s.objects[name] = object
	return object
}

// change edits the metadata and the value of an object as somebody else would.
func (s *store) change(name string, change func(object *unstructured.Unstructured)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	object := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(s.objects[name])}
	change(object)
	s.putLocked(name, object.Object)
}

func (s *store) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, name)
}

// versionOf is the resource version of an object.
func (s *store) versionOf(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprint(metaOf(s.objects[name])["resourceVersion"])
}

// values are the names and values of what is there.
func (s *store) value(name string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	object, found := s.objects[name]
	value, _, _ := unstructured.NestedString(object, "data", "v")
	return value, found
}

func (s *store) count(methods ...string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, method := range methods {
		n += s.requests[method]
	}
	return n
}

func (s *store) scoped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clusterScoped
}

func (s *store) scope(clusterScoped bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clusterScoped = clusterScoped
}

// withoutOld says that the other group is not served, or is.
func (s *store) withoutOld(absent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.oldAbsent = absent
}

func (s *store) servesOld() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.oldAbsent
}

func (s *store) verbs() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.unreadable:
		return []string{"create"}
	case s.watched:
		return []string{"get", "list", "watch"}
	}
	return []string{"get"}
}

// serveAll lists, or watches until the client ends it.
func (s *store) serveAll(w http.ResponseWriter, r *http.Request, apiVersion string) {
	if r.URL.Query().Get("watch") != "" {
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	items := []any{}
	_, only, _ := strings.Cut(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	for name, object := range s.objects {
		if only != "" && name != only {
			continue
		}
		item := runtime.DeepCopyJSON(object)
		item["apiVersion"] = apiVersion
		items = append(items, item)
	}
	answer(w, http.StatusOK, map[string]any{"apiVersion": apiVersion, "kind": "ConfigMapList", "metadata": map[string]any{"resourceVersion": fmt.Sprint(s.version)}, "items": items})
}

// breaks has a path answered with 500, "" none.
func (s *store) breaks(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = path
}

func (s *store) isBroken(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broken == path
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.isBroken(r.URL.Path) {
		answer(w, http.StatusInternalServerError, status(http.StatusInternalServerError, ""))
		return
	}
	// The same objects are served by another group, too, as Ingresses were.
	apiVersion := "v1"
	if path, found := strings.CutPrefix(r.URL.Path, "/apis/old.example/v1"); found && s.servesOld() {
		if apiVersion = "old.example/v1"; path == "" {
			answer(w, http.StatusOK, map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": apiVersion, "resources": []any{
				map[string]any{"name": "configmaps", "namespaced": !s.scoped(), "kind": "ConfigMap", "verbs": s.verbs()}}})
			return
		}
		r.URL.Path = "/api/v1" + path
	}
	switch r.URL.Path {
	case "/api":
		answer(w, http.StatusOK, map[string]any{"kind": "APIVersions", "versions": []string{"v1"}})
		return
	case "/apis":
		answer(w, http.StatusOK, map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{}})
		return
	case "/api/v1":
		answer(w, http.StatusOK, map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": []any{
			map[string]any{"name": "configmaps", "namespaced": !s.scoped(), "kind": "ConfigMap", "verbs": s.verbs()}}})
		return
	case "/api/v1/configmaps", "/api/v1/namespaces/n/configmaps":
		if r.Method == http.MethodGet {
			s.serveAll(w, r, apiVersion)
			return
		}
	}
	name := ""
	var body map[string]any
	content, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(content, &body)
	if s.scoped() == strings.Contains(r.URL.Path, "/namespaces/") {
		http.Error(w, "404 page not found", http.StatusNotFound)
		return
	}
	if _, named, _ := strings.Cut(r.URL.Path, "/configmaps/"); named != "" {
		name = named
	} else if body != nil {
		name, _ = metaOf(body)["name"].(string)
	}
	s.mu.Lock()
	s.requests[r.Method]++
	on, after := s.on, s.after
	s.mu.Unlock()
	if on != nil {
		if code := on(r.Method, name); code != 0 {
			answer(w, code, status(code, name))
			return
		}
	}
	code, result := s.serve(r.Method, name, body)
	if after != nil {
		if lost := after(r.Method, name); lost != 0 {
			code, result = lost, status(lost, name)
		}
	}
	if object, ok := result.(map[string]any); ok && object["kind"] == "ConfigMap" && object["apiVersion"] != apiVersion {
		object = runtime.DeepCopyJSON(object)
		object["apiVersion"] = apiVersion
		result = object
	}
	if object, ok := result.(map[string]any); ok && strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
		result = map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": object["metadata"]}
	}
	answer(w, code, result)
}

func (s *store) serve(method, name string, body map[string]any) (int, any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	present := s.objects[name]
	fail := func(code int) (int, any) { return code, status(code, name) }
	if data, ok := body["data"].(map[string]any); ok && s.dropped != "" {
		delete(data, s.dropped)
	}
	if method == http.MethodPost {
		if present != nil {
			refused := status(http.StatusConflict, name).(metav1.Status)
			refused.Reason = metav1.StatusReasonAlreadyExists
			return http.StatusConflict, refused
		}
		return http.StatusCreated, runtime.DeepCopyJSON(s.putLocked(name, body))
	}
	if present == nil {
		return fail(http.StatusNotFound)
	}
	mismatch := func(wanted map[string]any) bool {
		for _, field := range []string{"uid", "resourceVersion"} {
			if value, found := wanted[field]; found && value != "" && value != metaOf(present)[field] {
				return true
			}
		}
		return false
	}
	switch method {
	case http.MethodPut:
		if mismatch(metaOf(body)) {
			return fail(http.StatusConflict)
		}
		metaOf(body)["uid"] = metaOf(present)["uid"]
		if reflect.DeepEqual(present, body) {
			return http.StatusOK, runtime.DeepCopyJSON(present)
		}
		return http.StatusOK, runtime.DeepCopyJSON(s.putLocked(name, body))
	case http.MethodPatch:
		if mismatch(metaOf(body)) {
			return fail(http.StatusConflict)
		}
		next := runtime.DeepCopyJSON(present)
		mergePatch(next, body)
		if finalizers, _ := metaOf(next)["finalizers"].([]any); len(finalizers) == 0 && metaOf(next)["deletionTimestamp"] != nil {
			delete(s.objects, name)
			return http.StatusOK, next
		}
		return http.StatusOK, runtime.DeepCopyJSON(s.putLocked(name, next))
	case http.MethodDelete:
		preconditions, _ := body["preconditions"].(map[string]any)
		if preconditions == nil || mismatch(preconditions) {
			return fail(http.StatusConflict)
		}
		if finalizers, _ := metaOf(present)["finalizers"].([]any); len(finalizers) > 0 {
			metaOf(present)["deletionTimestamp"] = "2020-01-01T00:00:00Z"
			s.putLocked(name, present)
		} else {
			delete(s.objects, name)
		}
	}
	return http.StatusOK, runtime.DeepCopyJSON(present)
}

func mergePatch(object, patch map[string]any) {
	for key, value := range patch {
		if inner, ok := value.(map[string]any); ok {
			if child, ok := object[key].(map[string]any); ok {
				mergePatch(child, inner)
				continue
			}
		}
		if value == nil {
			delete(object, key)
		} else {
			object[key] = value
		}
	}
}

func status(code int, name string) any {
	reason := map[int]metav1.StatusReason{
		http.StatusNotFound: metav1.StatusReasonNotFound, http.StatusConflict: metav1.StatusReasonConflict, http.StatusUnprocessableEntity: metav1.StatusReasonInvalid,
		http.StatusGatewayTimeout: metav1.StatusReasonTimeout, http.StatusInternalServerError: metav1.StatusReasonInternalError,
	}[code]
	return metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: reason, Code: int32(code),
		Message: fmt.Sprintf("answer %d", code), Details: &metav1.StatusDetails{Name: name}}
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

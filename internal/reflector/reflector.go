// Package reflector follows the objects of one kind in a cluster without storing the objects: a reflector of
// client-go whose store is the functions of a Kind. Objects are decoded into partial types (stream.go), handed over
// as they arrive (beginning.go) and dropped. The end of a list has the existing objects, so that objects that were
// deleted while no watch ran are removed, too. A silent stream is opened anew (silence.go), and an object that cannot
// be decoded does not delay others (stream.go).
package reflector

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	kjson "sigs.k8s.io/json"

	"github.com/espalier-project/espalier/internal/externalapi/protodecode"
)

// Kind selects the objects to follow, and has the functions that receive the events.
type Kind struct {
	// Name in logs.
	Name     string
	Resource schema.GroupVersionResource
	// Namespace and LabelSelector limit the objects; empty means all.
	Namespace, LabelSelector string
	// New returns an object to decode into.
	New func() runtime.Object
	// Message, if set, has the numbers of the object's fields in Protocol Buffers, which are then requested. The API
	// server may still send JSON.
	Message protodecode.Message
	// Whole is set if objects have the complete types of Kubernetes' own kinds, which are sent as Protocol Buffers.
	Whole bool

	// Set and Remove record an object. Retain gets all existing objects: others were deleted. They are not called
	// concurrently.
	Set    func(runtime.Object)
	Remove func(namespace, name string)
	Retain func(Names)
	// Lag, if set, receives the time from the arrival of an event until its object was handed over.
	Lag func(time.Duration)
	// First, if set, is called when the first list has been handed over.
	First func()
	// Bounds, if set, limit the memory of responses; all kinds of one API server share them.
	Bounds *Bounds
	// Undecodable, if set, is called for each object that cannot be decoded, with the error. The object is passed to
	// Set all the same, with its metadata or, if the metadata cannot be decoded, with its name: other objects must not
	// wait for it, and a name alone gives the least rights.
	Undecodable func(namespace, name string, err error)
}

// Follower follows a Kind.
type Follower struct {
	Kind
	client rest.Interface
	shape  *shape
	log    logr.Logger
	// contact also has the time of the last event. The reflector handles an event before the next one is read.
	contact *contact
	synced  atomic.Bool

	group *group
	// anew is set while there is no version from which a watch could be resumed.
	anew atomic.Bool

	taking   sync.Mutex
	versions versions
	// current is the beginning of the last requested stream; nil if it has no beginning.
	current *beginning
	// begun is set with the first beginning. Before it, no object was known.
	begun bool
	// end ends that stream, or the last list that was requested.
	end context.CancelCauseFunc
}

// New returns a follower with a client of the kind's group and version.
func New(kind Kind, client rest.Interface, c clock.Clock, log logr.Logger) *Follower {
	f := &Follower{Kind: kind, client: client, log: log.WithValues("kind", kind.Name), contact: newContact(c)}
	if !kind.Whole {
		f.shape = shapeOf(kind.New, kind.Message)
		f.shape.bounds = kind.Bounds
	}
	return f
}

// NewClient returns a client that reads partial types of a group and version.
func NewClient(config *rest.Config, httpClient *http.Client, version schema.GroupVersion) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, version)
	return newClient(config, httpClient, version, scheme, "application/json")
}

// NewWholeClient returns a client that reads complete objects of Kubernetes' own kinds, which are in a scheme.
func NewWholeClient(config *rest.Config, httpClient *http.Client, version schema.GroupVersion,
	scheme *runtime.Scheme) (rest.Interface, error) {
	return newClient(config, httpClient, version, scheme, protobufOrJSON)
}

const protobufOrJSON = "application/vnd.kubernetes.protobuf,application/json"

func newClient(config *rest.Config, httpClient *http.Client, version schema.GroupVersion, scheme *runtime.Scheme,
	accept string) (rest.Interface, error) {
	of := rest.CopyConfig(config)
	of.GroupVersion, of.APIPath = &version, "/apis"
	if version.Group == "" {
		of.APIPath = "/api"
	}
	of.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	of.AcceptContentTypes, of.ContentType = accept, "application/json"
	client, err := rest.RESTClientForConfigAndClient(of, httpClient)
	if err != nil {
		return nil, fmt.Errorf("client of %s: %w", version, err)
	}
	return client, nil
}

// Start follows the kind until the context ends; it returns at once.
func (f *Follower) Start(ctx context.Context) {
	f.contact.start()
	// The type is not set, because the objects of a beginning have a type of this package.
	reflector := cache.NewReflectorWithOptions(f.listWatch(), nil, store{f}, cache.ReflectorOptions{
		Name: "follow/" + f.Name, TypeDescription: f.Name, Backoff: Backoff(),
	})
	reflector.WatchListPageSize = pageSize
	go reflector.RunWithContext(ctx)
}

// Backoff returns the pauses between two attempts of a reflector: 10 to 15 s at most. An outage may need two, one
// before a watch and one before the list, and the known objects must be right within a minute. client-go's own pauses
// grow to a minute each.
func Backoff() *wait.Backoff {
	return &wait.Backoff{Duration: 800 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 8, Cap: 10 * time.Second}
}

// Synced reports whether the first list has been handed over.
func (f *Follower) Synced() bool { return f.synced.Load() }

// pageSize limits the memory of a list that is not streamed: pages of real Shoots have some megabytes.
const pageSize = 500

var versionOfOptions = schema.GroupVersion{Version: "v1"}

func (f *Follower) request(options *metav1.ListOptions) *rest.Request {
	return f.requestIn(f.Namespace, options)
}

func (f *Follower) requestIn(namespace string, options *metav1.ListOptions) *rest.Request {
	options.LabelSelector = f.LabelSelector
	r := f.client.Get().NamespaceIfScoped(namespace, namespace != "").Resource(f.Resource.Resource).
		SpecificallyVersionedParams(options, metav1.ParameterCodec, versionOfOptions)
	if f.Message != nil {
		r.SetHeader("Accept", protobufOrJSON)
	}
	if options.TimeoutSeconds != nil {
		r = r.Timeout(time.Duration(*options.TimeoutSeconds) * time.Second)
	}
	return r
}

func (f *Follower) listWatch() *cache.ListWatch {
	return &cache.ListWatch{ListWithContextFunc: f.list, WatchFuncWithContext: f.watch}
}

// list hands each object of a list over as it arrives, and returns an empty list: Replace finds the names in the
// beginning.
func (f *Follower) list(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	ctx, end := f.guard(ctx)
	defer end(nil)
	beginning := f.begin(&metav1.ListOptions{SendInitialEvents: ptr.To(true)})
	version, err := f.readList(ctx, func(object runtime.Object) error {
		beginning.take(watch.Added, object)
		return nil
	})
	if err != nil {
		f.exceeded(err)
		return nil, err
	}
	beginning.end(version)
	empty := &unstructured.UnstructuredList{}
	empty.SetResourceVersion(version)
	return empty, nil
}

// watch opens a stream, which ends when nothing is received for too long.
func (f *Follower) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch, options.AllowWatchBookmarks = true, true
	ctx, end := f.guard(ctx)
	inner, err := f.open(ctx, &options)
	if err != nil {
		end(nil)
		return nil, err
	}
	return &stream{inner, end}, nil
}

// guard returns a context that ends when nothing is received for too long, or when everything has to be listed anew.
func (f *Follower) guard(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, end := f.contact.guard(ctx)
	f.taking.Lock()
	defer f.taking.Unlock()
	f.end = end
	return ctx, end
}

// open opens a stream, or resumes one if that leaves no gap.
func (f *Follower) open(ctx context.Context, options *metav1.ListOptions) (watch.Interface, error) {
	begins, anew := options.SendInitialEvents != nil && *options.SendInitialEvents, f.anew.Load()
	switch {
	case begins && anew:
		// The newest version, because the known one may never be reached.
		options.ResourceVersion = ""
	case begins:
	case anew:
		return nil, apierrors.NewResourceExpired(errTurnedBack.Error())
	default:
		if err := f.unchanged(ctx); err != nil {
			return nil, err
		}
	}
	beginning := f.begin(options)
	if f.shape != nil {
		return f.stream(ctx, options, beginning)
	}
	inner, err := f.request(options).Watch(ctx)
	if err != nil {
		return nil, err
	}
	through := func(event watch.Event) (watch.Event, bool) { return f.arrived(ctx, beginning, event) }
	return filter(inner, through), nil
}

// arrived records that an event of complete objects has arrived. The end of a silent stream is no error, unless
// everything has to be listed anew.
func (f *Follower) arrived(ctx context.Context, beginning *beginning, event watch.Event) (watch.Event, bool) {
	if event.Type != watch.Error {
		f.contact.arrive()
		f.contact.heard()
		event.Object = beginning.take(event.Type, event.Object)
		return event, event.Object != nil
	}
	switch ended := context.Cause(ctx); {
	case errors.Is(ended, errSilent):
		return event, false
	case errors.Is(ended, errSilentAgain), errors.Is(ended, errTurnedBack):
		return watch.Event{Type: watch.Error, Object: expired(ended)}, true
	}
	return event, true
}

// stream is a watch whose reader does not wait for it any more once it is stopped.
type stream struct {
	watch.Interface
	end context.CancelCauseFunc
}

// Stop implements watch.Interface.
func (s *stream) Stop() {
	s.Interface.Stop()
	s.end(nil)
}

// undecodable reports an object that cannot be decoded.
func (f *Follower) undecodable(namespace, name string, err error) {
	f.log.Error(err, "Cannot decode an object; only its name is used", "namespace", namespace, "name", name)
	if f.Undecodable != nil {
		f.Undecodable(namespace, name, err)
	}
}

// Silence returns the time since the last confirmation of the kind: an event, a bookmark or a list. Before the first
// of them it counts from the start.
func (f *Follower) Silence() time.Duration { return f.contact.silence() }

func (f *Follower) measure() {
	if f.Lag != nil {
		f.Lag(f.contact.lag())
	}
}

// store is the store of client-go's reflector.
type store struct{ f *Follower }

// Add implements cache.ReflectorStore.
func (s store) Add(object any) error { return s.Update(object) }

// Update implements cache.ReflectorStore.
func (s store) Update(object any) error {
	s.f.Set(object.(runtime.Object))
	s.f.measure()
	return nil
}

// Delete implements cache.ReflectorStore.
func (s store) Delete(object any) error {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	s.f.Remove(accessor.GetNamespace(), accessor.GetName())
	s.f.measure()
	return nil
}

// Replace implements cache.ReflectorStore.
func (s store) Replace(objects []any, _ string) error {
	s.f.taking.Lock()
	names := s.f.current.names
	s.f.taking.Unlock()
	for _, object := range objects {
		if _, counts := object.(*taken); counts {
			continue
		}
		accessor, err := meta.Accessor(object)
		if err != nil {
			return err
		}
		names.add(accessor)
		s.f.Set(object.(runtime.Object))
	}
	s.f.Retain(names)
	if !s.f.synced.Swap(true) && s.f.First != nil {
		s.f.First()
	}
	return nil
}

// Resync implements cache.ReflectorStore.
func (s store) Resync() error { return nil }

// Raw returns the body of a response, or the error that the API server reports.
func Raw(ctx context.Context, request *rest.Request) ([]byte, error) {
	result := request.Do(ctx)
	// Only Error reads the API server's reason from the body.
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}

// Get reads an object as the API server sends it.
func Get(ctx context.Context, client rest.Interface, resource, namespace, name string) ([]byte, error) {
	return Raw(ctx, client.Get().NamespaceIfScoped(namespace, namespace != "").Resource(resource).Name(name))
}

// Into reads an object into a partial type.
func Into(ctx context.Context, client rest.Interface, resource, namespace, name string, into any) error {
	body, err := client.Get().NamespaceIfScoped(namespace, namespace != "").Resource(resource).Name(name).Stream(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }() // Once it is decoded.
	raw, err := readAnswer(body)
	if err != nil {
		return fmt.Errorf("reading %s %q: %w", resource, name, err)
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, into); err != nil {
		return fmt.Errorf("decoding %s %q: %w", resource, name, err)
	}
	return nil
}

// IsAbsent reports whether an error means that the object does not exist, and not that the API server has no such
// resource.
func IsAbsent(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

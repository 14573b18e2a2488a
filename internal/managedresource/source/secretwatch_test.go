package source

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

func TestMain(m *testing.M) {
	// The library's own remember, across bubbles, when there last was an error.
	utilruntime.ErrorHandlers = nil
	os.Exit(m.Run())
}

// secretServer answers for Secrets as its fields say.
type secretServer struct {
	corev1client.SecretsGetter
	corev1client.SecretInterface

	mu       sync.Mutex
	version  string
	listErr  error
	watchErr error
	silent   bool
	// get is what answers a read; nothing does if it is nil.
	get     func() (*corev1.Secret, error)
	watcher *watch.FakeWatcher
	from    []string
}

func (s *secretServer) Secrets(string) corev1client.SecretInterface { return s }

func (s *secretServer) Get(ctx context.Context, _ string, _ metav1.GetOptions) (*corev1.Secret, error) {
	if s.get != nil {
		return s.get()
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

func (s *secretServer) List(ctx context.Context, _ metav1.ListOptions) (*corev1.SecretList, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.silent {
		s.mu.Unlock()
		<-ctx.Done()
		s.mu.Lock()
		return nil, ctx.Err()
	}
	return &corev1.SecretList{ListMeta: metav1.ListMeta{ResourceVersion: s.version}}, s.listErr
}

func (s *secretServer) Watch(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watchErr != nil {
		return nil, s.watchErr
	}
	s.from = append(s.from, options.ResourceVersion)
	s.watcher = watch.NewFake()
	return s.watcher, nil
}

func (s *secretServer) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *secretServer) current() *watch.FakeWatcher {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watcher
}

// following starts Secrets over a server; words are what subscribers are told, in order.
func following(t *testing.T, server *secretServer, namespaces ...string) (*Secrets, func() string) {
	s := NewSecrets(server, namespaces, logr.Discard())
	var mu sync.Mutex
	var events []string
	s.Subscribe(func(key types.NamespacedName, version string) {
		mu.Lock()
		defer mu.Unlock()
		events = append(events, key.Name+"="+version)
	}, func() {
		mu.Lock()
		defer mu.Unlock()
		events = append(events, "gap")
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { _ = s.Start(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	return s, func() string {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(events, " ")
	}
}

func forbidden() error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", fmt.Errorf("nobody allows it"))
}

func TestSecretsTellOfEveryWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &secretServer{version: "10"}
		s, events := following(t, server)
		must.Succeed(t, s.WaitUntilWatching(t.Context(), time.Minute))
		server.current().Add(secretAt("a", "u", 11))
		server.current().Modify(secretAt("a", "u", 12))
		server.current().Delete(secretAt("a", "u", 13))
		server.current().Add(secretAt("a", "v", 14))
		expect.Equal(t, events(), "a=u/11 a=u/12 a= a=v/14", "a deletion is an empty version, and what was created again another Secret")
	})
}

func TestSecretWatchGoesOnOrTellsOfAGap(t *testing.T) {
	for name, tc := range map[string]struct {
		end    func(*secretServer)
		from   string
		events string
	}{
		"MRB-47/a watch that ends at its timeout goes on where it was": {
			end: func(s *secretServer) {
				s.set(func() { s.version = "20" })
				time.Sleep(2 * watchTimeout)
				s.current().Stop()
			},
			from: "11", events: "a=u/11",
		},
		"MRB-47/a watch that breaks begins anew, though the revision is not lower": {
			end:  func(s *secretServer) { s.set(func() { s.version = "20" }); s.current().Stop() },
			from: "20", events: "a=u/11 gap",
		},
		"a watch whose past is gone begins anew": {
			end: func(s *secretServer) {
				s.set(func() { s.version = "20" })
				s.current().Error(&apierrors.NewResourceExpired("too old").ErrStatus)
			},
			from: "20", events: "a=u/11 gap",
		},
		"a server whose present is before the watch's was restored": {
			end:  func(s *secretServer) { s.set(func() { s.version = "5" }); s.current().Stop() },
			from: "5", events: "a=u/11 gap",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &secretServer{version: "10"}
				_, events := following(t, server)
				events()
				server.current().Add(secretAt("a", "u", 11))
				events()
				tc.end(server)
				time.Sleep(2 * restartDelay)
				expect.Equal(t, events(), tc.events)
				expect.Equal(t, server.from[len(server.from)-1], tc.from, "the watch went on from")
			})
		})
	}
}

// A missing right is reported, within the time limit, and at any time.
func TestSecretWatchNamesWhatIsMissing(t *testing.T) {
	for name, tc := range map[string]struct {
		namespaces []string
		fail       func(*secretServer)
		want       string
		ends       time.Duration
	}{
		"list":             {nil, func(s *secretServer) { s.listErr = forbidden() }, "the right to list secrets in all namespaces is missing: ", time.Minute},
		"list, namespaced": {[]string{"x", "x"}, func(s *secretServer) { s.listErr = forbidden() }, `the right to list secrets in namespace "x" is missing: `, time.Minute},
		"watch":            {[]string{"x"}, func(s *secretServer) { s.watchErr = forbidden() }, `the right to watch secrets in namespace "x" is missing: `, time.Minute},
		"credentials":      {nil, func(s *secretServer) { s.listErr = apierrors.NewUnauthorized("no") }, "the credentials are not accepted", time.Hour},
		"no answer":        {nil, func(s *secretServer) { s.silent = true }, "list: ", time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &secretServer{version: "10"}
				tc.fail(server)
				s, _ := following(t, server, tc.namespaces...)
				// A source that is away is waited for; a missing right ends that after the limit.
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				began := time.Now()
				waited := s.WaitUntilWatching(ctx, time.Minute)
				expect.Equal(t, time.Since(began), tc.ends, "the wait ended after")
				for what, err := range map[string]error{"wait": waited, "state": s.Watching()} {
					expect.ErrorContains(t, err, tc.want, "%s", what)
				}
				// Waiting mends it as soon as the right is there.
				server.set(func() { server.listErr, server.watchErr, server.silent = nil, nil, false })
				if err := s.WaitUntilWatching(t.Context(), time.Minute); err != nil || s.Watching() != nil {
					t.Errorf("got %v, %v", err, s.Watching())
				}
				// A right that is taken away later.
				server.set(func() { server.watchErr = forbidden() })
				server.current().Error(&apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", nil).ErrStatus)
				synctest.Wait()
				expect.ErrorContains(t, s.Watching(), "the right to watch secrets", "after it was taken away")
			})
		})
	}
}

func TestSecretsAreNotWatchedBeforeTheStart(t *testing.T) {
	expect.Succeed(t, NewSecrets(nil, nil, logr.Discard()).Watching(), "an instance that does not lead misses nothing")
}

func TestReadsOfSecretsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSecrets(&secretServer{}, nil, logr.Discard())
		began := time.Now()
		_, _, err := s.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "a"})
		if err == nil || !strings.Contains(err.Error(), "no answer within 10s") || time.Since(began) != requestTimeout {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began = time.Now()
		if _, _, err := s.Get(ctx, types.NamespacedName{Namespace: "ns", Name: "a"}); err == nil || time.Since(began) != time.Second {
			t.Errorf("the caller's limit: after %s: %v", time.Since(began), err)
		}
	})
}

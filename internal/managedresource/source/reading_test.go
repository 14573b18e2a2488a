package source

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

var readNames = []string{"a", "b", "c"}

// readServer answers reads of Secrets; anything may happen before and after.
type readServer struct {
	corev1client.SecretsGetter
	corev1client.SecretInterface
	state   map[string]*corev1.Secret
	happens func()
	asked   int
	fails   bool
}

func (s *readServer) Secrets(string) corev1client.SecretInterface { return s }

func (s *readServer) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.Secret, error) {
	s.asked++
	s.happens()
	secret := s.state[name]
	s.happens()
	if s.fails {
		return nil, errors.New("the source is away")
	}
	if secret == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, name)
	}
	return secret, nil
}

// readWorld is a lateWorld that is read.
type readWorld struct{ *lateWorld }

func (w readWorld) happens() {
	for range rapid.IntRange(0, 2).Draw(w.t, "happens") {
		name := rapid.SampledFrom(readNames).Draw(w.t, "name")
		switch rapid.SampledFrom([]string{"write", "remove", "deliver", "deliver", "gap"}).Draw(w.t, "what") {
		case "write":
			w.write(name)
		case "remove":
			w.remove(name)
		case "deliver":
			w.deliver()
		case "gap":
			w.gap()
		}
	}
}

// lastChange is the revision at which a Secret last changed, or was deleted, up to another one.
func (w readWorld) lastChange(name string, to int) int {
	last := 0
	for _, at := range w.past[name] {
		if at <= to {
			last = at
		}
	}
	return last
}

// MR-9: what is confirmed was there at one moment, and not before the ManagedResource was as it is.
func TestPropertySecretsOfAReadingWereThereTogether(t *testing.T) {
	confirmed := 0
	rapid.Check(t, func(t *rapid.T) {
		state := map[string]*corev1.Secret{}
		w := readWorld{&lateWorld{t: t, revision: 10, state: state, past: map[string][]int{}}}
		w.secrets = NewSecrets(&readServer{state: state, happens: w.happens}, nil, logr.Discard())
		for _, name := range readNames {
			w.write(name)
		}
		w.happens()
		w.happens()
		w.revision++
		since := w.revision // The ManagedResource was written; no watch of Secrets reports that.
		w.happens()
		reading, got := w.secrets.Reading(), map[string]int{}
		for _, name := range readNames[:rapid.IntRange(1, len(readNames)).Draw(t, "secrets")] {
			data, _, err := reading.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: name})
			if err != nil {
				return
			}
			got[name], _ = strconv.Atoi(string(data["version"]))
			w.happens()
		}
		if is, err := reading.Together(t.Context()); !is || err != nil {
			return
		}
		confirmed++
		for revision := since; revision <= w.revision; revision++ {
			together := true
			for name, version := range got {
				together = together && w.lastChange(name, revision) == version
			}
			if together {
				return
			}
		}
		t.Fatalf("confirmed %v since %d, but there were changes at %v", got, since, w.past)
	})
	expect.True(t, confirmed != 0, "no reading was confirmed")
}

// MR-9: all Secrets but the last one are read again.
func TestReading_Together(t *testing.T) {
	type world struct {
		*Secrets
		*readServer
	}
	for name, tc := range map[string]struct {
		// read are the Secrets that are read; after that things happen.
		read      []string
		after     func(world)
		asked     int
		want, err bool
	}{
		"one":                   {read: []string{"a"}, asked: 1, want: true},
		"one changes later":     {read: []string{"a"}, after: func(w world) { w.state["a"] = secretAt("a", "u", 13) }, asked: 1, want: true},
		"two":                   {read: []string{"a", "b"}, asked: 3, want: true},
		"the first one changed": {read: []string{"a", "b"}, after: func(w world) { w.state["a"] = secretAt("a", "u", 15) }, asked: 3},
		"the last one changed":  {read: []string{"b", "a"}, after: func(w world) { w.state["a"] = secretAt("a", "u", 15) }, asked: 3, want: true},
		"deleted":               {read: []string{"a", "b"}, after: func(w world) { delete(w.state, "a") }, asked: 3},
		"recreated":             {read: []string{"a", "b"}, after: func(w world) { w.state["a"] = secretAt("a", "v", 10) }, asked: 3},
		"away":                  {read: []string{"a", "b"}, after: func(w world) { w.fails = true }, asked: 3, err: true},
		"three":                 {read: []string{"c", "b", "a"}, asked: 5, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			server := &readServer{happens: func() {}, state: map[string]*corev1.Secret{"b": secretAt("b", "u", 14), "c": secretAt("c", "u", 3)}}
			w := world{NewSecrets(server, nil, logr.Discard()), server}
			w.state["a"] = secretAt("a", "u", 10)
			reading := w.Reading()
			for _, name := range tc.read {
				_, _, err := reading.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: name})
				must.Succeed(t, err)
			}
			if tc.after != nil {
				tc.after(w)
			}
			if is, err := reading.Together(t.Context()); is != tc.want || (err != nil) != tc.err || w.asked != tc.asked {
				t.Errorf("%t, %v, asked %d times", is, err, w.asked)
			}
		})
	}
}

// MR-7: a Secret that is named twice is one.
func TestReadingReadsASecretOnce(t *testing.T) {
	server := &readServer{happens: func() {}, state: map[string]*corev1.Secret{"a": secretAt("a", "u", 10)}}
	reading := NewSecrets(server, nil, logr.Discard()).Reading()
	for range 2 {
		_, version, err := reading.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "a"})
		expect.True(t, version == "u/10" && err == nil && server.asked == 1,
			"version %s, %v, asked %d times", version, err, server.asked)
		server.state["a"] = secretAt("a", "u", 12)
	}
}

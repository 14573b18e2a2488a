package source

import (
	"slices"
	"strconv"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

func secretAt(name, uid string, version int) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(uid), ResourceVersion: strconv.Itoa(version)},
		Data:       map[string][]byte{"version": []byte(strconv.Itoa(version))},
	}
}

// lateWorld is an API server whose watch lags behind and whose answers take any time, and the Secrets that hear of it.
type lateWorld struct {
	t       *rapid.T
	secrets *Secrets

	revision int
	state    map[string]*corev1.Secret
	// words are the events that the watch has still to deliver.
	words []func()
	// told is the latest revision that subscribers heard of, for each Secret; returned that of the data from Get.
	subscribers, returned map[string]int
	reads                 []*lateRead
	// past has for each Secret the revisions at which it changed.
	past map[string][]int
}

// lateRead is a Get under way: before it reaches the server answered is false.
type lateRead struct {
	name     string
	under    *read
	floor    int
	answered bool
	secret   *corev1.Secret
	err      error
}

func (w *lateWorld) write(name string) {
	w.revision++
	uid := "u" + strconv.Itoa(w.revision)
	if old := w.state[name]; old != nil {
		uid = string(old.UID)
	}
	secret, revision := secretAt(name, uid, w.revision), w.revision
	w.state[name] = secret
	w.past[name] = append(w.past[name], revision)
	w.words = append(w.words, func() { w.subscribers[name] = revision; w.secrets.written(secret) })
}

func (w *lateWorld) remove(name string) {
	if w.state[name] == nil {
		return
	}
	w.revision++
	secret, revision := secretAt(name, string(w.state[name].UID), w.revision), w.revision
	delete(w.state, name)
	w.past[name] = append(w.past[name], revision)
	w.words = append(w.words, func() { w.subscribers[name] = revision; w.secrets.deleted(secret) })
}

func (w *lateWorld) deliver() {
	if len(w.words) > 0 {
		word := w.words[0]
		w.words = w.words[1:]
		word()
		w.secrets.reach("", strconv.Itoa(w.revision-len(w.words)))
	}
}

// changed reports whether a Secret changed after a revision, up to another one.
func (w *lateWorld) changed(name string, after, to int) bool {
	return slices.ContainsFunc(w.past[name], func(revision int) bool { return revision > after && revision <= to })
}

// gap loses what the watch had still to deliver; the new watch begins at the present.
func (w *lateWorld) gap() {
	w.words, w.subscribers = nil, map[string]int{}
	w.secrets.missed()
}

// restore turns the server back, which a watch notices as a gap.
func (w *lateWorld) restore() {
	w.revision = w.revision / 2
	for name := range w.past {
		w.past[name] = slices.DeleteFunc(w.past[name], func(revision int) bool { return revision > w.revision })
	}
	for name, secret := range w.state {
		if version, _ := strconv.Atoi(secret.ResourceVersion); version > w.revision {
			delete(w.state, name)
		}
	}
	w.returned = map[string]int{}
	for _, r := range w.reads {
		r.floor = 0
	}
	w.gap()
}

func (w *lateWorld) begin(name string) {
	r, key := &lateRead{name: name, floor: w.returned[name]}, types.NamespacedName{Namespace: "ns", Name: name}
	r.under = w.secrets.begin(key)
	w.reads = append(w.reads, r)
}

func (w *lateWorld) ask(r *lateRead) {
	if r.answered {
		return
	}
	r.answered = true
	if r.secret = w.state[r.name]; r.secret == nil {
		r.err = apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, r.name)
	}
}

func (w *lateWorld) answer(r *lateRead) {
	if !r.answered {
		return
	}
	w.reads = slices.DeleteFunc(w.reads, func(other *lateRead) bool { return other == r })
	if again := w.secrets.end(r.under, r.secret, r.err); again || r.err != nil {
		return
	}
	w.check(r, latestSecret{r.secret.Data, version(r.secret), r.secret.ResourceVersion, latest(r.secret.ResourceVersion, r.under.known)})
}

func (w *lateWorld) check(r *lateRead, secret latestSecret) {
	version, _ := strconv.Atoi(string(secret.data["version"]))
	asOf, _ := strconv.Atoi(secret.asOf)
	if w.changed(r.name, version, asOf) {
		w.t.Fatalf("Get returned version %d of %s as that of %d, but it changed at %v", version, r.name, asOf, w.past[r.name])
	}
	if version < w.subscribers[r.name] {
		w.t.Fatalf("Get returned version %d of %s after subscribers were told of %d", version, r.name, w.subscribers[r.name])
	}
	if version < r.floor {
		w.t.Fatalf("Get returned version %d of %s after it had returned %d", version, r.name, r.floor)
	}
	w.returned[r.name] = max(w.returned[r.name], version)
}

// A read returns what was told, or newer, also if news are late.
func TestLawSecretsAreNeverOlderThanWhatWasTold(t *testing.T) {
	for range 60 { // A run takes some 40 µs; each part of the invariant is missed within so many if it is taken away.
		rapid.Check(t, lateWorldRun)
	}
}

func lateWorldRun(t *rapid.T) {
	w := &lateWorld{
		t: t, secrets: NewSecrets(nil, nil, logr.Discard()), revision: 10,
		state: map[string]*corev1.Secret{}, subscribers: map[string]int{}, returned: map[string]int{}, past: map[string][]int{},
	}
	name := rapid.SampledFrom([]string{"a", "a", "a", "b"})
	one := func(act func(*lateRead)) func(*rapid.T) {
		return func(t *rapid.T) {
			if len(w.reads) > 0 {
				act(w.reads[rapid.IntRange(0, len(w.reads)-1).Draw(t, "read")])
			}
		}
	}
	t.Repeat(map[string]func(*rapid.T){
		"write":   func(t *rapid.T) { w.write(name.Draw(t, "name")) },
		"remove":  func(t *rapid.T) { w.remove(name.Draw(t, "name")) },
		"deliver": func(*rapid.T) { w.deliver() },
		"hear":    func(*rapid.T) { w.deliver() },
		"change":  func(t *rapid.T) { w.write(name.Draw(t, "name")) },
		"begin":   func(t *rapid.T) { w.begin(name.Draw(t, "name")) },
		"ask":     one(w.ask),
		"answer":  one(w.answer),
		"gap":     func(*rapid.T) { w.gap() },
		"restore": func(*rapid.T) { w.restore() },
		"": func(t *rapid.T) {
			if len(w.secrets.reads) != len(w.reads) {
				t.Fatalf("%d reads known, %d under way", len(w.secrets.reads), len(w.reads))
			}
		},
	})
}

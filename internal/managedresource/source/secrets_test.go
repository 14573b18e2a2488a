package source

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

func secretAt(name, uid string, version int) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(uid), ResourceVersion: strconv.Itoa(version)},
		Data:       map[string][]byte{"version": []byte(strconv.Itoa(version))},
	}
}

// lateWorld is an API server whose watch lags behind, and the Secrets that hear of it.
type lateWorld struct {
	t       *rapid.T
	secrets *Secrets

	revision int
	state    map[string]*corev1.Secret
	// events are the events that the watch has still to deliver.
	events []func()
	// past has for each Secret the revisions at which it changed.
	past map[string][]int
}

func (w *lateWorld) write(name string) {
	w.revision++
	uid := "u" + strconv.Itoa(w.revision)
	if old := w.state[name]; old != nil {
		uid = string(old.UID)
	}
	secret := secretAt(name, uid, w.revision)
	w.state[name] = secret
	w.past[name] = append(w.past[name], w.revision)
	w.events = append(w.events, func() { w.secrets.changed(secret, version(secret)) })
}

func (w *lateWorld) remove(name string) {
	if w.state[name] == nil {
		return
	}
	w.revision++
	secret := secretAt(name, string(w.state[name].UID), w.revision)
	delete(w.state, name)
	w.past[name] = append(w.past[name], w.revision)
	w.events = append(w.events, func() { w.secrets.changed(secret, "") })
}

func (w *lateWorld) deliver() {
	if len(w.events) > 0 {
		event := w.events[0]
		w.events = w.events[1:]
		event()
	}
}

// gap loses what the watch had still to deliver; the new watch begins at the present.
func (w *lateWorld) gap() {
	w.events = nil
	w.secrets.missed()
}

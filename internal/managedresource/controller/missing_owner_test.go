package controller

import (
	"strings"
	"testing"
	"time"
)

// TestMissingOwner: an object whose manifest has an owner that does not exist is deleted by Kubernetes again and again: the Event names that owner.
func TestMissingOwner(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.managed("m")
	f.manifests("m", "2", configMap("a", "1", "ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: 'owner', uid: 'u'}]"))
	f.complete("m")
	deleted := func() int {
		f.clock.SetTime(f.clock.Now().Add(time.Hour))
		f.goneNow("a")
		f.complete("m")
		return strings.Count(f.events(), `the garbage collector deletes it again, as its manifest has the owner v1/ConfigMap/n/owner with UID "u", which does not exist`)
	}
	if got := deleted(); got != 1 {
		t.Errorf("MRB-50: it does not exist: told %d times: %s", got, f.events())
	}
	f.target.put("owner", "1", map[string]any{"uid": "another"})
	if got := deleted(); got != 2 {
		t.Errorf("MRB-50: it has another UID: told %d times: %s", got, f.events())
	}
	f.target.put("owner", "1", map[string]any{"uid": "u"})
	if got := deleted(); got != 2 {
		t.Errorf("MRB-50: it exists: told %d times: %s", got, f.events())
	}
}

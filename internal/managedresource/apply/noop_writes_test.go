package apply

import (
	"testing"

	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/test/expect"
)

// Only a write of the same desired state is a retry, and only while nobody has changed or replaced the object.
func TestIsRetried(t *testing.T) {
	recorded := objects.Object{RetryPartial: true, Desired: 7, UID: "u", ResourceVersion: "5", Digest: 1}
	read := objects.Observation{UID: "u", ResourceVersion: "5"}
	change := func(change func(*objects.Object, *objects.Observation)) bool {
		recorded, read := recorded, read
		change(&recorded, &read)
		return isRetried(recorded, read, 7)
	}
	for name, tc := range map[string]struct {
		change func(*objects.Object, *objects.Observation)
		want   bool
	}{
		"the tracked object":            {func(*objects.Object, *objects.Observation) {}, true},
		"another desired state":         {func(recorded *objects.Object, _ *objects.Observation) { recorded.Desired = 8 }, false},
		"no retry":                      {func(recorded *objects.Object, _ *objects.Observation) { recorded.RetryPartial = false }, false},
		"another version":               {func(_ *objects.Object, read *objects.Observation) { read.ResourceVersion = "99" }, false},
		"another version, same content": {func(_ *objects.Object, read *objects.Observation) { read.ResourceVersion, read.Digest = "99", 1 }, true},
		"another content":               {func(_ *objects.Object, read *objects.Observation) { read.ResourceVersion, read.Digest = "99", 2 }, false},
		"no digest": {func(recorded *objects.Object, read *objects.Observation) {
			read.ResourceVersion, recorded.Digest = "99", 0
		}, false},
		"another object of that name": {func(_ *objects.Object, read *objects.Observation) { read.UID = "another" }, false},
	} {
		expect.Equal(t, change(tc.change), tc.want, "MRB-8: %s: retried", name)
	}
}

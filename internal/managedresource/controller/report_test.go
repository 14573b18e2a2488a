package controller

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/espalier-project/espalier/test/expect"
)

// MRB-36: doubtful manifests are told of in one Event, however many there are, each time that they change.
func TestDoubtfulManifestsAreToldOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.managed("m")
	doubtful := func(objects int) (manifests []string) {
		for i := range objects {
			manifests = append(manifests, configMap(fmt.Sprint("o", i), "1", "annotations: {resources.gardener.cloud/finalize-deletion-after: 1d}"))
		}
		return manifests
	}
	for version, tc := range []struct {
		objects int
		ends    string
	}{
		{2, "its deletion would hang"},
		{300, ". And 297 more objects"},
	} {
		before := f.events()
		f.clock.SetTime(f.clock.Now().Add(time.Minute)) // Events are named by their time.
		f.manifests("m", fmt.Sprint(version+2), doubtful(tc.objects)...)
		f.complete("m")
		told := strings.TrimPrefix(strings.TrimPrefix(f.events(), before), "\n")
		if !strings.HasPrefix(told, "DoubtfulManifest: ") || strings.Contains(told, "\n") || !strings.Contains(told, "n/o0") || !strings.Contains(told, "n/o1") || !strings.HasSuffix(told, tc.ends) {
			t.Errorf("%d doubtful objects: %s", tc.objects, told)
		}
	}
}

// TestTimeOfARun: a run ends with the sync period, and has time left to say so.
func TestTimeOfARun(t *testing.T) {
	t.Parallel()
	f := newApplied(t, "m", "a=1")
	f.Config.SyncPeriod.Duration = time.Second
	answered := make(chan struct{})
	t.Cleanup(func() { close(answered) })
	f.target.hook(func(method, _ string) int {
		if method == http.MethodGet {
			<-answered
		}
		return 0
	})
	f.secret("m", "2", "a=2")
	_, err := f.run("m")
	expect.ErrorIs(t, err, context.DeadlineExceeded, "MRC-13/PRC-30: the run ends")
	if got := f.condition("m"); !strings.HasPrefix(got, "False/ApplyFailed") || !strings.Contains(got, context.DeadlineExceeded.Error()) {
		t.Errorf("MRB-6: it says %s", got)
	}
}

package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/internal/managedresource/decode"
	"github.com/espalier-project/espalier/test/expect"
)

// refuseLongWrites answers as an API server does whose etcd takes no more than that with a write.
func (f *fixture) refuseLongWrites(bytes int) {
	f.onSource.SubResourcePatch = func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
		data, err := patch.Data(object)
		f.must(err)
		if len(data) > bytes {
			return errors.New("etcdserver: request is too large")
		}
		return c.SubResource(sub).Patch(ctx, object, patch, opts...)
	}
}

// MR-9, MR-12: an inventory that does not fit into the status is reported, with what to do, and nothing of it is applied.
func TestInventoryThatDoesNotFit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.refuseLongWrites(1536 << 10)
	f.apply("m", "a=1")
	manifests := []string{configMap("a", "2", "")}
	for i := range 8 {
		manifests = append(manifests, configMap(fmt.Sprint("long", i), "1", "annotations: {x: '"+strings.Repeat("y", 200<<10)+"'}"))
	}
	decoded, err := decode.Decode(f.ctx, []decode.Source{{Data: map[string][]byte{"x.yaml": []byte(strings.Join(manifests, ""))}}})
	f.must(err)
	if len(decoded.Errors) > 0 {
		t.Fatal("it is refused before: ", decode.ErrorsMessage(decoded.Errors))
	}
	f.manifests("m", "2", manifests...)
	for range 2 {
		expect.Error(t, expect.ErrorOf(f.run("m")), "the queue does not back off")
		got := f.condition("m")
		if !strings.HasPrefix(got, "False/ApplyFailed: the inventory of 9 objects") || !strings.Contains(got, "spread the objects over several ManagedResources") {
			t.Errorf("MR-12: it says %.300s", got)
		}
		if value, _ := f.target.value("a"); value != "1" || f.inventory("m") != "a" {
			t.Errorf("MR-12: a is %s, and the inventory has %s", value, f.inventory("m"))
		}
	}
	f.manifests("m", "3", configMap("a", "3", ""))
	f.complete("m")
	if value, _ := f.target.value("a"); value != "3" || !strings.HasPrefix(f.condition("m"), "True/") {
		t.Errorf("a is %s, and it says %s", value, f.condition("m"))
	}
}

// MRB-3, MRS-4: an announcement that was written, though its answer was lost, is not reported as one that was not, and is carried out.
func TestAnnouncementThatWasWrittenIsNoFailure(t *testing.T) {
	t.Parallel()
	f := newApplied(t, "m", "a=1")
	f.secret("m", "2", "a=2", "b=1")
	writes := 0
	f.onSource.SubResourcePatch = func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
		data, err := patch.Data(object)
		f.must(err)
		expect.False(t, strings.Contains(string(data), "ApplyFailed"), "a failure is reported: %s", data)
		err = c.SubResource(sub).Patch(ctx, object, patch, opts...)
		if writes++; writes == 1 {
			f.must(err)
			return errors.New("connection reset by peer")
		}
		return err
	}
	f.complete("m")
	if value, _ := f.target.value("b"); value != "1" || f.inventory("m") != "a b" || !strings.HasPrefix(f.condition("m"), "True/") {
		t.Errorf("b is %s, the inventory has %s, and it says %s", value, f.inventory("m"), f.condition("m"))
	}
}

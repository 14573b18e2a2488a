package relation

import (
	"slices"
	"testing"
	"time"

	gardencorev1beta1 "github.com/espalier-project/espalier/internal/externalapi/core/v1beta1"
	"github.com/espalier-project/espalier/internal/externalapi/partialmeta"
	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/gen/builders"
	"github.com/espalier-project/espalier/test/must"
)

func TestKindOf(t *testing.T) {
	for name, c := range map[string]struct {
		reference partialmeta.Reference
		allowed   []graph.Kind
		want      graph.Kind
		known     bool
	}{
		"B-8/Secret":                       {partialmeta.Reference{APIVersion: "v1", Kind: "Secret"}, resources, Secret, true},
		"B-8/ConfigMap":                    {partialmeta.Reference{APIVersion: "v1", Kind: "ConfigMap"}, resources, ConfigMap, true},
		"B-8/WorkloadIdentity":             {partialmeta.Reference{APIVersion: "security.gardener.cloud/v1alpha1", Kind: "WorkloadIdentity"}, resources, WorkloadIdentity, true},
		"B-8/InternalSecret":               {partialmeta.Reference{APIVersion: "core.gardener.cloud/v1beta1", Kind: "InternalSecret"}, []graph.Kind{InternalSecret}, InternalSecret, true},
		"B-8/no kind is no Secret":         {partialmeta.Reference{}, []graph.Kind{0, Secret}, 0, false},
		"B-8/a kind that is not allowed":   {partialmeta.Reference{APIVersion: "v1", Kind: "ConfigMap"}, credentials, 0, false},
		"B-8/Secret of another API":        {partialmeta.Reference{APIVersion: "v2", Kind: "Secret"}, resources, 0, false},
		"B-8/Secret, where none may stand": {partialmeta.Reference{APIVersion: "v1", Kind: "Secret"}, []graph.Kind{ConfigMap}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, known := kindOf(&c.reference, c.allowed)
			expect.True(t, got == c.want && known == c.known, "got %v, %v, want %v, %v", got, known, c.want, c.known)
		})
	}
}

// TestBackupCredentials: the credentials of the backups of a Seed, and of the control planes of a self-hosted Shoot, are those that it names.
func TestBackupCredentials(t *testing.T) {
	seed := &gardencorev1beta1.Seed{}
	must.Succeed(t, seedA().Into(seed))
	backup := graph.Vertex{Kind: Secret, Namespace: "garden", Name: "backup"}
	got := BackupCredentials(seed.Spec.Backup)
	expect.DeepEqual(t, got, []graph.Vertex{backup}, "SHG-6: the Seed's backup names %v, want %v", got, backup)
	expect.Empty(t, BackupCredentials(nil), "SHG-6: no backup names")
	shoot := &gardencorev1beta1.Shoot{}
	workers := []any{map[string]any{"name": "w"}, map[string]any{"name": "c", "controlPlane": map[string]any{"backup": map[string]any{"credentialsRef": secret("backup")}}}}
	must.Succeed(t, builders.Shoot("garden", "s").With("spec.provider.workers", workers).Into(shoot))
	if got := ControlPlaneBackups(shoot); !slices.Equal(got, []graph.Vertex{backup}) {
		t.Errorf("SHG-6: the Shoot's control planes name %v, want %v", got, backup)
	}
}

// TestObserved: each change of the graph is observed once, with its kind and operation and the time that it took; one that changes nothing is not.
func TestObserved(t *testing.T) {
	g := newGarden(t)
	var took []time.Duration
	count := g.Observe
	g.Observe = func(kind graph.Kind, operation string, d time.Duration) {
		took = append(took, d)
		count(kind, operation, d)
	}
	g.set(shoots, web())
	g.set(shoots, web())
	g.Delete(shoots, "garden-dev", "web")
	g.Delete(shoots, "garden-dev", "web")
	if g.updates["Shoot CreateOrUpdate"]+g.updates["Shoot Update"]+g.updates["Shoot "+shoots.Update] == 0 || g.updates["Shoot Delete"] != 1 || len(took) != 2 {
		t.Errorf("B-13: observed %v, %d times, want one change and one deletion", g.updates, len(took))
	}
}

func TestWithout(t *testing.T) {
	for _, w := range Watches {
		for _, r := range w.Rows {
			expect.True(t, w.Has(r.ID) && !w.Has(r.ID+"x"), "%s: Has is wrong", r.ID)
		}
	}
	g := newGarden(t)
	_, all, _ := seeds.Contribute(seen(t, seeds, seedA()), g.Facts())
	_, less, _ := seeds.Without(seeds.Rows[0].ID).Contribute(seen(t, seeds, seedA()), g.Facts())
	expect.True(t, len(less) < len(all), "without %s there are %d edges of %d", seeds.Rows[0].ID, len(less), len(all))
}

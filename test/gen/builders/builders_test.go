package builders

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/espalier-project/espalier/internal/externalapi/core/v1beta1"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestFields: an object has the fields that its API gives it.
func TestFields(t *testing.T) {
	for name, c := range map[string]struct {
		object *Object
		want   string
	}{
		"a Shoot": {
			Shoot("garden-dev", "web").OnSeed("a").StillOnSeed("b").CloudProfile("cp").Annotated("a.b/c", "d").Labelled("e.f", "g").UID("u"),
			"{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, metadata: {namespace: garden-dev, name: web, uid: u, annotations: {a.b/c: d}, labels: {e.f: g}}, spec: {seedName: a, cloudProfile: {name: cp}}, status: {seedName: b}}",
		},
		"lists": {
			Seed("a").Resource(Ref("Secret", "s"), Ref("Unknown", "n/x")).Resource(Ref("InternalSecret", "i").Version("v2")),
			"{apiVersion: core.gardener.cloud/v1beta1, kind: Seed, metadata: {name: a}, spec: {resources: [{name: s, resourceRef: {apiVersion: v1, kind: Secret, name: s}}, {name: x, resourceRef: {apiVersion: v1, kind: Unknown, namespace: 'n', name: x}}, {name: i, resourceRef: {apiVersion: v2, kind: InternalSecret, name: i}}]}}",
		},
		"the configuration of a gardenlet": {
			ManagedSeed("garden", "m", "s").Bootstrap("None").SeedSpec("backup.secretRef", At("n/x")),
			"{apiVersion: seedmanagement.gardener.cloud/v1alpha1, kind: ManagedSeed, metadata: {namespace: garden, name: m}, spec: {shoot: {name: s}, gardenlet: {bootstrap: None, config: {apiVersion: gardenlet.config.gardener.cloud/v1alpha1, kind: GardenletConfiguration, seedConfig: {spec: {backup: {secretRef: {namespace: 'n', name: x}}}}}}}}",
		},
		"what is taken away": {Project("p", "n").Without("spec.namespace").With("spec.owner", nil), "{apiVersion: core.gardener.cloud/v1beta1, kind: Project, metadata: {name: p}, spec: {owner: null}}"},
		"bytes":              {Secret("n", "s").With("data.a", []byte("b")), "{apiVersion: v1, kind: Secret, metadata: {namespace: 'n', name: s}, data: {a: Yg==}}"},
	} {
		t.Run(name, func(t *testing.T) {
			want := map[string]any{}
			must.Succeed(t, yaml.Unmarshal([]byte(c.want), &want))
			expect.DeepEqual(t, c.object.Obj().Object, want)
		})
	}
}

// TestBut: a copy changes by itself.
func TestBut(t *testing.T) {
	web := Shoot("n", "web").OnSeed("a").Resource(Ref("Secret", "s"))
	other := web.But().OnSeed("b").Resource(Ref("Secret", "t"))
	shoot, copied := &gardencorev1beta1.Shoot{}, &gardencorev1beta1.Shoot{}
	must.Succeed(t, web.Into(shoot))
	must.Succeed(t, other.Into(copied))
	if *shoot.Spec.SeedName != "a" || len(shoot.Spec.Resources) != 1 || *copied.Spec.SeedName != "b" || len(copied.Spec.Resources) != 2 {
		t.Errorf("got %+v and %+v", shoot.Spec, copied.Spec)
	}
	expect.ErrorContains(t, web.With("spec", 5).Into(shoot), `"spec":5`)
}

func TestDocuments(t *testing.T) {
	if got := strings.Split(Documents(Seed("a"), Seed("b")), "\n---\n"); len(got) != 2 || !strings.Contains(got[1], "name: b") || Documents() != "" {
		t.Errorf("got %q", got)
	}
}

package dump

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/espalier-project/espalier/internal/externalapi/partialmeta"
	seedmanagementv1alpha1 "github.com/espalier-project/espalier/internal/externalapi/seedmanagement/v1alpha1"
	"github.com/espalier-project/espalier/internal/externalapi/wellknown"
	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/gen/gardengen"
	"github.com/espalier-project/espalier/test/must"
)

// item is an object with its kind.
type item struct {
	kind   graph.Kind
	object runtime.Object
}

// draw draws a garden, with a Namespace of each project.
func draw(g gardengen.Gen, count int) []item {
	var items []item
	for _, namespace := range gardengen.Namespaces {
		items = append(items, item{relation.Namespace, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: namespace, Labels: map[string]string{wellknown.Project: "p-" + namespace, "team": "secret-label"},
		}}})
	}
	seen := map[graph.Vertex]bool{}
	for range count {
		w := gardengen.One(g, relation.Watches)
		object := g.Object(w.Kind)
		if owner := w.Owner(object); !seen[owner] {
			seen[owner] = true
			items = append(items, item{w.Kind, object})
		}
	}
	return items
}

func write(t *testing.T, items []item) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "dump")
	w, err := Create(dir, gardengen.Now)
	must.Succeed(t, err)
	for _, i := range items {
		must.Succeed(t, w.Add(i.kind, i.object))
	}
	must.Succeed(t, expect.ErrorOf(w.Close()))
	return dir
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must.Succeed(t, err)
	all := map[string]string{}
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		must.Succeed(t, err)
		all[entry.Name()] = string(text)
	}
	return all
}

func all(g *graph.Graph) []graph.Neighbourhood {
	shown, _ := g.Neighbourhoods(func(graph.Vertex) bool { return true }, graph.Bounds{})
	return shown
}

// TestPropertyOfRoundTrip: the graphs that are made from a dump are those of the garden, whatever is in it; and the same objects make the same dump, in
// whatever order they come.
func TestPropertyOfRoundTrip(t *testing.T) {
	for seed := range uint64(150) {
		g := gardengen.New(seed)
		items := draw(g, 5+g.IntN(40))
		want := relation.NewGarden(clocktesting.NewFakePassiveClock(gardengen.Now))
		for _, i := range items {
			want.Set(i.kind, i.object)
		}
		dir := write(t, items)
		got, header, err := load(dir)
		must.Succeed(t, err, "seed %d", seed)
		expect.True(t, header.Taken.Equal(gardengen.Now), "seed %d: taken at %s", seed, header.Taken)
		if diff := cmp.Diff(all(want.Seeds.Graph), all(got.Seeds.Graph)); diff != "" {
			t.Fatalf("seed %d: the graph for seeds: %s", seed, diff)
		}
		if diff := cmp.Diff(all(want.Shoots.Graph), all(got.Shoots.Graph)); diff != "" {
			t.Fatalf("seed %d: the graph for self-hosted shoots: %s", seed, diff)
		}
		again := relation.NewGarden(clocktesting.NewFakePassiveClock(gardengen.Now))
		var read []item
		if _, err := Read(dir, func(kind graph.Kind, object runtime.Object) error {
			again.Set(kind, object)
			read = append([]item{{kind, object}}, read...)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(contents(t, dir), contents(t, write(t, read))); diff != "" {
			t.Fatalf("seed %d: the same objects make another dump: %s", seed, diff)
		}
	}
}

// TestNothingSecret: what the table of edges does not read is in no file.
func TestNothingSecret(t *testing.T) {
	const secret = "hidden-value"
	marked := map[string]string{"kubectl.kubernetes.io/last-applied-configuration": secret, "team": secret}
	metadata := metav1.ObjectMeta{
		Name: wellknown.BootstrapServiceAccount + "x", Namespace: wellknown.Garden, Labels: marked, Annotations: marked,
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: secret}}, Finalizers: []string{secret},
	}
	account := &corev1.ServiceAccount{ObjectMeta: metadata, Secrets: []corev1.ObjectReference{{Name: "token", FieldPath: secret}}, ImagePullSecrets: []corev1.LocalObjectReference{{Name: secret}}}
	request := gardengen.New(1).ObjectNamed(relation.CertificateSigningRequest, "", "csr").(*certificatesv1.CertificateSigningRequest)
	request.Annotations, request.Labels, request.Spec.Username = marked, marked, secret
	request.Status.Certificate = []byte(secret)
	slice := partialmeta.Object{Namespace: wellknown.Garden, Name: "a", Labels: marked, Annotations: map[string]string{"team": secret, wellknown.Operation: wellknown.RenewKubeconfig}}
	config := &runtime.RawExtension{Raw: []byte(`{"apiVersion":"gardenlet.config.gardener.cloud/v1alpha1","kind":"GardenletConfiguration","password":"` + secret + `",
		"seedConfig":{"metadata":{"labels":{"a":"` + secret + `"}},"spec":{"provider":{"providerConfig":"` + secret + `"},"backup":{"secretRef":{"name":"backup","namespace":"garden"}}}}}`)}
	items := []item{
		{relation.ServiceAccount, account}, {relation.CertificateSigningRequest, request},
		{relation.Namespace, &corev1.Namespace{ObjectMeta: metadata}},
		{relation.Gardenlet, &seedmanagementv1alpha1.Gardenlet{Object: slice, Spec: seedmanagementv1alpha1.GardenletSpec{Config: config}}},
		{relation.ManagedSeed, &seedmanagementv1alpha1.ManagedSeed{Object: slice, Spec: seedmanagementv1alpha1.ManagedSeedSpec{Gardenlet: &seedmanagementv1alpha1.GardenletConfig{Config: config}}}},
		{relation.ManagedSeed, &seedmanagementv1alpha1.ManagedSeed{Object: partialmeta.Object{Namespace: wellknown.Garden, Name: "bad"}, Spec: seedmanagementv1alpha1.ManagedSeedSpec{
			Gardenlet: &seedmanagementv1alpha1.GardenletConfig{Config: &runtime.RawExtension{Raw: []byte(`{"password": "` + secret + `"}`)}},
		}}},
	}
	before, isAccount := account.DeepCopyObject().(*corev1.ServiceAccount)
	written := contents(t, write(t, items))
	for name, text := range written {
		expect.False(t, strings.Contains(text, secret), "%s has what no edge needs: %s", name, text)
	}
	expect.True(t, isAccount && cmp.Diff(before, account) == "", "the object itself was changed")
	for file, want := range map[string]string{
		"gardenlets.seedmanagement.gardener.cloud.jsonl": `"backup"`, "managedseeds.seedmanagement.gardener.cloud.jsonl": `"config":{}`, "serviceaccounts.jsonl": `"token"`,
	} {
		expect.Contains(t, written[file], want, "%s lacks", file)
	}
}

// TestLeftOut: ServiceAccounts that no edge is about are not in a dump, and neither are objects of other kinds.
func TestLeftOut(t *testing.T) {
	written := contents(t, write(t, []item{{relation.ServiceAccount, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "default"}}}}))
	expect.Equal(t, written["serviceaccounts.jsonl"], "")
	w, err := Create(t.TempDir(), time.Unix(0, 0))
	must.Succeed(t, err)
	expect.Error(t, w.Add(relation.Namespace, &corev1.Secret{}), "a Secret is taken")
}

func TestFaults(t *testing.T) {
	shoot := []item{{relation.Shoot, gardengen.New(3).ObjectNamed(relation.Shoot, "garden-n", "s")}}
	const shoots = "shoots.core.gardener.cloud.jsonl"
	change := func(name, from, to string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			file := filepath.Join(dir, name)
			text, err := os.ReadFile(file)
			must.Succeed(t, err)
			must.Succeed(t, os.WriteFile(file, []byte(strings.Replace(string(text), from, to, 1)), 0o600))
		}
	}
	for name, c := range map[string]struct {
		change func(*testing.T, string)
		want   string
	}{
		"no header":        {func(t *testing.T, dir string) { t.Helper(); _ = os.Remove(filepath.Join(dir, headerName)) }, "it is no dump"},
		"another format":   {change(headerName, Format, "tar"), `format is "tar"`},
		"a later version":  {change(headerName, `"version": 1`, `"version": 2`), "version is 2"},
		"an unknown kind":  {change(headerName, shoots, "foos.jsonl"), "foos.jsonl is of no kind"},
		"a missing object": {change(headerName, `"objects": 1`, `"objects": 2`), "has 1 objects, and the header says 2"},
		"a broken line":    {change(shoots, "{", "x"), shoots + ": line 1 is no Shoot"},
		"a long header":    {change(headerName, "{", strings.Repeat(" ", headerLimit)+"{"), "too long"},
		"a long line":      {change(shoots, "{", strings.Repeat(" ", lineLimit)+"{"), "line 1: bufio.Scanner: token too long"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := write(t, shoot)
			_, _, err := load(dir)
			must.Succeed(t, err)
			c.change(t, dir)
			if _, _, err := load(dir); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
	expect.ErrorContains(t, expect.ErrorOf(Create(write(t, shoot), time.Unix(0, 0))), "not empty",
		"a folder with a dump is written into")
}

// load makes both graphs of a dump, at its time.
func load(dir string) (*relation.Garden, Header, error) {
	h, err := ReadHeader(dir)
	if err != nil {
		return nil, h, err
	}
	garden := relation.NewGarden(clocktesting.NewFakePassiveClock(h.Taken))
	h, err = Read(dir, func(kind graph.Kind, object runtime.Object) error {
		garden.Set(kind, object)
		return nil
	})
	return garden, h, err
}

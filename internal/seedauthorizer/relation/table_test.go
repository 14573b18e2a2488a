package relation

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/internal/externalapi/wellknown"
	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/gen/builders"
	"github.com/espalier-project/espalier/test/must"
)

// TestRanks proves that no ordinary edge of the table can be part of a circle (C21): each leads to a higher rank.
func TestRanks(t *testing.T) {
	for _, w := range Watches {
		for _, r := range w.Rows {
			for _, from := range r.From {
				for _, to := range r.To {
					if r.Class != graph.Direct && Schema.Ranks[from] >= Schema.Ranks[to] {
						t.Errorf("C21: %s: %s does not rank below %s", r.ID, Schema.Names[from], Schema.Names[to])
					}
				}
			}
		}
	}
	expect.True(t, len(Schema.Names) == int(numberOfKinds) && len(Schema.Ranks) == int(numberOfKinds) && numberOfKinds == 26,
		"there are %d kinds, %d names and %d ranks, want 26 (6.1)", numberOfKinds, len(Schema.Names), len(Schema.Ranks))
}

// TestEveryReferenceIsFollowed walks the types of the slices: whatever they read is followed by a row, or listed with a reason.
func TestEveryReferenceIsFollowed(t *testing.T) {
	for _, w := range Watches {
		object := w.New()
		switch object.(type) {
		case *certificatesv1.CertificateSigningRequest, *corev1.ServiceAccount:
			continue // Not slices: Kubernetes' own types.
		}
		named := map[string]bool{}
		for _, r := range w.Rows {
			for _, field := range r.Fields {
				named[field] = true
			}
		}
		for field := range w.NotFollowed {
			named[field] = true
		}
		used := map[string]bool{"metadata.ownerReferences[]": true}
		for _, leaf := range leaves(reflect.TypeOf(object).Elem(), "") {
			covering := slices.DeleteFunc(slices.Sorted(maps.Keys(named)), func(field string) bool {
				return leaf != field && !strings.HasPrefix(leaf, field+".")
			})
			expect.True(t, len(covering) != 0,
				"%s: %s is neither followed nor listed as not followed", Schema.Names[w.Kind], leaf)
			for _, field := range covering {
				used[field] = true
			}
		}
		for field := range named {
			expect.True(t, used[field], "%s: the slice has no field %s", Schema.Names[w.Kind], field)
		}
	}
}

func leaves(t reflect.Type, path string) []string {
	switch t.Kind() {
	case reflect.Pointer:
		return leaves(t.Elem(), path)
	case reflect.Slice:
		return leaves(t.Elem(), path+"[]")
	case reflect.Struct:
		if t == reflect.TypeFor[runtime.RawExtension]() || t == reflect.TypeFor[time.Time]() {
			return []string{path}
		}
		var result []string
		for field := range t.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if path == "" && (name == "" || name == "metadata") {
				continue
			}
			next := path
			if name != "" {
				next = strings.TrimPrefix(path+"."+name, ".")
			}
			result = append(result, leaves(field.Type, next)...)
		}
		return result
	}
	return []string{path}
}

// samples are objects of all watched kinds with references to a few others, so that they meet.
func samples() map[*Watch][]*builders.Object {
	return map[*Watch][]*builders.Object{
		seeds:                   {seedA(), childSeed("2026-11-21T13:00:00Z"), childSeed("2026-11-21T11:00:00Z"), builders.Seed("a")},
		shoots:                  {web(), web().UID("5678"), web().OnSeed("child").Annotated(wellknown.Issuer, ""), builders.Shoot("garden", "child-shoot").OnSeed("a").With("spec.exposureClassName", "internet")},
		backupBuckets:           {bucket(), builders.BackupBucket("b").OnSeed("child"), builders.BackupBucket("b").With("spec.shootRef", builders.At("garden-dev/web"))},
		backupEntries:           {entry(), entry().StillOnSeed("child")},
		bastions:                {builders.Bastion("garden-dev", "b").OnSeed("a")},
		projects:                {builders.Project("dev", "garden-dev"), builders.Project("dev", "")},
		secretBindings:          {builders.SecretBinding("garden-dev", "sb", "garden-dev/dns1")},
		credentialsBindings:     {builders.CredentialsBinding("garden-dev", "cb", secret("backup")), builders.CredentialsBinding("garden-dev", "cb", builders.Ref("InternalSecret", "garden/x"))},
		controllerInstallations: {installation(), builders.ControllerInstallation("i", "r").With("spec.seedRef.name", "child")},
		controllerDeployments:   {builders.ControllerDeployment("d").With("helm.ociRepository.pullSecretRef.name", "backup"), builders.ControllerDeployment("d")},
		gardenlets:              {gardenletA(), renewing(gardenletA())},
		managedSeeds:            {child("BootstrapToken"), child("ServiceAccount")},
		serviceAccounts:         {bootstrapping("child", "a"), bootstrapping("child")},
		certificateSigningRequests: {
			builders.CertificateRequest("csr", wellknown.SeedUserPrefix+"a", wellknown.SeedsGroup, clientUsages), builders.CertificateRequest("csr", wellknown.SeedUserPrefix+"child", wellknown.SeedsGroup, clientUsages),
		},
	}
}

// TestRowsKeepTheirWord: what rows add is between the kinds that they declare.
func TestRowsKeepTheirWord(t *testing.T) {
	g := newGarden(t)
	g.SetNamespace(projectNamespace)
	found := map[string]bool{}
	all := samples()
	all[managedSeeds] = append(all[managedSeeds], renewing(child("BootstrapToken")))
	for w, objects := range all {
		for _, o := range objects {
			_, edges, _ := w.Contribute(seen(t, w, o), g.Facts())
			for _, e := range edges {
				declared := false
				for _, r := range w.Rows {
					if slices.Contains(r.From, e.From.Kind) && slices.Contains(r.To, e.To.Kind) && r.Class == e.Class {
						declared, found[r.ID] = true, true
					}
				}
				if !declared {
					t.Errorf("%s: no row declares %s -> %s", Schema.Names[w.Kind], Schema.String(e.From), Schema.String(e.To))
				}
			}
		}
	}
	for _, w := range Watches {
		for _, r := range w.Rows {
			if !found[r.ID] && r.ID != "GE-41a" && r.ID != "GE-22" {
				t.Errorf("no sample shows %s", r.ID)
			}
		}
	}
}

// TestPropertyOfEvents is B-13: after any events in any order the graph is that of the objects that are there.
func TestPropertyOfEvents(t *testing.T) {
	type object struct {
		watch  *Watch
		object runtime.Object
	}
	var all []object
	for w, objects := range samples() {
		for _, o := range objects {
			all = append(all, object{w, seen(t, w, o)})
		}
	}
	slices.SortStableFunc(all, func(a, b object) int { return int(a.watch.Kind) - int(b.watch.Kind) })
	rapid.Check(t, func(r *rapid.T) {
		g := newGarden(t)
		present := map[graph.Vertex]object{}
		labelled := false
		ownerOf := func(o object) graph.Vertex {
			return o.watch.Owner(o.object)
		}
		r.Repeat(map[string]func(*rapid.T){
			"set": func(r *rapid.T) {
				o := rapid.SampledFrom(all).Draw(r, "object")
				present[ownerOf(o)] = o
				g.Set(o.watch, o.object)
			},
			"delete": func(r *rapid.T) {
				owner := ownerOf(rapid.SampledFrom(all).Draw(r, "object"))
				delete(present, owner)
				g.Delete(WatchOf(owner.Kind), owner.Namespace, owner.Name)
			},
			"replace": func(r *rapid.T) {
				w := rapid.SampledFrom(Watches).Draw(r, "watch")
				for owner, o := range present {
					if o.watch != w {
						continue
					}
					if rapid.Bool().Draw(r, "kept") {
						g.Set(w, o.object)
					} else {
						delete(present, owner)
					}
				}
				g.Retain(w, func(namespace, name string) bool {
					_, there := present[graph.Vertex{Kind: w.Kind, Namespace: namespace, Name: name}]
					return there
				})
			},
			"label": func(r *rapid.T) {
				if labelled = rapid.Bool().Draw(r, "labelled"); labelled {
					g.SetNamespace(projectNamespace)
				} else {
					g.DeleteNamespace(projectNamespace.Name)
				}
			},
		})
		again := newGarden(t)
		if labelled {
			again.SetNamespace(projectNamespace)
		}
		for _, o := range present {
			again.Set(o.watch, o.object)
		}
		everything := func(graph.Vertex) bool { return true }
		got, _ := g.Graph.Neighbourhoods(everything, graph.Bounds{})
		want, _ := again.Graph.Neighbourhoods(everything, graph.Bounds{})
		must.True(r, reflect.DeepEqual(got, want), "B-13: got %v\nwant %v", got, want)
		// Nothing of an object that is gone is kept.
		if got, want := g.remembered(), again.remembered(); got != want {
			r.Fatalf("B-13: got %s, want %s", got, want)
		}
		for _, n := range want {
			for _, seed := range []string{"a", "child"} {
				must.Equal(r, g.Graph.Check(n.Vertex, SeedVertex(seed)), again.Graph.Check(n.Vertex, SeedVertex(seed)),
					"%s to %s differs", Schema.String(n.Vertex), seed)
			}
		}
	})
}

// remembered tells what a state keeps beside its graph.
func (g *garden) remembered() string {
	issuers := map[string]string{}
	for namespace, shoots := range g.issuers {
		issuers[namespace] = ""
		for name, shoot := range shoots {
			issuers[namespace] += name + " " + string(shoot.UID) + " "
		}
	}
	dependents := map[string]int{}
	for seed, all := range g.bootstrapping {
		dependents[seed] = len(all)
	}
	return fmt.Sprint(g.seeds, dependents, g.projects, issuers) // Maps are printed in the order of their keys.
}

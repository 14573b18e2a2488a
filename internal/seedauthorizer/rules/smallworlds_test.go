package rules

import (
	"flag"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-project/espalier/internal/externalapi/wellknown"
	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/test/gen/builders"
	"github.com/espalier-project/espalier/test/gen/gardengen"
)

// Small worlds have the seeds a and child, the ordinary Shoot garden-n/t on seed a, the Shoot garden/child, which is self-hosted and may be the seed child,
// and chains of up to three edges that end at one of them. `make exhaust` asks in all of them, `make test` in a sample.
var exhaustive = flag.Bool("exhaust", false, "ask in all small worlds, not in a sample")

// sample returns every n-th of the worlds, or all.
func sample[T any](worlds []T, n int) (result []T) {
	for i := range worlds {
		if *exhaustive || i%n == 0 {
			result = append(result, worlds[i])
		}
	}
	return result
}

// small builds the objects of small worlds.
type small struct{ t *testing.T }

func (s small) object(kindName string, o *builders.Object) present {
	return present{kindNamed(kindName), objectOf(s.t, kindNamed(kindName), o)}
}

// bare returns the objects of a kind without references that can be chosen, in all forms.
func (s small) bare(kind string) (result []*builders.Object) {
	config := jsonMap{"apiVersion": "gardenlet.config.gardener.cloud/v1alpha1", "kind": "GardenletConfiguration"}
	managed := func(mode string) *builders.Object {
		return builders.ManagedSeed(wellknown.Garden, "child", "child").Bootstrap(mode).With("spec.gardenlet.config", config).Annotated(wellknown.Operation, wellknown.RenewKubeconfig)
	}
	gardenlet := func(name string) *builders.Object {
		return builders.Gardenlet(wellknown.Garden, name).With("spec.config", config).Annotated(wellknown.Operation, wellknown.RenewKubeconfig)
	}
	const usages = "key encipherment, digital signature, client auth"
	switch kind {
	case "Seed":
		return []*builders.Object{builders.Seed("a"), builders.Seed("child")}
	case "Shoot":
		return []*builders.Object{s.ordinary(), builders.Shoot(wellknown.Garden, "child").SelfHosted(), builders.Shoot(wellknown.Garden, "child")}
	case "Gardenlet":
		return []*builders.Object{gardenlet("a"), gardenlet("child"), gardenlet("self-hosted-shoot-child")}
	case "ManagedSeed":
		return []*builders.Object{managed("BootstrapToken"), managed("ServiceAccount"), managed("None"), builders.ManagedSeed(wellknown.Garden, "a", "child")}
	case "ServiceAccount":
		return []*builders.Object{
			builders.ServiceAccount(wellknown.Garden, "gardenlet-bootstrap-child"), builders.ServiceAccount(wellknown.Garden, "extension-shoot--child--x"), builders.ServiceAccount(wellknown.Garden, "x"),
		}
	case "CertificateSigningRequest":
		return []*builders.Object{
			builders.CertificateRequest("x", wellknown.SeedUserPrefix+"a", wellknown.SeedsGroup, usages), builders.CertificateRequest("x", wellknown.SeedUserPrefix+"child", wellknown.SeedsGroup, usages),
			builders.CertificateRequest("x", wellknown.ShootUserPrefix+"garden:child", wellknown.ShootsGroup, usages), builders.CertificateRequest("x", wellknown.SeedUserPrefix+"a", wellknown.SeedsGroup, "client auth"),
		}
	case "ControllerInstallation":
		return []*builders.Object{builders.ControllerInstallation("t", "x"), builders.ControllerInstallation("x", "x")}
	}
	api := relation.WatchOf(kindNamed(kind)).Resource.GroupVersion().String()
	if gardengen.IsClusterScoped(kindNamed(kind)) {
		return []*builders.Object{builders.New(api, kind, "", "x")}
	}
	return []*builders.Object{builders.New(api, kind, "garden-n", "x"), builders.New(api, kind, wellknown.Garden, "x")}
}

func kindNamed(name string) graph.Kind {
	kind, _ := relation.KindNamed(name)
	return kind
}

func (small) ordinary() *builders.Object {
	return builders.Shoot("garden-n", "t").UID("u").OnSeed("a").Annotated(wellknown.Issuer, wellknown.ManagedIssuer).Add("spec.provider.workers", jsonMap{})
}

// bases are the gardens without a chain.
func (s small) bases() [][]present {
	seeds := []present{s.object("Seed", builders.Seed("a")), s.object("Seed", builders.Seed("child")), s.object("Shoot", s.ordinary())}
	installed := s.object("ControllerInstallation", builders.ControllerInstallation("x", "x").With("spec.shootRef", builders.At("garden/child")))
	selfHosted, managed := s.object("Shoot", builders.Shoot(wellknown.Garden, "child").SelfHosted()), s.object("ManagedSeed", s.bare("ManagedSeed")[0])
	return [][]present{
		append(slices.Clone(seeds), selfHosted, installed), append(slices.Clone(seeds), selfHosted, installed, managed), {seeds[2], selfHosted, managed},
		append(slices.Clone(seeds), s.object("Shoot", builders.Shoot(wellknown.Garden, "child")), installed), seeds,
	}
}

// single is an object of a small world, with the edges that it has on top of those of the bare object: those of one reference.
type single struct {
	present
	owner string
	edges [][2]string
}

// singles are all objects with at most one reference, by the second reading of the contract.
func (s small) singles() (result []single) {
	seen := map[string]bool{}
	add := func(kind string, o, without *builders.Object) {
		p := s.object(kind, o)
		if text := kind + jsonText(p.object); !seen[text] {
			seen[text] = true
			edges := s.edgesOf(p)
			if without != nil {
				before := s.edgesOf(s.object(kind, without))
				edges = slices.DeleteFunc(edges, func(e [2]string) bool { return slices.Contains(before, e) })
			}
			result = append(result, single{p, v(kind, textAt(jsonOf(p.object), "metadata.namespace"), textAt(jsonOf(p.object), "metadata.name")), edges})
		}
	}
	for _, line := range strings.Split(strings.TrimSpace(contractEdges), "\n") {
		cells := strings.Split(line, "|")
		kind := strings.Fields(cells[0])[1]
		for _, bare := range s.bare(kind) {
			add(kind, bare, nil)
			for _, end := range cells[1:3] {
				for _, filled := range fill(strings.Fields(end)) {
					o := bare.But()
					for path, value := range filled {
						o = o.With(path, value)
					}
					add(kind, o, bare)
				}
			}
		}
	}
	return result
}

// edgesOf returns the edges that an object makes where both seeds exist (GE-22 needs them).
func (s small) edgesOf(p present) (result [][2]string) {
	seeds := s.bases()[0][:2]
	if relation.Schema.Names[p.kind] == "Seed" {
		seeds = nil
	}
	for _, of := range []string{"S", "H"} {
		without := newContractGraph(of, seeds).out
		for from, ends := range newContractGraph(of, append(slices.Clone(seeds), p)).out {
			ends = slices.DeleteFunc(slices.Clone(ends), func(end [2]string) bool {
				return slices.Contains(without[from], end)
			})
			for _, end := range ends {
				if e := [2]string{from, end[0]}; !slices.Contains(result, e) {
					result = append(result, e)
				}
			}
		}
	}
	return result
}

// fill returns values for the paths of an end of an edge: every object of a small world, and every form of a reference to it.
func fill(words []string) (result []map[string]any) {
	set := func(path string, value any) map[string]any {
		for {
			at := strings.LastIndex(path, "[]")
			if at < 0 {
				return map[string]any{path: value}
			}
			if rest := strings.TrimPrefix(path[at+2:], "."); rest != "" {
				value = nested(rest, value)
			}
			path, value = path[:at], []any{value}
		}
	}
	references := func(namespace string) (all []any) {
		for _, kind := range []string{"v1 Secret", "v1 ConfigMap", "security.gardener.cloud/v1alpha1 WorkloadIdentity", "core.gardener.cloud/v1beta1 InternalSecret", "v2 Secret"} {
			version, kind, _ := strings.Cut(kind, " ")
			all = append(all, jsonMap{"apiVersion": version, "kind": kind, "namespace": namespace, "name": "x"})
		}
		return all
	}
	for _, namespace := range []string{wellknown.Garden, "garden-n"} {
		switch words[0] {
		case "ref":
			for _, reference := range references(namespace) {
				result = append(result, set(words[1], reference))
			}
		case "cred", "dns":
			old := jsonMap{"secretRef": jsonMap{"namespace": namespace, "name": "x"}, "secretName": "x"}
			result = append(result, set(words[1], old))
			for _, reference := range references(namespace) {
				result = append(result, set(words[1], jsonMap{"credentialsRef": reference}), set(words[1], merge(jsonMap{"credentialsRef": reference}, old)))
			}
		case "at":
			for _, name := range map[string][]string{"Seed": {"a", "child"}, "Shoot": {"t", "child"}}[words[1]] {
				result = append(result, filled(set, words, namespace, name))
			}
			result = append(result, filled(set, words, namespace, "x"))
			if strings.Contains(words[3], "generatedSecretRef") { // SHG-7
				result = append(result, filled(set, words, namespace, wellknown.GeneratedBucketPrefix+"x"))
			}
			if words[3] == ".spec.namespace" {
				result = append(result, filled(set, words, "", namespace))
			}
			if words[3] == "@owner" {
				owners := []any{jsonMap{"kind": "Foo", "name": "t"}, jsonMap{"kind": "Shoot", "name": "t"}, jsonMap{"kind": "Shoot", "name": "x"}}
				result = append(result, map[string]any{"metadata.ownerReferences": owners})
			}
			if strings.HasSuffix(words[3], "cloudProfile.name") {
				for _, kind := range []string{"", "CloudProfile", "NamespacedCloudProfile", "Foo"} {
					result = append(result, map[string]any{"spec.cloudProfile": jsonMap{"kind": kind, "name": "x"}})
				}
			}
		}
	}
	return slices.DeleteFunc(result, func(m map[string]any) bool { return len(m) == 0 })
}

func filled(set func(string, any) map[string]any, words []string, namespace, name string) map[string]any {
	all := map[string]any{}
	if path, is := strings.CutPrefix(words[2], "."); is {
		maps.Copy(all, set(path, namespace))
	}
	if path, is := strings.CutPrefix(words[3], "."); is {
		maps.Copy(all, set(path, name))
	}
	return all
}

func nested(path string, value any) any {
	key, rest, more := strings.Cut(path, ".")
	if more {
		value = nested(rest, value)
	}
	return jsonMap{key: value}
}

// smallGarden is a small world with the vertices of its chain.
type smallGarden struct {
	objects []present
	chain   []string
}

// gardens are the bases with each chain.
func (s small) gardens() (result []smallGarden) {
	singles := s.singles()
	ending := map[string][][2]int{} // singles and their edges by the vertex at the end
	for i := range singles {
		for j, e := range singles[i].edges {
			ending[e[1]] = append(ending[e[1]], [2]int{i, j})
		}
	}
	for _, base := range s.bases() {
		result = append(result, smallGarden{objects: base})
		var extend func(chain []single, vertices []string)
		extend = func(chain []single, vertices []string) {
			for _, at := range ending[vertices[len(vertices)-1]] {
				next, start := singles[at[0]], singles[at[0]].edges[at[1]][0]
				if slices.Contains(vertices, start) {
					continue
				}
				longer, on := append(slices.Clone(chain), next), append(slices.Clone(vertices), start)
				if same := slices.IndexFunc(chain, func(c single) bool { return c.owner == next.owner }); same >= 0 { // One object with both references.
					longer = slices.Delete(longer, same, same+1)
					both := relation.WatchOf(next.kind).New()
					mustJSON(merge(jsonOf(chain[same].object), jsonOf(next.object)), both)
					longer[len(longer)-1].object = both
				}
				objects := slices.DeleteFunc(slices.Clone(base), func(o present) bool {
					return slices.ContainsFunc(longer, func(c single) bool { return c.owner == ownerOf(o) })
				})
				for _, c := range longer {
					objects = append(objects, c.present)
				}
				result = append(result, smallGarden{objects, on})
				if len(on) <= 3 {
					extend(longer, on)
				}
			}
		}
		for _, sink := range []string{"Seed:a", "Seed:child", "Shoot:garden-n/t", "Shoot:garden/child"} {
			extend(nil, []string{sink})
		}
	}
	return result
}

func ownerOf(o present) string {
	return relation.Schema.String(relation.WatchOf(o.kind).Owner(o.object))
}

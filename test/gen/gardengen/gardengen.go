// Package gardengen draws objects of the garden at random, for properties: every field of the slices has a value from a small pool, so that
// objects meet each other often. A generator with the same seed draws the same objects.
package gardengen

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	gardencorev1beta1 "github.com/espalier-project/espalier/internal/externalapi/core/v1beta1"
	gardenletv1alpha1 "github.com/espalier-project/espalier/internal/externalapi/gardenlet/v1alpha1"
	"github.com/espalier-project/espalier/internal/externalapi/partialmeta"
	"github.com/espalier-project/espalier/internal/externalapi/wellknown"
	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/test/gen/builders"
)

// Now is the time in drawn gardens; certificates expire an hour before or after it.
var Now = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// The pools. Seeds and the self-hosted shoots garden-n/s and garden/child have clients.
var (
	Seeds      = []string{"a", "b", "child"}
	Namespaces = []string{wellknown.Garden, "garden-n", "n"}
	Names      = []string{"s", "t", "x", "child", "a"}
	references = []partialmeta.Reference{
		{APIVersion: "v1", Kind: "Secret"}, {APIVersion: "v1", Kind: "Secret"}, {APIVersion: "v1", Kind: "ConfigMap"},
		{APIVersion: "security.gardener.cloud/v1alpha1", Kind: "WorkloadIdentity"}, {APIVersion: "core.gardener.cloud/v1beta1", Kind: "InternalSecret"},
		{APIVersion: "core.gardener.cloud/v1beta1", Kind: "Shoot"}, {APIVersion: "v2", Kind: "Secret"}, {},
	}
)

// Gen draws.
type Gen struct{ *rand.Rand }

// New returns a generator.
func New(seed uint64) Gen { return Gen{rand.New(rand.NewPCG(seed, 1))} } //nolint:gosec // For tests.

// One draws one of several.
func One[T any](g Gen, of []T) T { return of[g.IntN(len(of))] }

// clusterScoped are the watched kinds without a namespace.
var clusterScoped = map[graph.Kind]bool{
	relation.BackupBucket: true, relation.CertificateSigningRequest: true, relation.ControllerDeployment: true, relation.ControllerInstallation: true, relation.Project: true, relation.Seed: true,
}

// NamesOf are the names that objects of a kind have.
func NamesOf(kind graph.Kind) []string {
	switch kind {
	case relation.Seed:
		return Seeds
	case relation.Gardenlet:
		return append([]string{wellknown.SelfHostedShootPrefix + "s"}, Seeds...)
	case relation.ManagedSeed:
		return []string{"child", "b"}
	case relation.ServiceAccount:
		return []string{wellknown.BootstrapServiceAccount + "child", wellknown.ExtensionOfShootPrefix + "s--e", "x"}
	case relation.BackupEntry:
		return []string{"x", "source-x"}
	}
	return Names
}

// Object draws an object of a watched kind.
func (g Gen) Object(kind graph.Kind) runtime.Object {
	namespace := ""
	if !clusterScoped[kind] {
		namespace = One(g, Namespaces)
	}
	return g.ObjectNamed(kind, namespace, One(g, NamesOf(kind)))
}

// ObjectNamed draws an object with a name.
func (g Gen) ObjectNamed(kind graph.Kind, namespace, name string) runtime.Object {
	object := relation.WatchOf(kind).New()
	switch typed := object.(type) {
	case *certificatesv1.CertificateSigningRequest:
		typed.Name = name
		typed.Spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment}[:3-g.IntN(8)/7]
		typed.Spec.Request = One(g, requests())
	case *corev1.ServiceAccount:
		typed.Namespace, typed.Name, typed.UID = namespace, name, types.UID(One(g, []string{"u", "v"}))
		for range g.IntN(3) {
			typed.Secrets = append(typed.Secrets, corev1.ObjectReference{Name: One(g, Names)})
		}
	default:
		g.fill(reflect.ValueOf(object).Elem(), "")
		metadata := reflect.ValueOf(object).Elem().FieldByName("Object").Addr().Interface().(*partialmeta.Object)
		if bucket, is := object.(*gardencorev1beta1.BackupBucket); is && g.IntN(2) == 0 {
			bucket.Status.GeneratedSecretRef = &partialmeta.SecretReference{Namespace: wellknown.Garden, Name: wellknown.GeneratedBucketPrefix + name}
		}
		*metadata = partialmeta.Object{Namespace: namespace, Name: name, UID: types.UID(One(g, []string{"u", "v", "x"})), Annotations: g.annotations(), OwnerReferences: g.owners()}
	}
	return object
}

func (g Gen) annotations() map[string]string {
	return One(g, []map[string]string{nil, nil, {wellknown.Operation: wellknown.RenewKubeconfig}, {wellknown.Issuer: wellknown.ManagedIssuer}})
}

func (g Gen) owners() (owners []metav1.OwnerReference) {
	for range g.IntN(3) {
		owners = append(owners, metav1.OwnerReference{Kind: One(g, []string{"Shoot", "Shoot", "Foo"}), Name: One(g, Names)})
	}
	return owners
}

// special draws values of types that need more than a text for each field.
func (g Gen) special(t reflect.Type) (any, bool) {
	switch t {
	case reflect.TypeFor[partialmeta.Object]():
		return partialmeta.Object{}, true
	case reflect.TypeFor[metav1.TypeMeta]():
		return metav1.TypeMeta{}, true
	case reflect.TypeFor[metav1.Time]():
		return metav1.NewTime(Now.Add(time.Duration(One(g, []int{-1, 1})) * time.Hour)), true
	case reflect.TypeFor[partialmeta.Reference]():
		r := One(g, references)
		r.Namespace, r.Name = One(g, Namespaces), One(g, Names)
		return r, true
	case reflect.TypeFor[runtime.RawExtension]():
		return runtime.RawExtension{Raw: g.config()}, true
	}
	return nil, false
}

func (g Gen) config() []byte {
	if g.IntN(8) == 0 {
		return []byte(One(g, []string{"{}", "[]", `{"apiVersion":"gardenlet.config.gardener.cloud/v1alpha1","kind":"Foo"}`}))
	}
	c := gardenletv1alpha1.Configuration{}
	g.fill(reflect.ValueOf(&c).Elem(), "")
	c.APIVersion, c.Kind = "gardenlet.config.gardener.cloud/v1alpha1", "GardenletConfiguration"
	raw, err := json.Marshal(c)
	if err != nil {
		panic(err) // It was just made.
	}
	return raw
}

// fill draws a value of any type; field is the name of the field that it is for.
func (g Gen) fill(v reflect.Value, field string) {
	if drawn, is := g.special(v.Type()); is {
		v.Set(reflect.ValueOf(drawn))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if g.IntN(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			g.fill(v.Elem(), field)
		}
	case reflect.Slice:
		for range g.IntN(3) {
			element := reflect.New(v.Type().Elem()).Elem()
			g.fill(element, field)
			v.Set(reflect.Append(v, element))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			g.fill(v.Field(i), v.Type().Field(i).Name)
		}
	case reflect.String:
		v.SetString(g.text(field))
	case reflect.Bool:
		v.SetBool(g.IntN(2) == 0)
	default:
		panic(fmt.Sprintf("no value of %s is drawn", v.Type()))
	}
}

func (g Gen) text(field string) string {
	switch field {
	case "Namespace":
		return One(g, Namespaces)
	case "SeedName", "SeedRef":
		return One(g, Seeds)
	case "Kind":
		return One(g, []string{"", "CloudProfile", "NamespacedCloudProfile", "Foo"})
	case "Bootstrap":
		return One(g, []string{"BootstrapToken", "ServiceAccount", "None"})
	case "Type":
		return One(g, []string{"Restore", "Create"})
	case "State":
		return One(g, []string{"Processing", "Succeeded"})
	}
	return One(g, Names)
}

// requests are for clients of seeds and shoots, and for nobody.
var requests = sync.OnceValue(func() [][]byte {
	result := [][]byte{[]byte("nonsense")}
	for _, of := range [][2]string{
		{wellknown.SeedUserPrefix + "a", wellknown.SeedsGroup}, {wellknown.SeedUserPrefix + "b", wellknown.SeedsGroup}, {wellknown.SeedUserPrefix + "child", "other"},
		{wellknown.ShootUserPrefix + "garden-n:s", wellknown.ShootsGroup}, {wellknown.ShootUserPrefix + "n:t", wellknown.ShootsGroup},
	} {
		result = append(result, builders.Request(&x509.CertificateRequest{Subject: pkix.Name{CommonName: of[0], Organization: of[1:]}}))
	}
	return result
})

// Universe returns vertices of all kinds that drawn objects have or name.
func Universe() []graph.Vertex {
	var result []graph.Vertex
	for kind := range relation.Schema.Names {
		kind := graph.Kind(kind)
		all := append([]string{}, Names...)
		if relation.WatchOf(kind) != nil {
			all = NamesOf(kind)
		}
		switch kind {
		case relation.Namespace:
			all = append(append([]string{}, Namespaces...), "seed-a", "seed-b")
		case relation.Secret:
			for _, owner := range []string{"garden/a", "garden/child", "garden-n/b", "garden/b", "n/child"} {
				namespace, name, _ := strings.Cut(owner, "/")
				result = append(result, graph.Vertex{Kind: kind, Namespace: wellknown.KubeSystem, Name: wellknown.BootstrapTokenSecret(namespace, name)})
			}
			for _, project := range []string{"p", "q"} {
				for _, uid := range []string{"u", "v", "x"} {
					result = append(result, graph.Vertex{Kind: kind, Namespace: wellknown.ShootIssuer, Name: project + "--" + uid})
				}
			}
			for _, bucket := range Names {
				result = append(result, graph.Vertex{Kind: kind, Namespace: wellknown.Garden, Name: wellknown.GeneratedBucketPrefix + bucket})
			}
			for _, suffix := range wellknown.ShootSecrets {
				all = append(all, "s"+suffix, "t"+suffix)
			}
		case relation.ConfigMap:
			result = append(result, graph.Vertex{Kind: kind, Namespace: wellknown.KubeSystem, Name: wellknown.ClusterIdentity})
			all = append(all, "s.ca-cluster", "t.ca-kubelet")
		case relation.InternalSecret:
			all = append(all, "s.ca-client")
		case relation.Lease:
			for _, seed := range Seeds {
				result = append(result, graph.Vertex{Kind: kind, Namespace: wellknown.SeedLease, Name: seed})
			}
			all = append(all, wellknown.SelfHostedShootPrefix+"s")
		case relation.ClusterRoleBinding:
			all = append(all, wellknown.Bootstrapper(wellknown.Garden, "child"), wellknown.Bootstrapper("n", "child"))
		case relation.ServiceAccount:
			all = append(append([]string{}, all...), wellknown.BootstrapServiceAccount+"b")
		}
		for _, name := range all {
			if IsClusterScoped(kind) {
				result = append(result, graph.Vertex{Kind: kind, Name: name})
				continue
			}
			for _, namespace := range Namespaces {
				result = append(result, graph.Vertex{Kind: kind, Namespace: namespace, Name: name})
			}
		}
	}
	return result
}

// IsClusterScoped reports whether objects of a kind have no namespace.
func IsClusterScoped(kind graph.Kind) bool {
	switch kind {
	case relation.CloudProfile, relation.ExposureClass, relation.ControllerRegistration, relation.ClusterRoleBinding, relation.Namespace:
		return true
	}
	return clusterScoped[kind]
}

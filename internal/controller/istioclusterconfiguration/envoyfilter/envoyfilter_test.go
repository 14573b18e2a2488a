package envoyfilter

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/internal/externalapi/istio"
	"github.com/espalier-project/espalier/internal/externalapi/partialmeta"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

func space(name string, labels ...string) *corev1.Namespace {
	o := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid of " + name), Labels: map[string]string{}}}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		o.Labels[key] = value
	}
	return o
}

func svc(namespace, name, exportTo string, ports ...corev1.ServicePort) *corev1.Service {
	o := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.ServiceSpec{Ports: ports}}
	if exportTo != "absent" {
		o.Annotations = map[string]string{AnnotationExportTo: exportTo}
	}
	return o
}

func rule(t testing.TB, spec string) *Rule {
	o := &istio.DestinationRule{Object: partialmeta.Object{Namespace: "a", Name: "r"}}
	must.Succeed(t, yaml.UnmarshalStrict([]byte(spec), &o.Spec))
	return RuleOf(o)
}

func complete(x *Index) *Index {
	for _, kind := range kinds {
		x.Complete(kind)
	}
	return x
}

// world has a source namespace a and two ingress namespaces.
func world() *Index {
	x := complete(NewIndex(nil))
	x.SetNamespace(space("a"))
	x.SetNamespace(space("in1", "gardener.cloud/role=istio-ingress"))
	x.SetNamespace(space("in2", "handler.exposureclass.gardener.cloud/name=internet"))
	x.SetNamespace(space("other", "gardener.cloud/role=shoot"))
	return x
}

// modes returns the patches of a filter as "cluster name mode", sorted as they are.
func modes(o *unstructured.Unstructured) []string {
	var all []string
	patches, _, _ := unstructured.NestedSlice(jsonOf(o), "spec", "configPatches")
	for _, each := range patches {
		p := each.(map[string]any)
		name, _, _ := unstructured.NestedString(p, "match", "cluster", "name")
		options, _, _ := unstructured.NestedMap(p, "patch", "value", "typed_extension_protocol_options", optionsType)
		mode := "plain"
		if options["explicit_http_config"] != nil {
			mode = "explicit"
		}
		if options["use_downstream_protocol_config"] != nil {
			mode = "downstream"
		}
		all = append(all, name+" "+mode)
	}
	return all
}

func jsonOf(o *unstructured.Unstructured) map[string]any {
	content, err := json.Marshal(o.Object)
	if err != nil {
		panic(err)
	}
	var decoded map[string]any
	if err := json.Unmarshal(content, &decoded); err != nil {
		panic(err)
	}
	return decoded
}

// TestFilter: the EnvoyFilter, to the character.
func TestFilter(t *testing.T) {
	x := world()
	x.SetService(svc("a", "web", "*", corev1.ServicePort{Name: "https-main", Port: 443}, corev1.ServicePort{Name: "grpc-main", Port: 80}))
	x.SetRule(rule(t, "{host: web, exportTo: [in1]}"))
	d := x.Decide("a")
	must.Equal(t, len(d.Write), 1, "got %v", d)
	want := map[string]any{}
	must.Succeed(t, yaml.Unmarshal([]byte(`
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata:
  name: a-cluster-configuration
  namespace: in1
  labels: {resources.gardener.cloud/managed-by: istio-cluster-configuration}
  ownerReferences:
  - {apiVersion: v1, kind: Namespace, name: a, uid: uid of a, controller: true, blockOwnerDeletion: true}
spec:
  configPatches:
  - applyTo: CLUSTER
    match: {context: GATEWAY, cluster: {name: outbound|443||web.a.svc.cluster.local}}
    patch: {operation: MERGE, value: {per_connection_buffer_limit_bytes: 32768}}
  - applyTo: CLUSTER
    match: {context: GATEWAY, cluster: {name: outbound|80||web.a.svc.cluster.local}}
    patch:
      operation: MERGE
      value:
        per_connection_buffer_limit_bytes: 32768
        typed_extension_protocol_options:
          envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
            "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
            common_http_protocol_options: {max_connection_duration: 86400s}
            explicit_http_config:
              http2_protocol_options: {initial_stream_window_size: 65536, initial_connection_window_size: 1048576}
`), &want))
	expect.DeepEqual(t, jsonOf(d.Write[0]), want, "ICC-9/ICC-10")
}

// ICC-8: how gateways speak to a port.
func TestModes(t *testing.T) {
	h2c, http := "kubernetes.io/h2c", "http"
	const upgrade, client = "connectionPool: {http: {h2UpgradePolicy: UPGRADE}}", "connectionPool: {http: {useClientProtocol: true}}"
	for name, tc := range map[string]struct {
		port   corev1.ServicePort
		policy string
		want   string
	}{
		"ICC-8/https-main":                         {corev1.ServicePort{Name: "https-main"}, "{}", "plain"},
		"ICC-8/no name":                            {corev1.ServicePort{}, "{}", "plain"},
		"ICC-8/grpc-main":                          {corev1.ServicePort{Name: "grpc-main"}, "{}", "explicit"},
		"ICC-8/grpc-web-x":                         {corev1.ServicePort{Name: "grpc-web-x"}, "{}", "explicit"},
		"ICC-8/http2-x":                            {corev1.ServicePort{Name: "http2-x"}, "{}", "explicit"},
		"ICC-8/HTTP2":                              {corev1.ServicePort{Name: "HTTP2"}, "{}", "explicit"},
		"ICC-8/grpcs is another name":              {corev1.ServicePort{Name: "grpcs"}, "{}", "plain"},
		"ICC-8/appProtocol":                        {corev1.ServicePort{AppProtocol: &h2c}, "{}", "explicit"},
		"ICC-8/appProtocol beats the name":         {corev1.ServicePort{Name: "grpc-main", AppProtocol: &http}, "{}", "plain"},
		"ICC-8/UPGRADE":                            {corev1.ServicePort{Name: "https"}, "{" + upgrade + "}", "explicit"},
		"ICC-8/DO_NOT_UPGRADE":                     {corev1.ServicePort{Name: "grpc"}, "{connectionPool: {http: {h2UpgradePolicy: DO_NOT_UPGRADE}}}", "explicit"},
		"ICC-8/useClientProtocol":                  {corev1.ServicePort{Name: "https"}, "{" + client + "}", "downstream"},
		"ICC-8/useClientProtocol wins":             {corev1.ServicePort{Name: "https"}, "{connectionPool: {http: {useClientProtocol: true, h2UpgradePolicy: UPGRADE}}}", "downstream"},
		"ICC-8/the port's settings win":            {corev1.ServicePort{Name: "https"}, "{" + client + ", portLevelSettings: [{port: {number: 443}, " + upgrade + "}]}", "explicit"},
		"ICC-8/another port's settings":            {corev1.ServicePort{Name: "https"}, "{" + client + ", portLevelSettings: [{port: {number: 80}, " + upgrade + "}]}", "downstream"},
		"ICC-8/a port's settings that say nothing": {corev1.ServicePort{Name: "https"}, "{" + upgrade + ", portLevelSettings: [{port: {number: 443}}]}", "explicit"},
	} {
		t.Run(name, func(t *testing.T) {
			x := world()
			tc.port.Port = 443
			x.SetService(svc("a", "web", "*", tc.port))
			x.SetRule(rule(t, "{host: web, exportTo: ['*'], trafficPolicy: "+tc.policy+"}"))
			d := x.Decide("a")
			must.Equal(t, len(d.Write), 2, "ICC-2: got %v", d)
			expect.DeepEqual(t, modes(d.Write[0]), []string{"outbound|443||web.a.svc.cluster.local " + tc.want})
		})
	}
}

// TestWhere: which rules count, and where.
func TestWhere(t *testing.T) {
	both := []string{"in1", "in2"}
	for name, tc := range map[string]struct {
		rule, service string
		want          []string
	}{
		"ICC-6/all":                          {"{host: web, exportTo: ['*']}", "*", both},
		"ICC-6/by name":                      {"{host: web, exportTo: [in2, other]}", "*", both[1:]},
		"ICC-6/the own one is none":          {"{host: web, exportTo: [.]}", "*", nil},
		"ICC-6/empty":                        {"{host: web}", "*", nil},
		"ICC-6/none at all":                  {"{host: web, exportTo: ['*', '~']}", "*", nil},
		"ICC-6/Service, absent":              {"{host: web, exportTo: ['*']}", "absent", nil},
		"ICC-6/Service, none":                {"{host: web, exportTo: ['*']}", "~", nil},
		"ICC-6/Service, list with spaces":    {"{host: web, exportTo: ['*']}", " other , in1 ", both[:1]},
		"ICC-6/Service, disjoint":            {"{host: web, exportTo: [in1]}", "in2", nil},
		"ICC-5/long name":                    {"{host: web.a.svc.cluster.local, exportTo: ['*']}", "*", both},
		"ICC-5/another namespace's Service":  {"{host: web.b.svc.cluster.local, exportTo: ['*']}", "*", nil},
		"ICC-5/external host":                {"{host: web.example.com, exportTo: ['*']}", "*", nil},
		"ICC-5/name and namespace":           {"{host: web.a, exportTo: ['*']}", "*", nil},
		"ICC-5/name, namespace and svc":      {"{host: web.a.svc, exportTo: ['*']}", "*", nil},
		"ICC-5/subsets":                      {"{host: web, exportTo: ['*'], subsets: [{name: v1}]}", "*", nil},
		"ICC-5/workload selector":            {"{host: web, exportTo: ['*'], workloadSelector: {}}", "*", nil},
		"ICC-5/no such Service":              {"{host: nothing, exportTo: ['*']}", "*", nil},
		"ICC-5/a host that is the domain":    {"{host: .svc.cluster.local, exportTo: ['*']}", "*", nil},
		"ICC-5/a name in a name, and domain": {"{host: x.web.a.svc.cluster.local, exportTo: ['*']}", "*", nil},
	} {
		t.Run(name, func(t *testing.T) {
			x := world()
			x.SetService(svc("a", "web", tc.service, corev1.ServicePort{Port: 80}))
			x.SetRule(rule(t, tc.rule))
			var got []string
			for _, o := range x.Decide("a").Write {
				got = append(got, o.GetNamespace())
			}
			expect.DeepEqual(t, got, tc.want)
		})
	}
	own := world()
	own.SetNamespace(space("a", "gardener.cloud/role=istio-ingress"))
	own.SetService(svc("a", "web", ".", corev1.ServicePort{Port: 80}))
	own.SetRule(rule(t, "{host: web, exportTo: [.]}"))
	d := own.Decide("a")
	expect.True(t, len(d.Write) == 1 && d.Write[0].GetNamespace() == "a", "ICC-6/the own one is one: got %v", d)
	bare := world()
	bare.SetService(svc("a", "web", "*"))
	bare.SetRule(rule(t, "{host: web, exportTo: ['*']}"))
	expect.Empty(t, bare.Decide("a").Write, "ICC-7/a Service without ports")
}

// apply makes the cluster what is decided, and says how much that was.
func apply(x *Index, source string) (writes int) {
	d := x.Decide(source)
	for _, o := range d.Write {
		x.SetFilter(stored(o))
	}
	for _, e := range d.Delete {
		x.Remove(Filters, e.Namespace, e.Name)
	}
	return len(d.Write) + len(d.Delete)
}

func stored(o *unstructured.Unstructured) *istio.EnvoyFilter {
	spec, err := json.Marshal(o.Object["spec"])
	if err != nil {
		panic(err)
	}
	return &istio.EnvoyFilter{Object: partialmeta.Object{Namespace: o.GetNamespace(), Name: o.GetName(), Labels: o.GetLabels(), OwnerReferences: o.GetOwnerReferences()}, Spec: runtime.RawExtension{Raw: spec}}
}

func (x *Index) where(source string) []string {
	return slices.Sorted(maps.Keys(x.filters[source]))
}

// ICC-3, ICC-4, ICC-10 and "Where to be better": what changes, and what goes.
func TestChanges(t *testing.T) {
	x := world()
	ports := []corev1.ServicePort{{Name: "b", Port: 90}, {Name: "a", Port: 80}}
	x.SetService(svc("a", "web", "*", ports...))
	x.SetRule(rule(t, "{host: web, exportTo: ['*']}"))
	apply(x, "a")
	if got := x.where("a"); !slices.Equal(got, []string{"in1", "in2"}) {
		t.Fatalf("got %v", got)
	}
	expect.Equal(t, apply(x, "a"), 0, "ICC-10: a second look writes")
	if changed := x.SetService(svc("a", "web", "*", ports[1], ports[0])); !slices.Equal(changed, []string{"a"}) || apply(x, "a") > 0 {
		t.Error("ICC-7: patches are sorted, so that the order of ports is none of theirs")
	}
	for what, changed := range map[string][]string{
		"ICC-3/ports":              x.SetService(svc("a", "web", "*", ports[0])),
		"ICC-3/exportTo":           x.SetService(svc("a", "web", "in1", ports[0])),
		"ICC-3/DestinationRule":    x.SetRule(rule(t, "{host: web, exportTo: [in1, in3]}")),
		"ICC-3/Service gone":       x.Remove(Services, "a", "web"),
		"ICC-3/ingress namespace":  x.SetNamespace(space("in3", "gardener.cloud/role=istio-ingress")),
		"ICC-3/not one any more":   x.SetNamespace(space("in3")),
		"ICC-3/EnvoyFilter edited": x.SetFilter(&istio.EnvoyFilter{Object: stored(filter("a", "uid of a", "in1", nil)).Object, Spec: runtime.RawExtension{Raw: []byte(`{}`)}}),
	} {
		expect.True(t, slices.Contains(changed, "a"), "%s: concerns %v", what, changed)
	}
	changed := x.SetNamespace(space("in4", "gardener.cloud/role=istio-ingress"))
	expect.False(t, slices.Contains(changed, "a"), "ICC-3/an ingress namespace that no rule of a names: %v", changed)
	if changed := x.SetNamespace(space("in3", "some=label")); slices.Contains(changed, "a") {
		t.Errorf("ICC-3/a label that does not count: %v", changed)
	}
	apply(x, "a")
	expect.Empty(t, x.where("a"), "ICC-10/no patches, no filter")

	x = world()
	x.SetService(svc("a", "web", "*", ports...))
	x.SetRule(rule(t, "{host: web, exportTo: ['*']}"))
	x.SetNamespace(space("in3", "gardener.cloud/role=istio-ingress"))
	apply(x, "a")
	got := x.where("a")
	expect.True(t, slices.Contains(got, "in3"), "ICC-3/new ingress namespace: %v", got)
	x.SetNamespace(space("in3"))
	apply(x, "a")
	if got := x.where("a"); slices.Contains(got, "in3") {
		t.Errorf("not an ingress namespace any more: %v", got)
	}
	x.SetRule(&Rule{NamespacedName: types.NamespacedName{Namespace: "a", Name: "r"}, Unreadable: true})
	expect.Equal(t, apply(x, "a"), 0, "ICC-5: something is done because a rule cannot be read")
	x.Remove(Rules, "a", "r")
	apply(x, "a")
	expect.Empty(t, x.where("a"), "ICC-10/last DestinationRule deleted")
	x.SetRule(rule(t, "{host: web, exportTo: ['*']}"))
	apply(x, "a")
	x.Remove(Namespaces, "", "a")
	expect.Equal(t, apply(x, "a"), 0, "ICC-4: the source namespace is gone, and what it had goes with it")
}

// ICC-10: what is not ours is left alone, and nothing is decided before all is known.
func TestOwnership(t *testing.T) {
	x := world()
	foreign := stored(filter("a", "uid of a", "in1", nil))
	foreign.OwnerReferences = nil
	x.SetFilter(foreign)
	other := stored(filter("a", "uid of a", "in1", nil))
	other.Name = "mine"
	x.SetFilter(other)
	expect.Empty(t, x.Decide("a").Delete)
	y := NewIndex(nil)
	y.SetNamespace(space("a"))
	y.SetNamespace(space("in1", "gardener.cloud/role=istio-ingress"))
	y.SetFilter(stored(filter("a", "uid of a", "in1", nil)))
	for _, kind := range kinds[:3] {
		y.Complete(kind)
		expect.Empty(t, y.Decide("a").Delete, "ICC-1: deleted after %s only", kind)
	}
	changed := y.Complete(kinds[3])
	expect.True(t, slices.Equal(changed, []string{"a"}) && len(y.Decide("a").Delete) == 1, "ICC-10: got %v", changed)
	y.Forget()
	expect.True(t, len(y.Decide("a").Delete) == 0 && len(y.Complete(Services)) == 0,
		"ICC-1: something is decided without the kinds")
	watched := complete(NewIndex([]string{"a"}))
	watched.SetNamespace(space("a"))
	watched.SetNamespace(space("in1", "gardener.cloud/role=istio-ingress"))
	watched.SetService(svc("a", "web", "*", corev1.ServicePort{Port: 1}))
	watched.SetRule(rule(t, "{host: web, exportTo: ['*']}"))
	expect.Empty(t, watched.Decide("a").Write, "COM-3: written where nobody looks")
}

// Property: what is decided does not depend on the order of events, nor on what was there before.
func TestPropertyFunctionOfInputs(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		x := world()
		rules, services := map[string]*Rule{}, map[string]*corev1.Service{}
		for range rapid.IntRange(1, 30).Draw(rt, "changes") {
			name := rapid.SampledFrom([]string{"x", "y"}).Draw(rt, "name")
			switch rapid.IntRange(0, 3).Draw(rt, "change") {
			case 0:
				r := rule(t, fmt.Sprintf("{host: %s, exportTo: ['%s']}", rapid.SampledFrom([]string{"x", "y", "z"}).Draw(rt, "host"), rapid.SampledFrom([]string{"*", "in1", "~", "."}).Draw(rt, "exportTo")))
				r.Name, rules[name] = name, r
				x.SetRule(r)
			case 1:
				delete(rules, name)
				x.Remove(Rules, "a", name)
			case 2:
				services[name] = svc("a", name, rapid.SampledFrom([]string{"*", "in2", "absent"}).Draw(rt, "service"), corev1.ServicePort{Port: rapid.Int32Range(1, 3).Draw(rt, "port")})
				x.SetService(services[name])
			case 3:
				delete(services, name)
				x.Remove(Services, "a", name)
			}
			if rapid.Bool().Draw(rt, "apply") {
				apply(x, "a")
			}
		}
		apply(x, "a")
		fresh := world()
		for _, name := range slices.Backward(slices.Sorted(maps.Keys(services))) {
			fresh.SetService(services[name])
		}
		for _, name := range slices.Backward(slices.Sorted(maps.Keys(rules))) {
			fresh.SetRule(rules[name])
		}
		apply(fresh, "a")
		expect.DeepEqual(rt, x.where("a"), fresh.where("a"))
		for namespace, e := range x.filters["a"] {
			expect.Equal(rt, e.digest, fresh.filters["a"][namespace].digest,
				"the filter in %s depends on the past", namespace)
		}
		expect.Equal(rt, apply(x, "a"), 0, "something is left to do")
	})
}

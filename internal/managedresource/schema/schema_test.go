package schema

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	fields := map[string]any{}
	must.Succeed(t, yaml.Unmarshal([]byte(text), &fields))
	return integers(fields).(map[string]any)
}

// integers makes whole numbers integers, as they are in what is read from an API server.
func integers(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, item := range value {
			value[name] = integers(item)
		}
	case []any:
		for i, item := range value {
			value[i] = integers(item)
		}
	case float64:
		if value == float64(int64(value)) {
			return int64(value)
		}
	}
	return value
}

// Each pair is compared in both directions: drift and a change of the manifest are the same question.
func TestDiffer(t *testing.T) {
	const (
		policy  = "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nspec: {podSelector: {}, policyTypes: [Ingress], ingress: [{from: [{podSelector: {matchLabels: {a: b}}%s}]}]}\n"
		claim   = "apiVersion: v1\nkind: PersistentVolumeClaim\nspec: {volumeMode: Filesystem, resources: {requests: {storage: %s}}}\n"
		crd     = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {versions: [{name: v1, %s}]}\n"
		custom  = "apiVersion: example.org/v1\nkind: X\nspec: %s\n"
		lease   = "apiVersion: coordination.k8s.io/v1\nkind: Lease\nspec: {acquireTime: %s}\n"
		device  = "apiVersion: resource.k8s.io/v1beta1\nkind: ResourceClaim\nspec: {devices: {requests: [{name: a, deviceClassName: x%s}]}}\n"
		podSpec = "apiVersion: apps/v1\nkind: Deployment\nspec: {template: {spec: {%s}}}\n"
	)
	binding := func(version string) string {
		return "apiVersion: admissionregistration.k8s.io/" + version + "\nkind: ValidatingAdmissionPolicyBinding\nspec: {policyName: p, paramRef: {name: x%s}}\n"
	}
	for name, tc := range map[string]struct {
		a, b string
		in   string
		want string
	}{
		"a pointer to an empty mapping is not none":            {"", ", namespaceSelector: {}", policy, "spec.ingress.[0].from.[0].namespaceSelector"},
		"a CRD's empty subresource is not none":                {"subresources: {scale: {specReplicasPath: .x}}", "subresources: {scale: {specReplicasPath: .x}, status: {}}", crd, "spec.versions.[v1].subresources.status"},
		"a schema's empty default is not none":                 {"schema: {openAPIV3Schema: {type: object}}", "schema: {openAPIV3Schema: {type: object, default: {}}}", crd, "spec.versions.[v1].schema.openAPIV3Schema.default"},
		"a schema contains itself":                             {"schema: {openAPIV3Schema: {properties: {a: {items: {properties: {b: {nullable: false}}}}}}}", "schema: {openAPIV3Schema: {properties: {a: {items: {properties: {b: {}}}}}}}", crd, ""},
		"additional properties, whether mapping or yes":        {"schema: {openAPIV3Schema: {additionalProperties: true}}", "schema: {openAPIV3Schema: {additionalProperties: {}}}", crd, "spec.versions.[v1].schema.openAPIV3Schema.additionalProperties"},
		"custom resources: {} is not none":                     {"{}", "{selfSigned: {}}", custom, "spec"},
		"custom resources: [] is not none":                     {"{}", "{list: []}", custom, "spec"},
		"custom resources: null is not none":                   {"{}", "{any: null}", custom, "spec"},
		"custom resources: no quantities":                      {"{limits: {cpu: '1'}}", "{limits: {cpu: 1000m}}", custom, "spec"},
		"custom resources: numbers by value":                   {"{a: 1}", "{a: 1.0}", custom, ""},
		"quantities":                                           {"1Gi", "1024Mi", claim, ""},
		"quantities as numbers":                                {"'1000'", "1000", claim, ""},
		"quantities, rounded up to thousandths":                {"1m", "'0.0001'", claim, ""},
		"quantities of another notation are stored as another": {"1Gi", "'1073741824'", claim, "spec.resources.requests.storage"},
		"an environment variable is no quantity":               {"containers: [{name: c, env: [{name: limits, value: '1.3'}]}]", "containers: [{name: c, env: [{name: limits, value: '1.30'}]}]", podSpec, "spec.template.spec.containers.[c].env.[limits].value"},
		"an argument is no quantity":                           {"containers: [{name: c, args: ['1000']}]", "containers: [{name: c, args: ['1k']}]", podSpec, "spec.template.spec.containers.[c].args.[0]"},
		"an empty variable is the same as one without value":   {"containers: [{name: c, env: [{name: a}]}]", "containers: [{name: c, env: [{name: a, value: ''}]}]", podSpec, ""},
		"a toleration's value is no quantity":                  {"tolerations: [{key: a, value: '1'}]", "tolerations: [{key: a, value: '1.0'}]", podSpec, "spec.template.spec.tolerations.[0].value"},
		"a toleration of no seconds is not one for ever":       {"tolerations: [{key: a}]", "tolerations: [{key: a, tolerationSeconds: 0}]", podSpec, "spec.template.spec.tolerations.[0].tolerationSeconds"},
		"a port's number is not its name":                      {"containers: [{name: c, livenessProbe: {httpGet: {port: 80}}}]", "containers: [{name: c, livenessProbe: {httpGet: {port: '80'}}}]", podSpec, "spec.template.spec.containers.[c].livenessProbe.httpGet.port"},
		"both names of a ServiceAccount":                       {"serviceAccountName: a, serviceAccount: a", "serviceAccount: a", podSpec, ""},
		"a volume without source is an empty directory":        {"volumes: [{name: v, emptyDir: {}}]", "volumes: [{name: v}]", podSpec, ""},
		"a volume with another source is not":                  {"volumes: [{name: v, emptyDir: {}, nfs: {server: s}}]", "volumes: [{name: v, nfs: {server: s}}]", podSpec, "spec.template.spec.volumes.[v].emptyDir"},
		"a target port without a name is the port":             {"", ", targetPort: ''", "apiVersion: v1\nkind: Service\nspec: {ports: [{port: 80%s}]}\n", ""},
		"a probe's port without a name is not":                 {"", "port: ''", "apiVersion: apps/v1\nkind: Deployment\nspec: {template: {spec: {containers: [{name: c, livenessProbe: {tcpSocket: {%s}}}]}}}\n", "spec.template.spec.containers.[c].livenessProbe.tcpSocket.port"},
		"only core rounds quantities":                          {"100n", "100u", "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nhandler: a\noverhead: {podFixed: {cpu: %s}}\n", "overhead.podFixed.cpu"},
		"other groups spell them anew":                         {"'1'", "1000m", "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nhandler: a\noverhead: {podFixed: {cpu: %s}}\n", ""},
		"times to the microsecond have a fraction":             {"'2026-01-01T00:00:00.000000Z'", "'2026-01-01T00:00:00Z'", lease, "spec.acquireTime"},
		"which may be of another zone":                         {"'2026-01-01T00:00:00.000000Z'", "'2026-01-01T01:00:00.000000+01:00'", lease, ""},
		"an empty text is no time":                             {"null", "''", "apiVersion: apps/v1\nkind: Deployment\nspec: {template: {metadata: {creationTimestamp: %s}}}\n", "spec.template.metadata.creationTimestamp"},
		"a request of a device":                                {"", ", allocationMode: ExactCount, count: 1", device, ""},
		"a request of more than one":                           {", count: 1", ", count: 2", device, "spec.devices.requests.[a].count"},
		"a request of one of many devices":                     {"", ", count: 1", "apiVersion: resource.k8s.io/v1beta1\nkind: ResourceClaim\nspec: {devices: {requests: [{name: a, firstAvailable: []%s}]}}\n", "spec.devices.requests.[a].count"},
		"a parameter that is not found":                        {"", ", parameterNotFoundAction: Deny", binding("v1alpha1"), ""},
		"a parameter that has to be named":                     {"", ", parameterNotFoundAction: Deny", binding("v1"), "spec.paramRef.parameterNotFoundAction"},
		"how Pods of a group are disrupted":                    {"", ", disruptionMode: {single: {}}", "apiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nspec: {a: b%s}\n", ""},
		"how groups are disrupted":                             {"", ", disruptionMode: {single: {}}", "apiVersion: scheduling.k8s.io/v1alpha3\nkind: CompositePodGroup\nspec: {a: b%s}\n", ""},
		"a field that is not known here":                       {"", "unheardOf: {}", podSpec, "spec.template.spec.unheardOf"},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := object(t, strings.Replace(tc.in, "%s", tc.a, 1)), object(t, strings.Replace(tc.in, "%s", tc.b, 1))
			gv, err := runtimeschema.ParseGroupVersion(a["apiVersion"].(string))
			must.Succeed(t, err)
			kind, _ := Of(gv.WithKind(a["kind"].(string)))
			for _, way := range []struct {
				name         string
				live, merged map[string]any
			}{{"drift", b, a}, {"change", a, b}} {
				expect.Equal(t, strings.Join(kind.Differ(way.live, way.merged), "."), tc.want, "%s: differs at", way.name)
			}
		})
	}
}

func TestDifferIgnoresManagedFieldsAndKnowsMetadataOfEveryKind(t *testing.T) {
	for _, apiVersion := range []string{"v1", "example.org/v1"} {
		a := object(t, "apiVersion: "+apiVersion+"\nkind: ConfigMap\nmetadata: {name: a, managedFields: [{manager: x}], labels: {}, creationTimestamp: '2026-01-01T00:00:00Z'}\n")
		b := object(t, "apiVersion: "+apiVersion+"\nkind: ConfigMap\nmetadata: {name: a, ownerReferences: [], annotations: null, creationTimestamp: '2026-01-01T01:00:00+01:00'}\n")
		gv, _ := runtimeschema.ParseGroupVersion(apiVersion)
		kind, _ := Of(gv.WithKind("ConfigMap"))
		path := kind.Differ(a, b)
		expect.True(t, path == nil, "%s: differs at %v", apiVersion, path)
	}
}

func TestDropEmpty(t *testing.T) {
	kind, _ := Of(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	got := object(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {labels: {}, annotations: {a: ''}, creationTimestamp: null}\ndata: {a: null, b: c}\nbinaryData: {a: null, b: YWJj}\nunknown: {}\n")
	kind.DropEmpty(got)
	want := object(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {annotations: {a: ''}}\ndata: {a: '', b: c}\nbinaryData: {a: '', b: YWJj}\nunknown: {}\n")
	expect.DeepEqual(t, got, want)
	kind, _ = Of(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	got = object(t, "kind: Deployment\nspec: {strategy: {}, template: {spec: {securityContext: {}, volumes: [{name: a, emptyDir: {}, nfs: null}]}}}\n")
	kind.DropEmpty(got)
	want = object(t, "kind: Deployment\nspec: {strategy: {}, template: {spec: {securityContext: {}, volumes: [{name: a, emptyDir: {}}]}}}\n")
	expect.DeepEqual(t, got, want)
}

// TestTypesOfEveryKind builds every kind that there is, and holds the tables of defaults to the types: a table that names a type
// or a field that does not exist says nothing.
func TestTypesOfEveryKind(t *testing.T) {
	named := map[string]map[string]bool{}
	for _, table := range tables {
		for name, fields := range table {
			for field := range fields {
				if named[name] == nil {
					named[name] = map[string]bool{}
				}
				named[name][field] = true
			}
		}
	}
	kinds := 0
	seen := map[reflect.Type]bool{}
	var visit func(reflect.Type)
	visit = func(goType reflect.Type) {
		switch goType.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			visit(goType.Elem())
			return
		case reflect.Struct:
		default:
			return
		}
		if seen[goType] {
			return
		}
		seen[goType] = true
		fills := defaultsOf(goType)
		for i := range goType.NumField() {
			field := goType.Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if fills[name] != nil {
				for _, entry := range entriesOf(goType) {
					delete(named[entry], name)
				}
			}
			visit(field.Type)
		}
	}
	all := scheme.Scheme.AllKnownTypes()
	for kind := range all {
		if _, own := Of(kind); own {
			goType, _ := goTypeOf(kind)
			visit(goType)
			kinds++
		}
	}
	for _, kind := range []runtimeschema.GroupVersionKind{
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, {Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"},
	} {
		goType, own := goTypeOf(kind)
		if !own {
			t.Errorf("%s is not known", kind)
			continue
		}
		visit(goType)
	}
	for name, fields := range named {
		for field := range fields {
			t.Errorf("%s has no field %s", name, field)
		}
	}
	expect.True(t, kinds >= 100, "only %d kinds are known", kinds)
}

// MRB-8: custom resources are known by their groups being none of Kubernetes' own, whatever these end with.
func TestIsCustom(t *testing.T) {
	for group, want := range map[string]bool{
		"example.org": true, "core.gardener.cloud": true, "monitoring.coreos.com": true,
		"gateway.networking.k8s.io": true, "autoscaling.k8s.io": true, "snapshot.storage.k8s.io": true, "policy.networking.k8s.io": true, "x-k8s.io": true,
		"": false, "apps": false, "batch": false, "policy": false, "extensions": false, "autoscaling": false, "networking.k8s.io": false, "storage.k8s.io": false, "rbac.authorization.k8s.io": false,
		"apiextensions.k8s.io": false, "apiregistration.k8s.io": false, "flowcontrol.apiserver.k8s.io": false, "internal.apiserver.k8s.io": false, "resource.k8s.io": false, "storagemigration.k8s.io": false,
	} {
		expect.Equal(t, IsCustom(group), want, "%q is custom", group)
	}
}

// TestDefaultsNamedInTheTypes holds the tables to the defaults that the types' own sources name.
func TestDefaultsNamedInTheTypes(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/api").Output()
	must.Succeed(t, err)
	var (
		structs = regexp.MustCompile(`(?ms)^type (\w+) struct \{\n(.*?)^\}`)
		marked  = regexp.MustCompile(`(?m)^\s*// ?\+default=(.*)\n(?:\s*//.*\n)*\s*\w+ .*json:"(\w+)`)
	)
	// A default that is the same as none needs no entry.
	zero := map[string]bool{`""`: true, "0": true, "false": true}
	found := 0
	sources, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "*", "v*", "types*.go"))
	must.Succeed(t, err)
	for _, file := range sources {
		source, err := os.ReadFile(file)
		must.Succeed(t, err)
		version := filepath.Base(filepath.Dir(file))
		group := filepath.Base(filepath.Dir(filepath.Dir(file)))
		for _, definition := range structs.FindAllStringSubmatch(string(source), -1) {
			for _, field := range marked.FindAllStringSubmatch(definition[2], -1) {
				found++
				name := group + "." + definition[1]
				entry := false
				for _, table := range tables {
					if _, has := table[name][field[2]]; has {
						entry = true
					}
				}
				if !entry && !zero[field[1]] {
					t.Errorf("%s.%s of %s has the default %s, and no entry", name, field[2], version, field[1])
				}
			}
		}
	}
	expect.True(t, found >= 15, "only %d defaults were found in the sources", found)
}

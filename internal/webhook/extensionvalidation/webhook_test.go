package extensionvalidation

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/internal/endpoint/admission/admissiontest"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

func webhookOf(t testing.TB, kind string) Webhook {
	t.Helper()
	i := slices.IndexFunc(Webhooks(), func(w Webhook) bool { return w.kind == kind })
	must.True(t, i >= 0, "there is no kind %s", kind)
	return Webhooks()[i]
}

// toJSON reads YAML, so that tests are read easily.
func toJSON(t testing.TB, text string) []byte {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	must.Succeed(t, err)
	return raw
}

// namespaceOf is the namespace that requests about a kind have.
func namespaceOf(kind string) string {
	if kind == "BackupBucket" || kind == "BackupEntry" {
		return ""
	}
	return "ns"
}

// ask asks about a creation or, with an old object, about an update.
func ask(t testing.TB, kind, now, old string) *admissionv1.AdmissionResponse {
	t.Helper()
	r := admissionv1.AdmissionRequest{Operation: admissionv1.Create, Namespace: namespaceOf(kind), Object: runtime.RawExtension{Raw: toJSON(t, now)}}
	if old != "" {
		r.Operation, r.OldObject.Raw = admissionv1.Update, toJSON(t, old)
	}
	return admissiontest.Respond(webhookOf(t, kind).Decide, r)
}

// causes are the fields and messages of a refusal.
func causes(t testing.TB, response *admissionv1.AdmissionResponse) []string {
	t.Helper()
	if response.Allowed {
		return nil
	}
	must.True(t, response.Result.Code == 422 && response.Result.Reason == metav1.StatusReasonInvalid,
		"code %d: %s", response.Result.Code, response.Result.Message)
	var all []string
	for _, c := range response.Result.Details.Causes {
		all = append(all, c.Field+": "+c.Message)
	}
	return all
}

// object is one of a kind with the given spec, in flow style.
func object(kind, spec string) string {
	namespace := ""
	if n := namespaceOf(kind); n != "" {
		namespace = ", namespace: " + n
	}
	return fmt.Sprintf("{metadata: {name: obj%s, resourceVersion: '1'}, spec: %s}", namespace, spec)
}

// valid is a spec of each kind that keeps all rules.
var valid = map[string]string{
	"BackupBucket":            `{type: p, region: r, secretRef: {name: s}}`,
	"BackupEntry":             `{type: p, bucketName: b, region: r, secretRef: {name: s}}`,
	"Bastion":                 `{type: p, userData: aGVsbG8=, ingress: [{ipBlock: {cidr: nonsense}}]}`,
	"ContainerRuntime":        `{type: p, binaryPath: /b, workerPool: {name: w}}`,
	"ControlPlane":            `{type: p, region: r, secretRef: {name: s}}`,
	"DNSRecord":               `{type: p, secretRef: {name: s}, name: a.example.com, recordType: A, values: [1.2.3.4]}`,
	"Etcd":                    `{backup: {store: {prefix: ns--x/obj, provider: aws}}, memberNamePrefix: a}`,
	"Extension":               `{type: p}`,
	"Infrastructure":          `{type: p, region: r, secretRef: {name: s}}`,
	"Network":                 `{type: p, podCIDR: 10.20.30.40/26, serviceCIDR: 10.30.40.50/26}`,
	"OperatingSystemConfig":   `{purpose: reconcile, units: [{name: u, dropIns: [{name: d, content: c}], filePaths: [/f]}], files: [{path: /f, content: {inline: {encoding: '', data: x}}}]}`,
	"SelfHostedShootExposure": `{type: p, port: 443, endpoints: [{nodeName: a, addresses: [{type: InternalIP, address: 10.0.0.1}]}]}`,
	"Worker":                  `{type: p, region: r, secretRef: {name: s}, pools: [{machineType: m, machineImage: {name: i, version: '1'}, name: w, architecture: arm64}]}`,
}

const isRequired = ": Required value: field is required"

// TestEachKind has the cases that hold for every kind.
func TestEachKind(t *testing.T) {
	empty := map[string][]string{ // A13.3, but for metadata
		"BackupBucket":            {"spec.type" + isRequired, "spec.region" + isRequired, "spec.secretRef.name" + isRequired},
		"BackupEntry":             {"spec.type" + isRequired, "spec.bucketName" + isRequired, "spec.region" + isRequired, "spec.secretRef.name" + isRequired},
		"Bastion":                 {"spec.type" + isRequired, "spec.userData" + isRequired, "spec.ingress" + isRequired},
		"ContainerRuntime":        {"spec.type" + isRequired, "spec.binaryPath" + isRequired, "spec.workerPool.name" + isRequired},
		"ControlPlane":            {"spec.type" + isRequired, "spec.region" + isRequired, "spec.secretRef.name" + isRequired},
		"Infrastructure":          {"spec.type" + isRequired, "spec.region" + isRequired, "spec.secretRef.name" + isRequired},
		"Worker":                  {"spec.type" + isRequired, "spec.region" + isRequired, "spec.secretRef.name" + isRequired},
		"DNSRecord":               {"spec.type" + isRequired, "spec.secretRef.name" + isRequired, "spec.name: Required value", `spec.recordType: Unsupported value: "": supported values: "A", "AAAA", "CNAME", "TXT"`, "spec.values" + isRequired},
		"Extension":               {"spec.type" + isRequired},
		"Network":                 {"spec.type" + isRequired, "spec.podCIDR" + isRequired, "spec.serviceCIDR" + isRequired},
		"OperatingSystemConfig":   {"spec.purpose" + isRequired},
		"SelfHostedShootExposure": {"spec.type" + isRequired, "spec.port: Invalid value: 0: must be between 1 and 65535, inclusive", "spec.endpoints" + isRequired},
		"Etcd":                    nil,
	}
	for _, w := range Webhooks() {
		t.Run(w.kind, func(t *testing.T) {
			want := append([]string{"metadata.name: Required value: name or generateName is required"}, empty[w.kind]...)
			if got := causes(t, ask(t, w.kind, "{}", "")); !cmp.Equal(got, want) {
				t.Errorf("EV-7: %s", cmp.Diff(want, got))
			}
			if namespaceOf(w.kind) != "" {
				response := admissiontest.Respond(w.Decide, admissionv1.AdmissionRequest{Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte("{}")}})
				if got := causes(t, response); len(got) < 2 || got[1] != "metadata.namespace: Required value" {
					t.Errorf("EV-2/EV-40: without a namespace: %q", got)
				}
			}
			good := object(w.kind, valid[w.kind])
			if got := ask(t, w.kind, good, ""); !got.Allowed {
				t.Errorf("%s: a valid one: %v", map[bool]string{true: "BH-XV-2", false: "BH-XV-1"}[w.kind == "Etcd"], got.Result)
			}
			if got := ask(t, w.kind, good, good); !got.Allowed || got.Result.Message != "" || got.Warnings != nil {
				t.Errorf("FV-3: a valid one, again: %v", got.Result)
			}
			for name, r := range map[string]admissionv1.AdmissionRequest{
				"an object that is none": {Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte("{]")}},
				"no old object":          {Operation: admissionv1.Update, Object: runtime.RawExtension{Raw: toJSON(t, good)}},
				"another kind":           {Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(`{"kind":"Pod","apiVersion":"v1"}`)}},
			} {
				got := admissiontest.Respond(w.Decide, r)
				expect.True(t, !got.Allowed && got.Result.Code == 400, "FV-2: %s: %v", name, got.Result)
			}
			got := admissiontest.Respond(w.Decide, admissionv1.AdmissionRequest{Operation: admissionv1.Delete, OldObject: runtime.RawExtension{Raw: []byte("{}")}})
			expect.True(t, got.Allowed, "FV-1: a deletion: %v", got.Result)
		})
	}
}

// TestImmutable: each field that must not change is told, all together, and every other field of the table may change (EV-6).
func TestImmutable(t *testing.T) {
	const stays = ": field is immutable"
	for kind, c := range map[string]struct {
		// changed has every field changed, and mutable those that may.
		changed string
		want    []string
		mutable string
	}{
		"BackupBucket":            {`{type: p2, region: r2, secretRef: {name: s2}}`, []string{`spec.type: Invalid value: "p2"` + stays, `spec.region: Invalid value: "r2"` + stays}, `{type: p, region: r, secretRef: {name: s2}, providerConfig: {a: 1}}`},
		"BackupEntry":             {`{type: p2, bucketName: b2, region: r2, secretRef: {name: s2}}`, []string{`spec.type: Invalid value: "p2"` + stays}, `{type: p, bucketName: b2, region: r2, secretRef: {name: s2}}`},
		"Bastion":                 {`{type: p2, userData: c2VjcmV0, ingress: [{}]}`, []string{`spec.type: Invalid value: "p2"` + stays, `spec.userData: Invalid value` + stays}, `{type: p, userData: aGVsbG8=, ingress: [{ipBlock: {cidr: 1.2.3.4/32}}]}`},
		"ContainerRuntime":        {`{type: p2, binaryPath: /b2, workerPool: {name: w2}}`, []string{`spec.type: Invalid value: "p2"` + stays, `spec.workerPool.name: Invalid value: "w2"` + stays}, `{type: p, binaryPath: /b2, workerPool: {name: w, selector: {}}}`},
		"ControlPlane":            {`{type: p2, region: r2, secretRef: {name: s2}}`, []string{`spec.type: Invalid value: "p2"` + stays, `spec.region: Invalid value: "r2"` + stays}, `{type: p, region: r, secretRef: {name: s2}}`},
		"DNSRecord":               {`{type: p2, secretRef: {name: s}, name: b.example.com, recordType: TXT, values: [x]}`, []string{`spec.type: Invalid value: "p2"` + stays, `spec.name: Invalid value: "b.example.com"` + stays, `spec.recordType: Invalid value: "TXT"` + stays}, `{type: p, secretRef: {name: s2}, region: r, zone: z, name: a.example.com, recordType: A, values: [1.2.3.5, 1.2.3.6], ttl: 3}`},
		"Etcd":                    {`{backup: {store: {prefix: ns--y/obj, provider: gcp}}, memberNamePrefix: b}`, []string{`spec.backup.store.prefix: Invalid value: "ns--y/obj"` + stays, `spec.memberNamePrefix: Invalid value: "b"` + stays}, `{replicas: 3, backup: {store: {prefix: ns--x/obj, provider: GCS}}, memberNamePrefix: a}`},
		"Extension":               {`{type: p2}`, []string{`spec.type: Invalid value: "p2"` + stays}, `{type: p, providerConfig: {a: 1}}`},
		"Infrastructure":          {`{type: p2, region: r2, secretRef: {name: s2}}`, []string{`spec.type: Invalid value: "p2"` + stays, `spec.region: Invalid value: "r2"` + stays}, `{type: p, region: r, secretRef: {name: s2}, sshPublicKey: aGVsbG8=}`},
		"Network":                 {`{type: p2, podCIDR: 10.20.31.0/26, serviceCIDR: 10.30.41.0/26}`, []string{`spec.type: Invalid value: "p2"` + stays, `spec.podCIDR: Invalid value: "10.20.31.0/26"` + stays, `spec.serviceCIDR: Invalid value: "10.30.41.0/26"` + stays}, `{type: p, podCIDR: 10.20.30.40/26, serviceCIDR: 10.30.40.50/26, providerConfig: {a: 1}, ipFamilies: []}`},
		"OperatingSystemConfig":   {`{type: p2, purpose: provision}`, []string{`spec.type: Invalid value: "p2"` + stays, `spec.purpose: Invalid value: "provision"` + stays}, `{purpose: reconcile, criConfig: {name: containerd}, units: [], files: []}`},
		"SelfHostedShootExposure": {`{type: p2, port: 444, endpoints: [{nodeName: b}]}`, []string{`spec.type: Invalid value: "p2"` + stays}, `{type: p, port: 444, credentialsRef: {apiVersion: v1, kind: Secret, namespace: ns, name: s}, endpoints: [{nodeName: b}]}`},
		"Worker":                  {`{type: p2, region: r2, secretRef: {name: s2}}`, []string{`spec.type: Invalid value: "p2"` + stays, `spec.region: Invalid value: "r2"` + stays}, `{type: p, region: r, secretRef: {name: s2}, pools: []}`},
	} {
		t.Run(kind, func(t *testing.T) {
			if got := causes(t, ask(t, kind, object(kind, c.changed), object(kind, valid[kind]))); !cmp.Equal(got, c.want) {
				t.Errorf("EV-6: %s", cmp.Diff(c.want, got))
			}
			got := ask(t, kind, object(kind, c.mutable), object(kind, valid[kind]))
			expect.True(t, got.Allowed, "EV-32: %s", got.Result.Message)
		})
	}
	expect.Equal(t, len(valid), len(Webhooks()), "kinds with valid specs")
}

// deleted is an object with a deletion timestamp.
func deleted(kind, spec string) string {
	return strings.Replace(object(kind, spec), "resourceVersion: '1'", "resourceVersion: '1', deletionTimestamp: '2020-01-01T00:00:00Z', finalizers: [a/b]", 1)
}

// TestDeletion: while an object is being deleted nothing that is wanted may change, and the message says what (EV-4, EV-5, EV-44).
func TestDeletion(t *testing.T) {
	called := map[string]string{
		"BackupBucket": "backup bucket", "BackupEntry": "backup entry", "Bastion": "bastion", "ContainerRuntime": "container runtime", "ControlPlane": "control plane", "DNSRecord": "dns record",
		"Extension": "extension", "Infrastructure": "infrastructure", "Network": "network", "OperatingSystemConfig": "operatingsystemconfig", "SelfHostedShootExposure": "SelfHostedShootExposure", "Worker": "worker",
	}
	for kind, spec := range valid {
		changed := strings.Replace(spec, "{", "{type: changed-type, ", 1)
		changed = strings.Replace(changed, "type: p, ", "", 1)
		changed = strings.Replace(changed, ", type: p}", "}", 1)
		was := "p"
		if kind == "OperatingSystemConfig" {
			was = ""
		}
		want := []string{fmt.Sprintf("spec: Forbidden: cannot update %s spec if deletion timestamp is set. Requested changes: DefaultSpec.Type: changed-type != %s", called[kind], was)}
		if kind == "Etcd" {
			want = []string{"spec: Invalid value: field is immutable"}
		}
		if got := causes(t, ask(t, kind, deleted(kind, changed), deleted(kind, spec))); !cmp.Equal(got, want) {
			t.Errorf("%s: EV-4: %s", kind, cmp.Diff(want, got))
		}
		// An object that is invalid now can still lose its finalizers, and nothing but metadata is judged.
		invalid := deleted(kind, "{unknown: {to: us}}")
		if got := ask(t, kind, strings.Replace(invalid, ", finalizers: [a/b]", "", 1), invalid); !got.Allowed {
			t.Errorf("%s: WB-18/EV-8: %s", kind, got.Result.Message)
		}
		if got := causes(t, ask(t, kind, strings.Replace(invalid, "[a/b]", "[a/b, c/d]", 1), invalid)); len(got) != 1 || !strings.HasPrefix(got[0], "metadata.finalizers: Forbidden: ") {
			t.Errorf("%s: EV-3, a new finalizer: %q", kind, got)
		}
		// Unknown fields count, but are not told.
		if got := ask(t, kind, deleted(kind, "{unknown: {to: others}}"), invalid); got.Allowed || strings.Contains(got.Result.Message, "others") {
			t.Errorf("%s: EV-4: a change of an unknown field: %s", kind, got.Result.Message)
		}
	}
	// Immutability is not judged, the rest is.
	got := causes(t, ask(t, "DNSRecord", deleted("DNSRecord", `{type: p, secretRef: {name: s}, name: a, recordType: A, values: [1.2.3.4]}`), deleted("DNSRecord", valid["DNSRecord"])))
	want := []string{
		"spec: Forbidden: cannot update dns record spec if deletion timestamp is set. Requested changes: Name: a != a.example.com",
		`spec.name: Invalid value: "a": should be a domain with at least two segments separated by dots`,
	}
	if !cmp.Equal(got, want) {
		t.Errorf("EV-4, full validation: %s", cmp.Diff(want, got))
	}
}

// TestNamesOfFields: SPEC is a field that nobody knows, and not what is wanted (EV-4, DP-18).
func TestNamesOfFields(t *testing.T) {
	for kind, spec := range valid {
		old := toJSON(t, deleted(kind, spec))
		now := strings.TrimSuffix(strings.TrimSpace(string(old)), "}") + `,"SPEC":{"type":"other"}}`
		r := admissionv1.AdmissionRequest{Operation: admissionv1.Update, Namespace: namespaceOf(kind), Object: runtime.RawExtension{Raw: []byte(now)}, OldObject: runtime.RawExtension{Raw: old}}
		got := admissiontest.Respond(webhookOf(t, kind).Decide, r)
		expect.True(t, got.Allowed, "%s: EV-4: %s", kind, got.Result.Message)
	}
}

func TestMetadata(t *testing.T) {
	spec := valid["DNSRecord"]
	good := object("DNSRecord", spec)
	for name, c := range map[string]struct {
		kind, now, old string
		want           []string
	}{
		"EV-2, a namespace":            {"BackupBucket", strings.Replace(object("BackupBucket", valid["BackupBucket"]), "name: obj", "name: obj, namespace: x", 1), "", []string{"metadata.namespace: Forbidden: not allowed on this type"}},
		"EV-2/a wrong name":            {"Extension", "{metadata: {name: A_, namespace: ns}, spec: {type: p}}", "", []string{`metadata.name: Invalid value: "A_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`}},
		"EV-2/a generation below zero": {"Extension", "{metadata: {name: a, namespace: ns, generation: -1}, spec: {type: p}}", "", []string{"metadata.generation: Invalid value: -1: must be greater than or equal to 0"}},
		"EV-2/a wrong finalizer":       {"Extension", "{metadata: {name: a, namespace: ns, finalizers: [a/b/c]}, spec: {type: p}}", "", []string{`metadata.finalizers: Invalid value: "a/b/c": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`}},
		"EV-3/no version":              {"DNSRecord", strings.Replace(good, ", resourceVersion: '1'", "", 1), good, []string{`metadata.resourceVersion: Invalid value: "": must be specified for an update`}},
		"EV-3/an older generation":     {"DNSRecord", strings.Replace(good, "name: obj", "name: obj, generation: 1", 1), strings.Replace(good, "name: obj", "name: obj, generation: 2", 1), []string{"metadata.generation: Invalid value: 1: must not be decremented"}},
		"EV-3/another name":            {"DNSRecord", strings.Replace(good, "name: obj,", "name: m,", 1), good, []string{`metadata.name: Invalid value: "m": field is immutable`}},
	} {
		t.Run(name, func(t *testing.T) {
			got := causes(t, ask(t, c.kind, c.now, c.old))
			expect.DeepEqual(t, got, c.want)
		})
	}
}

// TestMessages: the whole status, for one error and for several (FV-4), and for a group of its own.
func TestMessages(t *testing.T) {
	for message, c := range map[string]struct{ kind, spec string }{
		`BackupBucket.extensions.gardener.cloud "obj" is invalid: spec.type: Required value: field is required`:                                                   {"BackupBucket", `{region: r, secretRef: {name: s}}`},
		`BackupBucket.extensions.gardener.cloud "obj" is invalid: [spec.type: Required value: field is required, spec.region: Required value: field is required]`: {"BackupBucket", `{secretRef: {name: s}}`},
		`Etcd.druid.gardener.cloud "obj" is invalid: spec.backup.store.prefix: Invalid value: "x": must contain object name and namespace`:                        {"Etcd", `{backup: {store: {prefix: x}}}`},
	} {
		got := ask(t, c.kind, object(c.kind, c.spec), "").Result
		if got.Message != message || got.Status != "Failure" || got.Details.Kind != c.kind || got.Details.Name != "obj" || !strings.Contains(message, got.Details.Group) {
			t.Errorf("FV-4: got %+v %+v, want %s", got, got.Details, message)
		}
	}
}

func TestRegistrations(t *testing.T) {
	paths := map[string]bool{}
	for _, w := range Webhooks() {
		paths[w.Path] = true
		r := w.registration()
		if r.Name != "validation.extensions."+w.Resource+".resources.gardener.cloud" || len(r.Rules) != 1 || !slices.Equal(r.Rules[0].Resources, []string{w.Resource}) || !slices.Equal(r.Rules[0].APIGroups, []string{w.Group}) ||
			*r.FailurePolicy != admissionregistrationv1.Fail || *r.MatchPolicy != admissionregistrationv1.Exact || *r.TimeoutSeconds != 10 || r.ObjectSelector != nil {
			t.Errorf("A13.1, WHC-15, WHC-16: %+v", r)
		}
	}
	for _, kind := range []string{"backupbucket", "backupentry", "bastion", "containerruntime", "controlplane", "dnsrecord", "extension", "infrastructure", "network", "operatingsystemconfig", "selfhostedshootexposure", "worker"} {
		path := "/validate-extensions-gardener-cloud-v1alpha1-" + kind
		expect.True(t, paths[path], "A13.1: %s is not served", path)
	}
	expect.True(t, paths["/validate-druid-gardener-cloud-v1alpha1-etcd"] && len(paths) == 13, "A13.1: served are %v", paths)
}

// TestDocument: the document's examples are judged as it says, and the registration is the one it shows.
func TestDocument(t *testing.T) {
	w := webhookOf(t, "DNSRecord")
	admissiontest.Refuses(t, w.Decide, admissionv1.AdmissionRequest{Operation: admissionv1.Create}, Name)
	admissiontest.Registered(t, Name, w.registration())
	for _, w := range Webhooks() {
		expect.Contains(t, admissiontest.Section(t, admissiontest.Registrations, Name), w.Path, "the document does")
	}
}

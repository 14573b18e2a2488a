package restriction

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/internal/externalapi/boundedyaml/yamltest"
	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/gen/builders"
	"github.com/espalier-project/espalier/test/must"
)

// garden answers from texts by "resource ns/name" or "resource name"; "error" stands for one that cannot be read, "unserved" for one whose
// whole resource is not there.
type garden map[string]string

var errFake = errors.New("fake-err")

func (g garden) text(r schema.GroupVersionResource, namespace, name string) (string, error) {
	key := strings.TrimPrefix(namespace+"/"+name, "/")
	text, found := g[r.Resource+" "+key]
	switch {
	case !found:
		return "", apierrors.NewNotFound(r.GroupResource(), name)
	case text == "error":
		return "", errFake
	case text == "unserved":
		return "", apierrors.NewGenericServerResponse(404, "get", r.GroupResource(), name, "404 page not found", 0, true)
	}
	return text, nil
}

func (g garden) Get(_ context.Context, r schema.GroupVersionResource, namespace, name string, into runtime.Object) error {
	text, err := g.text(r, namespace, name)
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal([]byte(text), into); err != nil {
		return err
	}
	return yaml.Unmarshal(fmt.Appendf(nil, "{metadata: {namespace: %q, name: %q}}", namespace, name), into)
}

func (g garden) GetRaw(_ context.Context, r schema.GroupVersionResource, namespace, name string) ([]byte, error) {
	text, err := g.text(r, namespace, name)
	if err != nil {
		return nil, err
	}
	return yaml.YAMLToJSON([]byte(text))
}

func (g garden) Exists(_ context.Context, r schema.GroupVersionResource, namespace, name string) (bool, error) {
	_, err := g.text(r, namespace, name)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// counting keeps the keys of what is read of a garden.
type counting struct {
	garden
	read []string
}

func (c *counting) count(r schema.GroupVersionResource, namespace, name string) {
	c.read = append(c.read, r.Resource+" "+strings.TrimPrefix(namespace+"/"+name, "/"))
}

func (c *counting) Get(ctx context.Context, r schema.GroupVersionResource, namespace, name string, into runtime.Object) error {
	c.count(r, namespace, name)
	return c.garden.Get(ctx, r, namespace, name, into)
}

func (c *counting) GetRaw(ctx context.Context, r schema.GroupVersionResource, namespace, name string) ([]byte, error) {
	c.count(r, namespace, name)
	return c.garden.GetRaw(ctx, r, namespace, name)
}

func (c *counting) Exists(ctx context.Context, r schema.GroupVersionResource, namespace, name string) (bool, error) {
	c.count(r, namespace, name)
	return c.garden.Exists(ctx, r, namespace, name)
}

type decide = func(context.Context, *admissionv1.AdmissionRequest) error

// neverAllowedUnread checks that a request, which is allowed, is refused with 500 if one of the objects that were read for it cannot be read, and
// refused if the object of the request cannot be read and another content of it would be refused.
func neverAllowedUnread(t *testing.T, read []string, g garden, question, object string, with func(garden) *Handler, of func(*Handler) decide) {
	t.Helper()
	for _, key := range read {
		if strings.HasPrefix(question, "gardenlet CREATE secrets") && strings.HasPrefix(key, "shoots ") && len(read) == 2 && strings.HasPrefix(read[0], "shoots ") {
			continue // One of two Shoots that name the Secret for their backups is enough (RES-33).
		}
		broken := maps.Clone(g)
		if broken == nil {
			broken = garden{}
		}
		broken[key] = "error"
		if r := respond(of(with(broken)), ask(t, question, object)); r.Allowed || r.Result.Code != 500 || r.Result.Message != errFake.Error() {
			t.Errorf("section 7.2: %s with %s that cannot be read: got %+v", question, key, r)
		}
	}
	if object == "{]" || respond(of(with(g)), ask(t, question, "{}")).Allowed {
		return
	}
	// An object that exists already is told instead (RES-2).
	if r := respond(of(with(g)), ask(t, question, "{]")); r.Allowed || r.Result.Code != 400 && r.Result.Code != 409 {
		t.Errorf("RES-6: %s with an object that cannot be read: got %+v", question, r)
	}
}

// graphOf is the graph for seeds of what can be read of a garden.
func graphOf(t *testing.T, g garden) *graph.Graph {
	t.Helper()
	return graphBy(t, g, relation.Watches, relation.Schema)
}

// shootsOf is the graph for self-hosted shoots of what can be read of a garden.
func shootsOf(t *testing.T, g garden) *graph.Graph {
	t.Helper()
	return graphBy(t, g, relation.SelfHosted, relation.SelfHostedSchema)
}

func graphBy(t *testing.T, g garden, table relation.Table, schema graph.Schema) *graph.Graph {
	t.Helper()
	state := relation.NewState(graph.New(schema), clocktesting.NewFakePassiveClock(now), nil)
	for _, known := range []graph.Vertex{relation.SeedVertex("seed"), relation.SeedVertex("other"), {Kind: relation.Shoot, Namespace: "garden", Name: "s"}, {Kind: relation.Shoot, Namespace: "n", Name: "s"}} {
		state.Graph.Set(known, nil) // For a Seed or Shoot that is not known nothing is read (T3-2).
	}
	for key, text := range g {
		resource, name, _ := strings.Cut(key, " ")
		namespace, name, found := strings.Cut(name, "/")
		if !found {
			namespace, name = "", namespace
		}
		for _, w := range table {
			if w.Resource.Resource != resource || text == "error" || text == "unserved" || name == "" {
				continue
			}
			object := w.New()
			must.Succeed(t, g.Get(context.Background(), w.Resource, namespace, name, object))
			state.Set(w, object)
		}
	}
	return state.Graph
}

var clients = map[string]authenticationv1.UserInfo{
	"gardenlet": {Username: "gardener.cloud:system:seed:seed", Groups: []string{"gardener.cloud:system:seeds"}},
	"extension": {Username: "system:serviceaccount:seed-seed:extension-provider-local", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:seed-seed"}},
	"other":     {Username: "foo"},
}

var apiGroups = map[string]string{
	"certificatesigningrequests": "certificates.k8s.io", "clusterrolebindings": "rbac.authorization.k8s.io", "configmaps": "", "leases": "coordination.k8s.io",
	"secrets": "", "serviceaccounts": "", "bastions": "operations.gardener.cloud", "gardenlets": "seedmanagement.gardener.cloud",
}

// bySelfHostedShoot reports whether the client of a question is one of a self-hosted shoot.
func bySelfHostedShoot(question string) bool {
	return strings.HasPrefix(question, "shoot-") || strings.HasPrefix(question, "gardenadm")
}

// ask reads "<client> <OPERATION> <resource> [namespace/]name", with the object as YAML.
func ask(t *testing.T, text, object string) *admissionv1.AdmissionRequest {
	t.Helper()
	words := strings.Fields(text + " ")
	client, known := clients[words[0]]
	must.True(t, known, "%q begins with no client", text)
	r := &admissionv1.AdmissionRequest{UserInfo: client, Operation: admissionv1.Operation(words[1])}
	if len(words) > 2 {
		group, known := apiGroups[words[2]]
		if !known {
			group = "core.gardener.cloud"
		}
		r.Resource = metav1.GroupVersionResource{Group: group, Version: "v1", Resource: words[2]}
	}
	if len(words) > 3 {
		r.Name = words[3]
		if namespace, name, found := strings.Cut(words[3], "/"); found {
			r.Namespace, r.Name = namespace, name
		}
	}
	if object == "{]" {
		r.Object.Raw = []byte(object)
		return r
	}
	raw, err := yaml.YAMLToJSON([]byte(object))
	must.Succeed(t, err)
	r.Object.Raw = raw
	return r
}

// respond answers a request as the endpoint does.
func respond(decide func(context.Context, *admissionv1.AdmissionRequest) error, r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	return admission.New(admission.Options{Decide: admission.Decide(decide), Log: logr.Discard()}).Respond(context.Background(), r)
}

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func decided(t *testing.T, g garden, question, object string) string {
	t.Helper()
	reader := &counting{garden: g}
	h := &Handler{Reader: reader, Graph: graphOf(t, g), Clock: clocktesting.NewFakePassiveClock(now), Log: logr.Discard()}
	response := respond(h.Decide, ask(t, question, object))
	expect.True(t, len(reader.read) <= maxReads, "%s took reads of %q", question, reader.read)
	if response.Result == nil || response.Result.Reason != "" && response.Result.Code != 409 || len(response.Patch) > 0 || len(response.Warnings) > 0 || len(response.AuditAnnotations) > 0 {
		t.Fatalf("RES-9: got %+v", response)
	}
	if response.Allowed {
		expect.Equal(t, response.Result.Code, 200, "RES-8: allowed with code")
		neverAllowedUnread(t, reader.read, g, question, object, func(g garden) *Handler {
			return &Handler{Reader: g, Graph: h.Graph, Clock: h.Clock, Log: h.Log}
		}, func(h *Handler) decide { return h.Decide })
		return strings.TrimSpace("allowed " + response.Result.Message)
	}
	return fmt.Sprintf("%d %s", response.Result.Code, response.Result.Message)
}

// csr asks for a certificate of a seed.
func csr(seed, usages string) string {
	return text(builders.CertificateRequest("x", "gardener.cloud:system:seed:"+seed, "gardener.cloud:system:seeds", usages))
}

// text is an object as it is sent.
func text(o *builders.Object) string { return string(o.JSON()) }

func TestFrame(t *testing.T) {
	for name, c := range map[string]struct {
		garden           garden
		question, object string
		want             string
	}{
		"RES-1, no client of a seed":                {nil, "other CREATE shoots n/x", "{}", "allowed"},
		"ID-8/no client of a seed":                  {nil, "other CREATE bastions n/x", on("other"), "allowed"},
		"ID-7/BH-SR-2, a client of a seed":          {nil, "gardenlet CREATE bastions n/x", on("other"), `403 object does not belong to seed "seed"`},
		"RES-4, no resource":                        {nil, "gardenlet CREATE", "{}", `400 unexpected resource: ""`},
		"D-6/RES-3, another resource":               {nil, "gardenlet CREATE quotas n/x", "{}", `400 unexpected resource: "quotas.core.gardener.cloud"`},
		"RES-2, it exists":                          {garden{"backupentries n/x": "{}"}, "gardenlet CREATE backupentries n/x", "{}", `409 backupentries.core.gardener.cloud "x" already exists`},
		"RES-2/what is admitted is not asked about": {garden{"bastions n/x": "{}"}, "gardenlet CREATE bastions n/x", on("seed"), "allowed"},
		"RES-2/it exists and is not even readable":  {garden{"secrets kube-system/bootstrap-token-abcdef": "{}"}, "gardenlet CREATE secrets kube-system/bootstrap-token-abcdef", "{type: bootstrap.kubernetes.io/token, data: {auth-extra-groups: eA==}}", `409 secrets "bootstrap-token-abcdef" already exists`},
		"RES-2/an error is no refusal":              {garden{"shoots n/s": "error", "configmaps n/s.ca-cluster": "{}"}, "gardenlet CREATE configmaps n/s.ca-cluster", "{}", "500 fake-err"},
		"RES-2, it cannot be read":                  {garden{"backupentries n/x": "error"}, "gardenlet CREATE backupentries n/x", "{}", `403 object does not belong to seed "seed"`},
		"RES-5, before the client's type":           {nil, "extension UPDATE certificatesigningrequests x", "{}", `400 unexpected operation: "UPDATE"`},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, decided(t, c.garden, c.question, c.object), c.want)
		})
	}
	for resource, operations := range rules {
		for _, operation := range []admissionv1.Operation{admissionv1.Create, admissionv1.Update, admissionv1.Delete, admissionv1.Connect} {
			if operations[operation] != nil {
				continue
			}
			want := fmt.Sprintf("400 unexpected operation: %q", operation)
			expect.Equal(t, decided(t, nil, fmt.Sprintf("gardenlet %s %s n/x", operation, resource.Resource), "{}"), want, "RES-5: %s", resource)
		}
	}
	for _, question := range []string{
		"backupbuckets x", "backupentries n/x", "bastions n/x", "certificatesigningrequests x", "clusterrolebindings x", "shootstates n/x",
		"secrets gardener-system-shoot-issuer/x", "secrets kube-system/bootstrap-token-x",
	} {
		if got := decided(t, nil, "gardenlet CREATE "+question, "{]"); !strings.HasPrefix(got, "400 couldn't get version/kind; json parse error: ") {
			t.Errorf("RES-6: %s: got %s", question, got)
		}
	}
}

const belongs = `403 object does not belong to seed "seed"`

// on returns what belongs to a seed.
func on(seed string) string { return "{spec: {seedName: " + seed + "}}" }

func TestSeedRestriction_DecidesByResource(t *testing.T) {
	usages := "key encipherment, digital signature, client auth"
	restoring := "{spec: {seedName: seed}, status: {lastOperation: {type: Restore, state: Processing}}}"
	source := "{metadata: {name: source-e, ownerReferences: [{kind: Shoot, name: s}]}, spec: {seedName: seed, bucketName: b, more: 1}}"
	bootstrapper := "gardener.cloud:system:seed-bootstrapper:garden:gardenlet-bootstrap-m"
	binding := func(subjects ...any) string {
		return text(builders.New("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", bootstrapper).Add("subjects", subjects...).
			With("roleRef", map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "gardener.cloud:system:seed-bootstrapper"}))
	}
	account := map[string]any{"kind": "ServiceAccount", "namespace": "garden", "name": "gardenlet-bootstrap-m"}
	managed := garden{"managedseeds garden/m": "{spec: {shoot: {name: s}}}", "shoots garden/s": on("seed")}
	deleted := "{metadata: {deletionTimestamp: 2026-11-21T11:00:00Z}, spec: {shoot: {name: s}}}"
	for name, c := range map[string]struct {
		garden           garden
		question, object string
		want             string
	}{
		"RES-28, no shoot":               {nil, "gardenlet CREATE shootstates n/foo", "{}", `500 shoots.core.gardener.cloud "foo" not found`},
		"RES-28, no seed":                {garden{"shoots n/foo": "{}"}, "gardenlet CREATE shootstates n/foo", "{}", belongs},
		"RES-28, another seed":           {garden{"shoots n/foo": on("x")}, "gardenlet CREATE shootstates n/foo", "{}", belongs},
		"RES-28, spec":                   {garden{"shoots n/foo": on("seed")}, "gardenlet CREATE shootstates n/foo", "{}", "allowed"},
		"RES-28, status":                 {garden{"shoots n/foo": "{spec: {seedName: x}, status: {seedName: seed}}"}, "extension CREATE shootstates n/foo", "{}", "allowed"},
		"RES-11, no seed":                {nil, "gardenlet CREATE backupbuckets x", "{}", belongs},
		"RES-11, another seed":           {nil, "gardenlet CREATE backupbuckets x", on("x"), belongs},
		"RES-11, own":                    {nil, "gardenlet CREATE backupbuckets x", on("seed"), "allowed"},
		"RES-12, no seed":                {nil, "gardenlet DELETE backupbuckets x", "null", `500 seeds.core.gardener.cloud "seed" not found`},
		"RES-12, another bucket":         {garden{"seeds seed": "{metadata: {uid: u}}"}, "gardenlet DELETE backupbuckets x", "null", "403 cannot delete unrelated BackupBucket"},
		"RES-12, all of them":            {garden{"seeds seed": "{}"}, "gardenlet DELETE backupbuckets", "null", "403 cannot delete unrelated BackupBucket"},
		"RES-12, own":                    {garden{"seeds seed": "{metadata: {uid: x}}"}, "gardenlet DELETE backupbuckets x", "null", "allowed"},
		"RES-7, RES-13, another seed":    {nil, "gardenlet CREATE backupentries n/e", on("x"), belongs},
		"RES-13, no bucket":              {nil, "gardenlet CREATE backupentries n/e", "{spec: {seedName: seed, bucketName: b}}", `500 backupbuckets.core.gardener.cloud "b" not found`},
		"RES-13, bucket, no seed":        {garden{"backupbuckets b": "{}"}, "gardenlet CREATE backupentries n/e", "{spec: {seedName: seed, bucketName: b}}", belongs},
		"RES-13, bucket elsewhere":       {garden{"backupbuckets b": on("x")}, "gardenlet CREATE backupentries n/e", "{spec: {seedName: seed, bucketName: b}}", belongs},
		"RES-13, own":                    {garden{"backupbuckets b": on("seed")}, "gardenlet CREATE backupentries n/e", "{spec: {seedName: seed, bucketName: b}}", "allowed"},
		"RES-14, no shoot":               {nil, "gardenlet CREATE backupentries n/source-e", source, `500 shoots.core.gardener.cloud "s" not found`},
		"RES-14, nothing is done":        {garden{"shoots n/s": on("seed")}, "gardenlet CREATE backupentries n/source-e", source, "403 creation of source BackupEntry is only allowed during shoot Restore operation (shoot: s)"},
		"RES-14, migrates":               {garden{"shoots n/s": "{status: {lastOperation: {type: Migrate, state: Processing}}}"}, "gardenlet CREATE backupentries n/source-e", source, "403 creation of source BackupEntry is only allowed during shoot Restore operation (shoot: s)"},
		"RES-14, restored":               {garden{"shoots n/s": "{status: {lastOperation: {type: Restore, state: Succeeded}}}"}, "gardenlet CREATE backupentries n/source-e", source, "403 creation of source BackupEntry is only allowed during shoot Restore operation (shoot: s)"},
		"RES-14, no original":            {garden{"shoots n/s": restoring}, "gardenlet CREATE backupentries n/source-e", source, `403 could not find original BackupEntry e: backupentries.core.gardener.cloud "e" not found`},
		"RES-14, unreadable":             {garden{"shoots n/s": restoring, "backupentries n/e": "error"}, "gardenlet CREATE backupentries n/source-e", source, "500 fake-err"},
		"RES-14, other spec":             {garden{"shoots n/s": restoring, "backupentries n/e": "{spec: {seedName: seed, bucketName: b, more: 2}}"}, "gardenlet CREATE backupentries n/source-e", source, "403 specification of source BackupEntry must equal specification of original BackupEntry e"},
		"RES-14, same spec":              {garden{"shoots n/s": restoring, "backupentries n/e": "{spec: {more: 1, bucketName: b, seedName: seed}}"}, "gardenlet CREATE backupentries n/source-e", source, "allowed"},
		"RES-15, own":                    {nil, "gardenlet CREATE bastions n/b", on("seed"), "allowed"},
		"RES-15, another":                {nil, "gardenlet CREATE bastions n/b", on("x"), belongs},
		"RES-23, create":                 {nil, "gardenlet CREATE seeds seed", "{}", "allowed"},
		"RES-23, generated name":         {nil, "gardenlet CREATE seeds", "{}", belongs},
		"RES-23, update":                 {nil, "gardenlet UPDATE seeds seed", "{}", "allowed"},
		"RES-23, another":                {nil, "gardenlet UPDATE seeds x", "{}", belongs},
		"RES-24, own":                    {nil, "gardenlet DELETE seeds seed", "null", "allowed"},
		"RES-24, no ManagedSeed":         {nil, "gardenlet DELETE seeds m", "null", belongs},
		"RES-24, all of them":            {nil, "gardenlet DELETE seeds", "null", belongs},
		"RES-24, unreadable":             {garden{"managedseeds garden/m": "error"}, "gardenlet DELETE seeds m", "null", "500 fake-err"},
		"RES-24, not deleted":            {managed, "gardenlet DELETE seeds m", "null", "403 object can only be deleted if corresponding ManagedSeed has a deletion timestamp"},
		"RES-24, no shoot":               {garden{"managedseeds garden/m": "{metadata: {deletionTimestamp: 2026-11-21T11:00:00Z}}"}, "gardenlet DELETE seeds m", "null", belongs},
		"RES-24, shoot is gone":          {garden{"managedseeds garden/m": deleted}, "gardenlet DELETE seeds m", "null", `500 shoots.core.gardener.cloud "s" not found`},
		"RES-24, shoot elsewhere":        {garden{"managedseeds garden/m": deleted, "shoots garden/s": on("x")}, "gardenlet DELETE seeds m", "null", belongs},
		"RES-24, own shoot":              {garden{"managedseeds garden/m": deleted, "shoots garden/s": on("seed")}, "gardenlet DELETE seeds m", "null", "allowed"},
		"RES-18, another name":           {nil, "gardenlet CREATE configmaps n/x", "{}", belongs},
		"RES-18, no shoot":               {nil, "gardenlet CREATE configmaps n/s.ca-cluster", "{}", `403 shoots.core.gardener.cloud "s" not found`},
		"RES-18, unreadable":             {garden{"shoots n/s": "error"}, "gardenlet CREATE configmaps n/s.ca-cluster", "{}", "500 fake-err"},
		"RES-18, elsewhere":              {garden{"shoots n/s": on("x")}, "gardenlet CREATE configmaps n/s.ca-kubelet", "{}", belongs},
		"RES-18, own":                    {garden{"shoots n/s": on("seed")}, "gardenlet CREATE configmaps n/s.ca-kubelet", "{}", "allowed"},
		"RES-20, own":                    {garden{"shoots n/s": on("seed")}, "gardenlet CREATE internalsecrets n/s.ca-client", "{}", "allowed"},
		"RES-20, another name":           {nil, "gardenlet CREATE internalsecrets n/s.ca-cluster", "{}", belongs},
		"RES-16, usages":                 {nil, "gardenlet CREATE certificatesigningrequests x", csr("seed", "server auth"), "403 can only create CSRs for seed clusters: key usages are not set to [key encipherment digital signature client auth]"},
		"RES-16, another seed":           {nil, "gardenlet CREATE certificatesigningrequests x", csr("x", usages), belongs},
		"RES-16, own":                    {nil, "gardenlet CREATE certificatesigningrequests x", csr("seed", usages), "allowed"},
		"RES-16, extension":              {nil, "extension CREATE certificatesigningrequests x", csr("seed", usages), "403 extension client may not create CertificateSigningRequests"},
		"RES-16/no request":              {nil, "gardenlet CREATE certificatesigningrequests x", "{}", "400 PEM block type must be CERTIFICATE REQUEST"},
		"RES-17, another name":           {nil, "gardenlet CREATE clusterrolebindings x", "{}", belongs},
		"RES-17, another role":           {nil, "gardenlet CREATE clusterrolebindings " + bootstrapper, "{}", "403 can only bindings referring to the bootstrapper role"},
		"RES-17, extension":              {nil, "extension CREATE clusterrolebindings " + bootstrapper, "{}", "403 extension client may not create ClusterRoleBindings"},
		"RES-17, no ManagedSeed":         {nil, "gardenlet CREATE clusterrolebindings " + bootstrapper, binding(account), `403 managedseeds.seedmanagement.gardener.cloud "m" not found`},
		"B/RES-17, no subject":           {managed, "gardenlet CREATE clusterrolebindings " + bootstrapper, binding(), "403 can only bind ServiceAccount garden/gardenlet-bootstrap-m"},
		"B/RES-17, one subject too many": {managed, "gardenlet CREATE clusterrolebindings " + bootstrapper, binding(account, account), "403 can only bind ServiceAccount garden/gardenlet-bootstrap-m"},
		"RES-17, allowed":                {managed, "gardenlet CREATE clusterrolebindings " + bootstrapper, binding(account), "allowed"},
		"B/RES-17, another subject":      {managed, "gardenlet CREATE clusterrolebindings " + bootstrapper, binding(map[string]any{"kind": "User", "name": "u"}), "403 can only bind ServiceAccount garden/gardenlet-bootstrap-m"},
		"RES-19, namespace":              {nil, "gardenlet CREATE gardenlets n/seed", "{}", `400 object must be in namespace: "garden"`},
		"RES-19, another":                {nil, "gardenlet CREATE gardenlets garden/x", "{}", belongs},
		"RES-19, own":                    {nil, "gardenlet CREATE gardenlets garden/seed", "{}", "allowed"},
		"RES-21, another":                {nil, "gardenlet CREATE leases gardener-system-seed-lease/x", "{}", belongs},
		"RES-21, own":                    {nil, "gardenlet CREATE leases gardener-system-seed-lease/seed", "{}", "allowed"},
		"RES-21, election":               {nil, "gardenlet CREATE leases n/gardenlet-leader-election", "{}", "allowed"},
		"RES-21, elsewhere":              {nil, "gardenlet CREATE leases n/x", "{}", belongs},
		"BH-SR-6, extension 1":           {nil, "extension CREATE leases n/gardenlet-leader-election", "{}", `403 extension client can only create leases in the namespace for seed "seed"`},
		"BH-SR-6, extension 2":           {nil, "extension CREATE leases gardener-system-seed-lease/seed", "{}", `403 extension client can only create leases in the namespace for seed "seed"`},
		"BH-SR-6, extension 3":           {nil, "extension CREATE leases seed-seed/anything", "{}", "allowed"},
		"RES-25, own namespace":          {nil, "gardenlet CREATE serviceaccounts seed-seed/x", "{}", "allowed"},
		"RES-25, bootstrap first":        {nil, "gardenlet CREATE serviceaccounts seed-seed/gardenlet-bootstrap-x", "{}", `403 managedseeds.seedmanagement.gardener.cloud "x" not found`},
		"RES-25, bootstrap":              {managed, "gardenlet CREATE serviceaccounts garden/gardenlet-bootstrap-m", "{}", "allowed"},
		"RES-25, elsewhere":              {nil, "gardenlet CREATE serviceaccounts n/x", "{}", belongs},
		"RES-25, extension":              {nil, "extension CREATE serviceaccounts seed-seed/x", "{}", "403 extension client may not create ServiceAccounts"},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, decided(t, c.garden, c.question, c.object), c.want)
		})
	}
}

func TestSeedRestriction_DecidesAboutSecrets(t *testing.T) {
	// issuer is the Secret of Shoot ns/s that a seed publishes, with more labels.
	issuer := func(more ...string) string {
		o := builders.Secret("", "").Labelled("shoot.gardener.cloud/name", "s").Labelled("shoot.gardener.cloud/namespace", "ns")
		for _, label := range more {
			o.Labelled(label, "serviceaccount")
		}
		return text(o)
	}
	const public, ofOld = "discovery.gardener.cloud/public", "authentication.gardener.cloud/public-keys"
	ofManagedSeed, ofGardenlet := bootstrapToken("ManagedSeed", "garden/m"), func(name string) *builders.Object { return bootstrapToken("Gardenlet", name) }
	with := func(pairs ...string) garden {
		g := garden{"managedseeds garden/m": "{spec: {shoot: {name: s}}}", "shoots garden/s": on("seed"), "gardenlets garden/seed": "{}"}
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i+1] == "" {
				delete(g, pairs[i])
				continue
			}
			g[pairs[i]] = pairs[i+1]
		}
		return g
	}
	expired := "{status: {clientCertificateExpirationTimestamp: 2026-11-21T11:00:00Z}}"
	valid := "{status: {clientCertificateExpirationTimestamp: 2026-11-21T13:00:00Z}}"
	renews := "metadata: {annotations: {gardener.cloud/operation: renew-kubeconfig}}"
	// backupOf is the ManagedSeed of a Shoot, whose Seed has backups with the Secret ns/b.
	managedSeed := func(shoot string) *builders.Object { return builders.ManagedSeed("garden", "m", shoot) }
	backupOf := func(shoot string) string {
		return text(managedSeed(shoot).SeedSpec("backup.credentialsRef", builders.Ref("Secret", "ns/b")))
	}
	const issuerSecret, tokenSecret = "gardenlet CREATE secrets gardener-system-shoot-issuer/dev--u", "gardenlet CREATE secrets kube-system/bootstrap-token-abcdef"
	const extensionsToken = "extension CREATE secrets kube-system/bootstrap-token-abcdef"
	const ofAccount = "{type: kubernetes.io/service-account-token, metadata: {annotations: {kubernetes.io/service-account.name: robot}}}"
	const accountRefused = `403 clients of seeds and shoots may not create Secrets of type "kubernetes.io/service-account-token"`
	for name, c := range map[string]struct {
		garden           garden
		question, object string
		want             string
	}{
		"RES-33, unrelated":                 {nil, "gardenlet CREATE secrets n/x", "{}", belongs},
		"RES-22, RES-29, no bucket":         {nil, "gardenlet CREATE secrets garden/generated-bucket-x", "{}", `403 backupbuckets.core.gardener.cloud "x" not found`},
		"RES-29, unreadable":                {garden{"backupbuckets x": "error"}, "gardenlet CREATE secrets garden/generated-bucket-x", "{}", "500 fake-err"},
		"RES-29, another seed":              {garden{"backupbuckets x": on("y")}, "gardenlet CREATE secrets garden/generated-bucket-x", "{}", belongs},
		"RES-29, own":                       {garden{"backupbuckets x": on("seed")}, "gardenlet CREATE secrets garden/generated-bucket-x", "{}", "allowed"},
		"B/RES-29, another namespace":       {garden{"backupbuckets x": on("seed")}, "gardenlet CREATE secrets ns/generated-bucket-x", "{}", belongs},
		"RES-30, no shoot":                  {nil, "gardenlet CREATE secrets n/s.ssh-keypair", "{}", `403 shoots.core.gardener.cloud "s" not found`},
		"RES-30, unreadable":                {garden{"shoots n/s": "error"}, "gardenlet CREATE secrets n/s.ssh-keypair.old", "{}", "500 fake-err"},
		"RES-30, status counts not":         {garden{"shoots n/s": "{spec: {seedName: x}, status: {seedName: seed}}"}, "gardenlet CREATE secrets n/s.monitoring", "{}", belongs},
		"RES-30, own":                       {garden{"shoots n/s": on("seed")}, "gardenlet CREATE secrets n/s.ca-cluster", "{}", "allowed"},
		"RES-30, of old":                    {garden{"shoots n/s": on("seed")}, "gardenlet CREATE secrets n/s.kubeconfig", "{}", "allowed"},
		"RES-31, label 1":                   {nil, issuerSecret, text(builders.Secret("", "")), `422 label "shoot.gardener.cloud/name" is missing`},
		"RES-31, label 2":                   {nil, issuerSecret, text(builders.Secret("", "").Labelled("shoot.gardener.cloud/name", "s")), `422 label "shoot.gardener.cloud/namespace" is missing`},
		"RES-31, label 3":                   {nil, issuerSecret, issuer(), `422 label "discovery.gardener.cloud/public" is missing`},
		"RES-31, value":                     {nil, issuerSecret, text(builders.Secret("", "").Labelled("shoot.gardener.cloud/name", "s").Labelled("shoot.gardener.cloud/namespace", "ns").Labelled(public, "x")), `422 label "discovery.gardener.cloud/public" value must be set to "serviceaccount"`},
		"RES-31, no shoot":                  {nil, issuerSecret, issuer(public), `403 shoots.core.gardener.cloud "s" not found`},
		"RES-31, unreadable":                {garden{"shoots ns/s": "error"}, issuerSecret, issuer(public), "500 fake-err"},
		"RES-31, another":                   {garden{"shoots ns/s": on("x")}, issuerSecret, issuer(public), belongs},
		"RES-31, own":                       {garden{"namespaces ns": "{metadata: {labels: {project.gardener.cloud/name: dev}}}", "shoots ns/s": "{metadata: {uid: u}, spec: {seedName: seed}}"}, issuerSecret, issuer(public), "allowed"},
		"D-10/RES-31, of old":               {garden{"namespaces ns": "{metadata: {labels: {project.gardener.cloud/name: dev}}}", "shoots ns/s": "{metadata: {uid: u}, spec: {seedName: seed}}"}, issuerSecret, issuer(ofOld), "allowed"},
		"B/RES-31, another name":            {garden{"namespaces ns": "{metadata: {labels: {project.gardener.cloud/name: dev}}}", "shoots ns/s": "{metadata: {uid: v}, spec: {seedName: seed}}"}, issuerSecret, issuer(public), belongs},
		"B/RES-31, another project":         {garden{"namespaces ns": "{metadata: {labels: {project.gardener.cloud/name: other}}}", "shoots ns/s": "{metadata: {uid: u}, spec: {seedName: seed}}"}, issuerSecret, issuer(public), belongs},
		"B/RES-31, no project":              {garden{"namespaces ns": "{}", "shoots ns/s": "{metadata: {uid: u}, spec: {seedName: seed}}"}, "gardenlet CREATE secrets gardener-system-shoot-issuer/--u", issuer(public), belongs},
		"B/RES-31, namespace unreadable":    {garden{"namespaces ns": "error", "shoots ns/s": "{metadata: {uid: u}, spec: {seedName: seed}}"}, issuerSecret, issuer(public), "500 fake-err"},
		"RES-32, type":                      {nil, tokenSecret, "{type: Opaque}", `422 unexpected secret type: "Opaque"`},
		"RES-32, authentication":            {nil, tokenSecret, text(token("").Without("data.usage-bootstrap-authentication")), `422 "usage-bootstrap-authentication" must be set to 'true'`},
		"RES-32, signing":                   {nil, tokenSecret, text(token("").Without("data.usage-bootstrap-signing")), `422 "usage-bootstrap-signing" must be set to 'true'`},
		"RES-32, groups":                    {nil, tokenSecret, text(token("").With("data.auth-extra-groups", "eA==")), `422 "auth-extra-groups" must not be set`},
		"RES-32, another kind":              {nil, tokenSecret, text(token("secret words")), `400 unknown kind "" found in bootstrap token secret description`},
		"RES-26, no ManagedSeed":            {nil, tokenSecret, text(ofManagedSeed), `403 managedseeds.seedmanagement.gardener.cloud "m" not found`},
		"RES-26, unreadable":                {with("managedseeds garden/m", "error"), tokenSecret, text(ofManagedSeed), "500 fake-err"},
		"RES-26, no shoot":                  {with("shoots garden/s", ""), tokenSecret, text(ofManagedSeed), `500 shoots.core.gardener.cloud "s" not found`},
		"RES-26, another seed":              {with("shoots garden/s", on("x")), tokenSecret, text(ofManagedSeed), belongs},
		"RES-26, Seed unreadable":           {with("seeds m", "error"), tokenSecret, text(ofManagedSeed), "500 fake-err"},
		"RES-26, bootstrapped":              {with("seeds m", valid), tokenSecret, text(ofManagedSeed), "400 managed seed garden/m is already bootstrapped"},
		"RES-26, no Seed":                   {with(), tokenSecret, text(ofManagedSeed), "allowed"},
		"RES-26/Seeds are not served":       {with("seeds m", "unserved"), tokenSecret, text(ofManagedSeed), "500 the server could not find the requested resource (get seeds.core.gardener.cloud m)"},
		"RES-30/Shoots are not served":      {garden{"shoots n/s": "unserved"}, "gardenlet CREATE secrets n/s.monitoring", "{}", "500 the server could not find the requested resource (get shoots.core.gardener.cloud s)"},
		"RES-26, expired":                   {with("seeds m", expired), tokenSecret, text(ofManagedSeed), "allowed"},
		"RES-26, renews":                    {with("seeds m", valid, "managedseeds garden/m", "{"+renews+", spec: {shoot: {name: s}}}"), tokenSecret, text(ofManagedSeed), "allowed"},
		"RES-32/extension, ManagedSeed":     {with(), extensionsToken, text(ofManagedSeed), "403 extension client may not create bootstrap tokens"},
		"RES-32/extension, expired Seed":    {with("seeds m", expired), extensionsToken, text(ofManagedSeed), "403 extension client may not create bootstrap tokens"},
		"RES-32/extension, Gardenlet":       {with("seeds seed", expired), extensionsToken, text(ofGardenlet("garden/seed")), "403 extension client may not create bootstrap tokens"},
		"RES-32/extension, another's":       {with("shoots garden/s", on("x")), extensionsToken, text(ofManagedSeed), "403 extension client may not create bootstrap tokens"},
		"RES-32/extension, any content":     {nil, extensionsToken, "{type: Opaque}", "403 extension client may not create bootstrap tokens"},
		"RES-32/extension, it exists":       {garden{"secrets kube-system/bootstrap-token-abcdef": "{}"}, extensionsToken, text(ofManagedSeed), `409 secrets "bootstrap-token-abcdef" already exists`},
		"RES-34/a Shoot's":                  {garden{"shoots n/s": on("seed")}, "gardenlet CREATE secrets n/s.monitoring", ofAccount, accountRefused},
		"RES-34/a Shoot's, extension":       {garden{"shoots n/s": on("seed")}, "extension CREATE secrets n/s.monitoring", ofAccount, accountRefused},
		"RES-34/a bucket's":                 {garden{"backupbuckets x": on("seed")}, "gardenlet CREATE secrets garden/generated-bucket-x", ofAccount, accountRefused},
		"RES-34/an issuer's":                {nil, issuerSecret, ofAccount, accountRefused},
		"RES-34/a backup's":                 {garden{"shoots garden/s": on("seed"), "managedseeds garden/m": backupOf("s")}, "gardenlet CREATE secrets ns/b", ofAccount, accountRefused},
		"RES-34/a token's":                  {with(), tokenSecret, ofAccount, accountRefused},
		"RES-27, another name":              {with(), tokenSecret, text(ofGardenlet("garden/x")), `403 gardenlet garden/x does not belong to seed "seed"`},
		"RES-27, another namespace":         {with(), tokenSecret, text(ofGardenlet("ns/seed")), `403 gardenlet ns/seed does not belong to seed "seed"`},
		"RES-27, no Gardenlet":              {with("gardenlets garden/seed", ""), tokenSecret, text(ofGardenlet("garden/seed")), `403 gardenlets.seedmanagement.gardener.cloud "seed" not found`},
		"RES-27, no Seed":                   {with(), tokenSecret, text(ofGardenlet("garden/seed")), `403 seeds.core.gardener.cloud "seed" not found`},
		"RES-27, bootstrapped":              {with("seeds seed", valid), tokenSecret, text(ofGardenlet("garden/seed")), "400 gardenlet garden/seed is already bootstrapped"},
		"RES-27, expired":                   {with("seeds seed", expired), tokenSecret, text(ofGardenlet("garden/seed")), "allowed"},
		"RES-27, renews":                    {with("seeds seed", valid, "gardenlets garden/seed", "{"+renews+"}"), tokenSecret, text(ofGardenlet("garden/seed")), "allowed"},
		"RES-33, own":                       {garden{"managedseeds garden/m": backupOf("s"), "shoots garden/s": on("seed")}, "gardenlet CREATE secrets ns/b", "{}", "allowed"},
		"RES-33, another's":                 {garden{"managedseeds garden/m": backupOf("s"), "shoots garden/s": on("x")}, "gardenlet CREATE secrets ns/b", "{}", belongs},
		"RES-33, no template":               {garden{"managedseeds garden/m": text(managedSeed("s").SeedSpec("provider.type", "local")), "shoots garden/s": on("seed")}, "gardenlet CREATE secrets ns/b", "{}", belongs},
		"RES-33, another's broken":          {garden{"managedseeds garden/m": text(managedSeed("s").With("spec.gardenlet.config", map[string]any{})), "shoots garden/s": on("x"), "managedseeds garden/k": backupOf("t"), "shoots garden/t": on("seed")}, "gardenlet CREATE secrets ns/b", "{}", "allowed"},
		"B/RES-33, an unreadable shoot":     {garden{"managedseeds garden/m": backupOf("s"), "shoots garden/s": "error"}, "gardenlet CREATE secrets ns/b", "{}", "500 fake-err"},
		"RES-33, moves away":                {garden{"managedseeds garden/m": backupOf("s"), "shoots garden/s": "{spec: {seedName: x}, status: {seedName: seed}}"}, "gardenlet CREATE secrets ns/b", "{}", belongs},
		"RES-33, two name it":               {garden{"managedseeds garden/a": backupOf("t"), "shoots garden/t": on("x"), "managedseeds garden/m": backupOf("s"), "shoots garden/s": on("seed")}, "gardenlet CREATE secrets ns/b", "{}", "allowed"},
		"RES-33/one moves away, one is own": {garden{"managedseeds garden/a": backupOf("t"), "shoots garden/t": "{spec: {seedName: x}, status: {seedName: seed}}", "managedseeds garden/m": backupOf("s"), "shoots garden/s": on("seed")}, "gardenlet CREATE secrets ns/b", "{}", "allowed"},
		"RES-33, the child's own":           {garden{"managedseeds garden/seed": backupOf("s"), "shoots garden/s": on("x")}, "gardenlet CREATE secrets ns/b", "{}", belongs},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, decided(t, c.garden, c.question, c.object), c.want)
		})
	}
}

// token is the Secret of a bootstrap token with a description.
func token(description string) *builders.Object {
	data := map[string]any{"usage-bootstrap-authentication": []byte("true"), "usage-bootstrap-signing": []byte("true"), "description": []byte(description)}
	return builders.Secret("", "").With("type", "bootstrap.kubernetes.io/token").With("data", data)
}

// bootstrapToken is the one that a gardenlet of an object joins with.
func bootstrapToken(kind, object string) *builders.Object {
	return token("A bootstrap token for the Gardenlet for seedmanagement.gardener.cloud/v1alpha1." + kind + " resource " + object + ".")
}

type panics struct{ garden }

func (panics) Get(context.Context, schema.GroupVersionResource, string, string, runtime.Object) error {
	panic("boom")
}

func TestPanic_IsRefused(t *testing.T) {
	h := &Handler{Reader: panics{garden{}}, Graph: graphOf(t, garden{}), Clock: clocktesting.NewFakePassiveClock(now), Log: logr.Discard()}
	response := respond(h.Decide, ask(t, "gardenlet CREATE shootstates n/x", "{}"))
	expect.True(t, !response.Allowed && response.Result.Code == 500, "CW-2: got %+v", response)
}

func FuzzHandle(f *testing.F) {
	f.Add("secrets", "kube-system", "bootstrap-token-x", []byte(`{"type":"bootstrap.kubernetes.io/token"}`))
	f.Add("certificatesigningrequests", "", "x", []byte(`{"spec":{"request":"AAAA"}}`))
	f.Fuzz(func(t *testing.T, resource, namespace, name string, object []byte) {
		h := &Handler{Reader: garden{}, Graph: graphOf(t, garden{}), Clock: clocktesting.NewFakePassiveClock(now), Log: logr.Discard()}
		r := ask(t, "gardenlet CREATE", "{}")
		r.Resource = metav1.GroupVersionResource{Group: apiGroups[resource], Version: "v1", Resource: resource}
		r.Namespace, r.Name, r.Object.Raw = namespace, name, object
		yamltest.Bounded(t, len(object), func() {
			expect.True(t, respond(h.Decide, r).Result != nil, "there is no result")
		})
	})
}

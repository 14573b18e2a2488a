package restriction

import (
	"cmp"
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

func TestSeedRestriction_RefusesUnexpectedRequests(t *testing.T) {
	for name, c := range map[string]struct {
		garden           garden
		question, object string
		want             string
	}{
		"RES-1, no client of a seed":                {question: "other CREATE shoots n/x", want: "allowed"},
		"ID-8/no client of a seed":                  {question: "other CREATE bastions n/x", object: on("other"), want: "allowed"},
		"ID-7/BH-SR-2, a client of a seed":          {question: "gardenlet CREATE bastions n/x", object: on("other"), want: `403 object does not belong to seed "seed"`},
		"RES-4, no resource":                        {question: "gardenlet CREATE", want: `400 unexpected resource: ""`},
		"D-6/RES-3, another resource":               {question: "gardenlet CREATE quotas n/x", want: `400 unexpected resource: "quotas.core.gardener.cloud"`},
		"RES-2, it exists":                          {garden: garden{"backupentries n/x": "{}"}, question: "gardenlet CREATE backupentries n/x", want: `409 backupentries.core.gardener.cloud "x" already exists`},
		"RES-2/what is admitted is not asked about": {garden: garden{"bastions n/x": "{}"}, question: "gardenlet CREATE bastions n/x", object: on("seed"), want: "allowed"},
		"RES-2/it exists and is not even readable":  {garden: garden{"secrets kube-system/bootstrap-token-abcdef": "{}"}, question: "gardenlet CREATE secrets kube-system/bootstrap-token-abcdef", object: "{type: bootstrap.kubernetes.io/token, data: {auth-extra-groups: eA==}}", want: `409 secrets "bootstrap-token-abcdef" already exists`},
		"RES-2/an error is no refusal":              {garden: garden{"shoots n/s": "error", "configmaps n/s.ca-cluster": "{}"}, question: "gardenlet CREATE configmaps n/s.ca-cluster", want: "500 fake-err"},
		"RES-2, it cannot be read":                  {garden: garden{"backupentries n/x": "error"}, question: "gardenlet CREATE backupentries n/x", want: `403 object does not belong to seed "seed"`},
		"RES-5, before the client's type":           {question: "extension UPDATE certificatesigningrequests x", want: `400 unexpected operation: "UPDATE"`},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, decided(t, c.garden, c.question, cmp.Or(c.object, "{}")), c.want)
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
		"RES-28, no shoot":               {question: "gardenlet CREATE shootstates n/foo", want: `500 shoots.core.gardener.cloud "foo" not found`},
		"RES-28, no seed":                {garden: garden{"shoots n/foo": "{}"}, question: "gardenlet CREATE shootstates n/foo", want: belongs},
		"RES-28, another seed":           {garden: garden{"shoots n/foo": on("x")}, question: "gardenlet CREATE shootstates n/foo", want: belongs},
		"RES-28, spec":                   {garden: garden{"shoots n/foo": on("seed")}, question: "gardenlet CREATE shootstates n/foo", want: "allowed"},
		"RES-28, status":                 {garden: garden{"shoots n/foo": "{spec: {seedName: x}, status: {seedName: seed}}"}, question: "extension CREATE shootstates n/foo", want: "allowed"},
		"RES-11, no seed":                {question: "gardenlet CREATE backupbuckets x", want: belongs},
		"RES-11, another seed":           {question: "gardenlet CREATE backupbuckets x", object: on("x"), want: belongs},
		"RES-11, own":                    {question: "gardenlet CREATE backupbuckets x", object: on("seed"), want: "allowed"},
		"RES-12, no seed":                {question: "gardenlet DELETE backupbuckets x", object: "null", want: `500 seeds.core.gardener.cloud "seed" not found`},
		"RES-12, another bucket":         {garden: garden{"seeds seed": "{metadata: {uid: u}}"}, question: "gardenlet DELETE backupbuckets x", object: "null", want: "403 cannot delete unrelated BackupBucket"},
		"RES-12, all of them":            {garden: garden{"seeds seed": "{}"}, question: "gardenlet DELETE backupbuckets", object: "null", want: "403 cannot delete unrelated BackupBucket"},
		"RES-12, own":                    {garden: garden{"seeds seed": "{metadata: {uid: x}}"}, question: "gardenlet DELETE backupbuckets x", object: "null", want: "allowed"},
		"RES-7, RES-13, another seed":    {question: "gardenlet CREATE backupentries n/e", object: on("x"), want: belongs},
		"RES-13, no bucket":              {question: "gardenlet CREATE backupentries n/e", object: "{spec: {seedName: seed, bucketName: b}}", want: `500 backupbuckets.core.gardener.cloud "b" not found`},
		"RES-13, bucket, no seed":        {garden: garden{"backupbuckets b": "{}"}, question: "gardenlet CREATE backupentries n/e", object: "{spec: {seedName: seed, bucketName: b}}", want: belongs},
		"RES-13, bucket elsewhere":       {garden: garden{"backupbuckets b": on("x")}, question: "gardenlet CREATE backupentries n/e", object: "{spec: {seedName: seed, bucketName: b}}", want: belongs},
		"RES-13, own":                    {garden: garden{"backupbuckets b": on("seed")}, question: "gardenlet CREATE backupentries n/e", object: "{spec: {seedName: seed, bucketName: b}}", want: "allowed"},
		"RES-14, no shoot":               {question: "gardenlet CREATE backupentries n/source-e", object: source, want: `500 shoots.core.gardener.cloud "s" not found`},
		"RES-14, nothing is done":        {garden: garden{"shoots n/s": on("seed")}, question: "gardenlet CREATE backupentries n/source-e", object: source, want: "403 creation of source BackupEntry is only allowed during shoot Restore operation (shoot: s)"},
		"RES-14, migrates":               {garden: garden{"shoots n/s": "{status: {lastOperation: {type: Migrate, state: Processing}}}"}, question: "gardenlet CREATE backupentries n/source-e", object: source, want: "403 creation of source BackupEntry is only allowed during shoot Restore operation (shoot: s)"},
		"RES-14, restored":               {garden: garden{"shoots n/s": "{status: {lastOperation: {type: Restore, state: Succeeded}}}"}, question: "gardenlet CREATE backupentries n/source-e", object: source, want: "403 creation of source BackupEntry is only allowed during shoot Restore operation (shoot: s)"},
		"RES-14, no original":            {garden: garden{"shoots n/s": restoring}, question: "gardenlet CREATE backupentries n/source-e", object: source, want: `403 could not find original BackupEntry e: backupentries.core.gardener.cloud "e" not found`},
		"RES-14, unreadable":             {garden: garden{"shoots n/s": restoring, "backupentries n/e": "error"}, question: "gardenlet CREATE backupentries n/source-e", object: source, want: "500 fake-err"},
		"RES-14, other spec":             {garden: garden{"shoots n/s": restoring, "backupentries n/e": "{spec: {seedName: seed, bucketName: b, more: 2}}"}, question: "gardenlet CREATE backupentries n/source-e", object: source, want: "403 specification of source BackupEntry must equal specification of original BackupEntry e"},
		"RES-14, same spec":              {garden: garden{"shoots n/s": restoring, "backupentries n/e": "{spec: {more: 1, bucketName: b, seedName: seed}}"}, question: "gardenlet CREATE backupentries n/source-e", object: source, want: "allowed"},
		"RES-15, own":                    {question: "gardenlet CREATE bastions n/b", object: on("seed"), want: "allowed"},
		"RES-15, another":                {question: "gardenlet CREATE bastions n/b", object: on("x"), want: belongs},
		"RES-23, create":                 {question: "gardenlet CREATE seeds seed", want: "allowed"},
		"RES-23, generated name":         {question: "gardenlet CREATE seeds", want: belongs},
		"RES-23, update":                 {question: "gardenlet UPDATE seeds seed", want: "allowed"},
		"RES-23, another":                {question: "gardenlet UPDATE seeds x", want: belongs},
		"RES-24, own":                    {question: "gardenlet DELETE seeds seed", object: "null", want: "allowed"},
		"RES-24, no ManagedSeed":         {question: "gardenlet DELETE seeds m", object: "null", want: belongs},
		"RES-24, all of them":            {question: "gardenlet DELETE seeds", object: "null", want: belongs},
		"RES-24, unreadable":             {garden: garden{"managedseeds garden/m": "error"}, question: "gardenlet DELETE seeds m", object: "null", want: "500 fake-err"},
		"RES-24, not deleted":            {garden: managed, question: "gardenlet DELETE seeds m", object: "null", want: "403 object can only be deleted if corresponding ManagedSeed has a deletion timestamp"},
		"RES-24, no shoot":               {garden: garden{"managedseeds garden/m": "{metadata: {deletionTimestamp: 2026-11-21T11:00:00Z}}"}, question: "gardenlet DELETE seeds m", object: "null", want: belongs},
		"RES-24, shoot is gone":          {garden: garden{"managedseeds garden/m": deleted}, question: "gardenlet DELETE seeds m", object: "null", want: `500 shoots.core.gardener.cloud "s" not found`},
		"RES-24, shoot elsewhere":        {garden: garden{"managedseeds garden/m": deleted, "shoots garden/s": on("x")}, question: "gardenlet DELETE seeds m", object: "null", want: belongs},
		"RES-24, own shoot":              {garden: garden{"managedseeds garden/m": deleted, "shoots garden/s": on("seed")}, question: "gardenlet DELETE seeds m", object: "null", want: "allowed"},
		"RES-18, another name":           {question: "gardenlet CREATE configmaps n/x", want: belongs},
		"RES-18, no shoot":               {question: "gardenlet CREATE configmaps n/s.ca-cluster", want: `403 shoots.core.gardener.cloud "s" not found`},
		"RES-18, unreadable":             {garden: garden{"shoots n/s": "error"}, question: "gardenlet CREATE configmaps n/s.ca-cluster", want: "500 fake-err"},
		"RES-18, elsewhere":              {garden: garden{"shoots n/s": on("x")}, question: "gardenlet CREATE configmaps n/s.ca-kubelet", want: belongs},
		"RES-18, own":                    {garden: garden{"shoots n/s": on("seed")}, question: "gardenlet CREATE configmaps n/s.ca-kubelet", want: "allowed"},
		"RES-20, own":                    {garden: garden{"shoots n/s": on("seed")}, question: "gardenlet CREATE internalsecrets n/s.ca-client", want: "allowed"},
		"RES-20, another name":           {question: "gardenlet CREATE internalsecrets n/s.ca-cluster", want: belongs},
		"RES-16, usages":                 {question: "gardenlet CREATE certificatesigningrequests x", object: csr("seed", "server auth"), want: "403 can only create CSRs for seed clusters: key usages are not set to [key encipherment digital signature client auth]"},
		"RES-16, another seed":           {question: "gardenlet CREATE certificatesigningrequests x", object: csr("x", usages), want: belongs},
		"RES-16, own":                    {question: "gardenlet CREATE certificatesigningrequests x", object: csr("seed", usages), want: "allowed"},
		"RES-16, extension":              {question: "extension CREATE certificatesigningrequests x", object: csr("seed", usages), want: "403 extension client may not create CertificateSigningRequests"},
		"RES-16/no request":              {question: "gardenlet CREATE certificatesigningrequests x", want: "400 PEM block type must be CERTIFICATE REQUEST"},
		"RES-17, another name":           {question: "gardenlet CREATE clusterrolebindings x", want: belongs},
		"RES-17, another role":           {question: "gardenlet CREATE clusterrolebindings " + bootstrapper, want: "403 can only bindings referring to the bootstrapper role"},
		"RES-17, extension":              {question: "extension CREATE clusterrolebindings " + bootstrapper, want: "403 extension client may not create ClusterRoleBindings"},
		"RES-17, no ManagedSeed":         {question: "gardenlet CREATE clusterrolebindings " + bootstrapper, object: binding(account), want: `403 managedseeds.seedmanagement.gardener.cloud "m" not found`},
		"B/RES-17, no subject":           {garden: managed, question: "gardenlet CREATE clusterrolebindings " + bootstrapper, object: binding(), want: "403 can only bind ServiceAccount garden/gardenlet-bootstrap-m"},
		"B/RES-17, one subject too many": {garden: managed, question: "gardenlet CREATE clusterrolebindings " + bootstrapper, object: binding(account, account), want: "403 can only bind ServiceAccount garden/gardenlet-bootstrap-m"},
		"RES-17, allowed":                {garden: managed, question: "gardenlet CREATE clusterrolebindings " + bootstrapper, object: binding(account), want: "allowed"},
		"B/RES-17, another subject":      {garden: managed, question: "gardenlet CREATE clusterrolebindings " + bootstrapper, object: binding(map[string]any{"kind": "User", "name": "u"}), want: "403 can only bind ServiceAccount garden/gardenlet-bootstrap-m"},
		"RES-19, namespace":              {question: "gardenlet CREATE gardenlets n/seed", want: `400 object must be in namespace: "garden"`},
		"RES-19, another":                {question: "gardenlet CREATE gardenlets garden/x", want: belongs},
		"RES-19, own":                    {question: "gardenlet CREATE gardenlets garden/seed", want: "allowed"},
		"RES-21, another":                {question: "gardenlet CREATE leases gardener-system-seed-lease/x", want: belongs},
		"RES-21, own":                    {question: "gardenlet CREATE leases gardener-system-seed-lease/seed", want: "allowed"},
		"RES-21, election":               {question: "gardenlet CREATE leases n/gardenlet-leader-election", want: "allowed"},
		"RES-21, elsewhere":              {question: "gardenlet CREATE leases n/x", want: belongs},
		"BH-SR-6, extension 1":           {question: "extension CREATE leases n/gardenlet-leader-election", want: `403 extension client can only create leases in the namespace for seed "seed"`},
		"BH-SR-6, extension 2":           {question: "extension CREATE leases gardener-system-seed-lease/seed", want: `403 extension client can only create leases in the namespace for seed "seed"`},
		"BH-SR-6, extension 3":           {question: "extension CREATE leases seed-seed/anything", want: "allowed"},
		"RES-25, own namespace":          {question: "gardenlet CREATE serviceaccounts seed-seed/x", want: "allowed"},
		"RES-25, bootstrap first":        {question: "gardenlet CREATE serviceaccounts seed-seed/gardenlet-bootstrap-x", want: `403 managedseeds.seedmanagement.gardener.cloud "x" not found`},
		"RES-25, bootstrap":              {garden: managed, question: "gardenlet CREATE serviceaccounts garden/gardenlet-bootstrap-m", want: "allowed"},
		"RES-25, elsewhere":              {question: "gardenlet CREATE serviceaccounts n/x", want: belongs},
		"RES-25, extension":              {question: "extension CREATE serviceaccounts seed-seed/x", want: "403 extension client may not create ServiceAccounts"},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, decided(t, c.garden, c.question, cmp.Or(c.object, "{}")), c.want)
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
		"RES-33, unrelated":                 {question: "gardenlet CREATE secrets n/x", want: belongs},
		"RES-22, RES-29, no bucket":         {question: "gardenlet CREATE secrets garden/generated-bucket-x", want: `403 backupbuckets.core.gardener.cloud "x" not found`},
		"RES-29, unreadable":                {garden: garden{"backupbuckets x": "error"}, question: "gardenlet CREATE secrets garden/generated-bucket-x", want: "500 fake-err"},
		"RES-29, another seed":              {garden: garden{"backupbuckets x": on("y")}, question: "gardenlet CREATE secrets garden/generated-bucket-x", want: belongs},
		"RES-29, own":                       {garden: garden{"backupbuckets x": on("seed")}, question: "gardenlet CREATE secrets garden/generated-bucket-x", want: "allowed"},
		"B/RES-29, another namespace":       {garden: garden{"backupbuckets x": on("seed")}, question: "gardenlet CREATE secrets ns/generated-bucket-x", want: belongs},
		"RES-30, no shoot":                  {question: "gardenlet CREATE secrets n/s.ssh-keypair", want: `403 shoots.core.gardener.cloud "s" not found`},
		"RES-30, unreadable":                {garden: garden{"shoots n/s": "error"}, question: "gardenlet CREATE secrets n/s.ssh-keypair.old", want: "500 fake-err"},
		"RES-30, status counts not":         {garden: garden{"shoots n/s": "{spec: {seedName: x}, status: {seedName: seed}}"}, question: "gardenlet CREATE secrets n/s.monitoring", want: belongs},
		"RES-30, own":                       {garden: garden{"shoots n/s": on("seed")}, question: "gardenlet CREATE secrets n/s.ca-cluster", want: "allowed"},
		"RES-30, of old":                    {garden: garden{"shoots n/s": on("seed")}, question: "gardenlet CREATE secrets n/s.kubeconfig", want: "allowed"},
		"RES-31, label 1":                   {question: issuerSecret, object: text(builders.Secret("", "")), want: `422 label "shoot.gardener.cloud/name" is missing`},
		"RES-31, label 2":                   {question: issuerSecret, object: text(builders.Secret("", "").Labelled("shoot.gardener.cloud/name", "s")), want: `422 label "shoot.gardener.cloud/namespace" is missing`},
		"RES-31, label 3":                   {question: issuerSecret, object: issuer(), want: `422 label "discovery.gardener.cloud/public" is missing`},
		"RES-31, value":                     {question: issuerSecret, object: text(builders.Secret("", "").Labelled("shoot.gardener.cloud/name", "s").Labelled("shoot.gardener.cloud/namespace", "ns").Labelled(public, "x")), want: `422 label "discovery.gardener.cloud/public" value must be set to "serviceaccount"`},
		"RES-31, no shoot":                  {question: issuerSecret, object: issuer(public), want: `403 shoots.core.gardener.cloud "s" not found`},
		"RES-31, unreadable":                {garden: garden{"shoots ns/s": "error"}, question: issuerSecret, object: issuer(public), want: "500 fake-err"},
		"RES-31, another":                   {garden: garden{"shoots ns/s": on("x")}, question: issuerSecret, object: issuer(public), want: belongs},
		"RES-31, own":                       {garden: garden{"namespaces ns": "{metadata: {labels: {project.gardener.cloud/name: dev}}}", "shoots ns/s": "{metadata: {uid: u}, spec: {seedName: seed}}"}, question: issuerSecret, object: issuer(public), want: "allowed"},
		"D-10/RES-31, of old":               {garden: garden{"namespaces ns": "{metadata: {labels: {project.gardener.cloud/name: dev}}}", "shoots ns/s": "{metadata: {uid: u}, spec: {seedName: seed}}"}, question: issuerSecret, object: issuer(ofOld), want: "allowed"},
		"B/RES-31, another name":            {garden: garden{"namespaces ns": "{metadata: {labels: {project.gardener.cloud/name: dev}}}", "shoots ns/s": "{metadata: {uid: v}, spec: {seedName: seed}}"}, question: issuerSecret, object: issuer(public), want: belongs},
		"B/RES-31, another project":         {garden: garden{"namespaces ns": "{metadata: {labels: {project.gardener.cloud/name: other}}}", "shoots ns/s": "{metadata: {uid: u}, spec: {seedName: seed}}"}, question: issuerSecret, object: issuer(public), want: belongs},
		"B/RES-31, no project":              {garden: garden{"namespaces ns": "{}", "shoots ns/s": "{metadata: {uid: u}, spec: {seedName: seed}}"}, question: "gardenlet CREATE secrets gardener-system-shoot-issuer/--u", object: issuer(public), want: belongs},
		"B/RES-31, namespace unreadable":    {garden: garden{"namespaces ns": "error", "shoots ns/s": "{metadata: {uid: u}, spec: {seedName: seed}}"}, question: issuerSecret, object: issuer(public), want: "500 fake-err"},
		"RES-32, type":                      {question: tokenSecret, object: "{type: Opaque}", want: `422 unexpected secret type: "Opaque"`},
		"RES-32, authentication":            {question: tokenSecret, object: text(token("").Without("data.usage-bootstrap-authentication")), want: `422 "usage-bootstrap-authentication" must be set to 'true'`},
		"RES-32, signing":                   {question: tokenSecret, object: text(token("").Without("data.usage-bootstrap-signing")), want: `422 "usage-bootstrap-signing" must be set to 'true'`},
		"RES-32, groups":                    {question: tokenSecret, object: text(token("").With("data.auth-extra-groups", "eA==")), want: `422 "auth-extra-groups" must not be set`},
		"RES-32, another kind":              {question: tokenSecret, object: text(token("secret words")), want: `400 unknown kind "" found in bootstrap token secret description`},
		"RES-26, no ManagedSeed":            {question: tokenSecret, object: text(ofManagedSeed), want: `403 managedseeds.seedmanagement.gardener.cloud "m" not found`},
		"RES-26, unreadable":                {garden: with("managedseeds garden/m", "error"), question: tokenSecret, object: text(ofManagedSeed), want: "500 fake-err"},
		"RES-26, no shoot":                  {garden: with("shoots garden/s", ""), question: tokenSecret, object: text(ofManagedSeed), want: `500 shoots.core.gardener.cloud "s" not found`},
		"RES-26, another seed":              {garden: with("shoots garden/s", on("x")), question: tokenSecret, object: text(ofManagedSeed), want: belongs},
		"RES-26, Seed unreadable":           {garden: with("seeds m", "error"), question: tokenSecret, object: text(ofManagedSeed), want: "500 fake-err"},
		"RES-26, bootstrapped":              {garden: with("seeds m", valid), question: tokenSecret, object: text(ofManagedSeed), want: "400 managed seed garden/m is already bootstrapped"},
		"RES-26, no Seed":                   {garden: with(), question: tokenSecret, object: text(ofManagedSeed), want: "allowed"},
		"RES-26/Seeds are not served":       {garden: with("seeds m", "unserved"), question: tokenSecret, object: text(ofManagedSeed), want: "500 the server could not find the requested resource (get seeds.core.gardener.cloud m)"},
		"RES-30/Shoots are not served":      {garden: garden{"shoots n/s": "unserved"}, question: "gardenlet CREATE secrets n/s.monitoring", want: "500 the server could not find the requested resource (get shoots.core.gardener.cloud s)"},
		"RES-26, expired":                   {garden: with("seeds m", expired), question: tokenSecret, object: text(ofManagedSeed), want: "allowed"},
		"RES-26, renews":                    {garden: with("seeds m", valid, "managedseeds garden/m", "{"+renews+", spec: {shoot: {name: s}}}"), question: tokenSecret, object: text(ofManagedSeed), want: "allowed"},
		"RES-32/extension, ManagedSeed":     {garden: with(), question: extensionsToken, object: text(ofManagedSeed), want: "403 extension client may not create bootstrap tokens"},
		"RES-32/extension, expired Seed":    {garden: with("seeds m", expired), question: extensionsToken, object: text(ofManagedSeed), want: "403 extension client may not create bootstrap tokens"},
		"RES-32/extension, Gardenlet":       {garden: with("seeds seed", expired), question: extensionsToken, object: text(ofGardenlet("garden/seed")), want: "403 extension client may not create bootstrap tokens"},
		"RES-32/extension, another's":       {garden: with("shoots garden/s", on("x")), question: extensionsToken, object: text(ofManagedSeed), want: "403 extension client may not create bootstrap tokens"},
		"RES-32/extension, any content":     {question: extensionsToken, object: "{type: Opaque}", want: "403 extension client may not create bootstrap tokens"},
		"RES-32/extension, it exists":       {garden: garden{"secrets kube-system/bootstrap-token-abcdef": "{}"}, question: extensionsToken, object: text(ofManagedSeed), want: `409 secrets "bootstrap-token-abcdef" already exists`},
		"RES-34/a Shoot's":                  {garden: garden{"shoots n/s": on("seed")}, question: "gardenlet CREATE secrets n/s.monitoring", object: ofAccount, want: accountRefused},
		"RES-34/a Shoot's, extension":       {garden: garden{"shoots n/s": on("seed")}, question: "extension CREATE secrets n/s.monitoring", object: ofAccount, want: accountRefused},
		"RES-34/a bucket's":                 {garden: garden{"backupbuckets x": on("seed")}, question: "gardenlet CREATE secrets garden/generated-bucket-x", object: ofAccount, want: accountRefused},
		"RES-34/an issuer's":                {question: issuerSecret, object: ofAccount, want: accountRefused},
		"RES-34/a backup's":                 {garden: garden{"shoots garden/s": on("seed"), "managedseeds garden/m": backupOf("s")}, question: "gardenlet CREATE secrets ns/b", object: ofAccount, want: accountRefused},
		"RES-34/a token's":                  {garden: with(), question: tokenSecret, object: ofAccount, want: accountRefused},
		"RES-27, another name":              {garden: with(), question: tokenSecret, object: text(ofGardenlet("garden/x")), want: `403 gardenlet garden/x does not belong to seed "seed"`},
		"RES-27, another namespace":         {garden: with(), question: tokenSecret, object: text(ofGardenlet("ns/seed")), want: `403 gardenlet ns/seed does not belong to seed "seed"`},
		"RES-27, no Gardenlet":              {garden: with("gardenlets garden/seed", ""), question: tokenSecret, object: text(ofGardenlet("garden/seed")), want: `403 gardenlets.seedmanagement.gardener.cloud "seed" not found`},
		"RES-27, no Seed":                   {garden: with(), question: tokenSecret, object: text(ofGardenlet("garden/seed")), want: `403 seeds.core.gardener.cloud "seed" not found`},
		"RES-27, bootstrapped":              {garden: with("seeds seed", valid), question: tokenSecret, object: text(ofGardenlet("garden/seed")), want: "400 gardenlet garden/seed is already bootstrapped"},
		"RES-27, expired":                   {garden: with("seeds seed", expired), question: tokenSecret, object: text(ofGardenlet("garden/seed")), want: "allowed"},
		"RES-27, renews":                    {garden: with("seeds seed", valid, "gardenlets garden/seed", "{"+renews+"}"), question: tokenSecret, object: text(ofGardenlet("garden/seed")), want: "allowed"},
		"RES-33, own":                       {garden: garden{"managedseeds garden/m": backupOf("s"), "shoots garden/s": on("seed")}, question: "gardenlet CREATE secrets ns/b", want: "allowed"},
		"RES-33, another's":                 {garden: garden{"managedseeds garden/m": backupOf("s"), "shoots garden/s": on("x")}, question: "gardenlet CREATE secrets ns/b", want: belongs},
		"RES-33, no template":               {garden: garden{"managedseeds garden/m": text(managedSeed("s").SeedSpec("provider.type", "local")), "shoots garden/s": on("seed")}, question: "gardenlet CREATE secrets ns/b", want: belongs},
		"RES-33, another's broken":          {garden: garden{"managedseeds garden/m": text(managedSeed("s").With("spec.gardenlet.config", map[string]any{})), "shoots garden/s": on("x"), "managedseeds garden/k": backupOf("t"), "shoots garden/t": on("seed")}, question: "gardenlet CREATE secrets ns/b", want: "allowed"},
		"B/RES-33, an unreadable shoot":     {garden: garden{"managedseeds garden/m": backupOf("s"), "shoots garden/s": "error"}, question: "gardenlet CREATE secrets ns/b", want: "500 fake-err"},
		"RES-33, moves away":                {garden: garden{"managedseeds garden/m": backupOf("s"), "shoots garden/s": "{spec: {seedName: x}, status: {seedName: seed}}"}, question: "gardenlet CREATE secrets ns/b", want: belongs},
		"RES-33, two name it":               {garden: garden{"managedseeds garden/a": backupOf("t"), "shoots garden/t": on("x"), "managedseeds garden/m": backupOf("s"), "shoots garden/s": on("seed")}, question: "gardenlet CREATE secrets ns/b", want: "allowed"},
		"RES-33/one moves away, one is own": {garden: garden{"managedseeds garden/a": backupOf("t"), "shoots garden/t": "{spec: {seedName: x}, status: {seedName: seed}}", "managedseeds garden/m": backupOf("s"), "shoots garden/s": on("seed")}, question: "gardenlet CREATE secrets ns/b", want: "allowed"},
		"RES-33, the child's own":           {garden: garden{"managedseeds garden/seed": backupOf("s"), "shoots garden/s": on("x")}, question: "gardenlet CREATE secrets ns/b", want: belongs},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, decided(t, c.garden, c.question, cmp.Or(c.object, "{}")), c.want)
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

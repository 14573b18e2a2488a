package tokenrequestor

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/controller/kit"
	"github.com/espalier-project/espalier/internal/controller/tokenrequestor/token"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

var key = types.NamespacedName{Namespace: "shoot", Name: "s"}

// fixture is a source and a target whose tokens are token-1, token-2, … and live for an hour more than was asked for, unless a test says otherwise.
type fixture struct {
	*Reconciler
	*testing.T
	source, target client.Client
	clock          *clocktesting.FakePassiveClock
	registry       *prometheus.Registry
	issued         []authenticationv1.TokenRequestSpec
	lifetime       time.Duration
	// web has tokens say when they expire.
	web bool
	// rejected are tokens that the target does not accept, reviews what it was asked about; beforePatch runs ahead of a patch of the source.
	rejected    map[string]bool
	reviews     []authenticationv1.TokenReviewSpec
	reviewErr   error
	beforePatch func()
	patches     int
	ca          string
	output      *strings.Builder
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{T: t, clock: clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), rejected: map[string]bool{}, registry: prometheus.NewRegistry(), output: &strings.Builder{}, ca: "ca"}
	known := runtime.NewScheme() // The fake client walks through all kinds with each patch.
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, authenticationv1.AddToScheme} {
		must.Succeed(t, add(known))
	}
	f.source = crfake.NewClientBuilder().WithScheme(known).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if f.beforePatch != nil {
				before := f.beforePatch
				f.beforePatch = nil
				before()
			}
			f.patches++
			return c.Patch(ctx, object, patch, opts...)
		},
	}).Build()
	f.target = crfake.NewClientBuilder().WithScheme(known).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.CreateOption) error {
			if review, ok := object.(*authenticationv1.TokenReview); ok {
				f.reviews = append(f.reviews, review.Spec)
				review.Status.Authenticated = !f.rejected[review.Spec.Token]
				return f.reviewErr
			}
			return c.Create(ctx, object, opts...)
		},
		SubResourceCreate: func(_ context.Context, _ client.Client, sub string, account, object client.Object, _ ...client.SubResourceCreateOption) error {
			request := object.(*authenticationv1.TokenRequest)
			expect.True(t, sub == "token" && account.GetName() == "sa" && account.GetNamespace() == "ns",
				"TR-16: asked %s of %s/%s", sub, account.GetNamespace(), account.GetName())
			f.issued = append(f.issued, request.Spec)
			lifetime := f.lifetime
			if lifetime == 0 {
				lifetime = time.Duration(*request.Spec.ExpirationSeconds) * time.Second
			}
			request.Status = authenticationv1.TokenRequestStatus{Token: fmt.Sprintf("token-%d", len(f.issued)), ExpirationTimestamp: metav1.NewTime(f.clock.Now().Add(lifetime))}
			if f.web {
				claims := fmt.Sprintf(`{"exp":%d,"jti":"%d"}`, request.Status.ExpirationTimestamp.Unix(), len(f.issued))
				request.Status.Token = "x." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".x"
			}
			return nil
		},
	}).Build()
	f.Reconciler = New(Options{
		Config: config.TokenRequestorControllerConfig{Class: ptr.To("shoot")}, Source: f.source, Target: f.target, CA: func() ([]byte, error) { return []byte(f.ca), nil },
		Notes: kit.NewNotes(f.source, f.clock, "token-requestor-controller"), Metrics: NewMetrics(f.registry), Clock: f.clock,
	})
	return f
}

func kubeconfig(token string) string {
	return "current-context: x\ncontexts:\n  - name: x\n    context:\n      cluster: c\n      user: u\nclusters:\n  - name: c\n    cluster:\n      server: https://x\nusers:\n  - name: u\n    user:\n      token: " + token + "\n"
}

func (f *fixture) given(data map[string]string, annotations ...string) *corev1.Secret {
	f.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: key.Namespace, Name: key.Name, UID: "secret", Labels: map[string]string{token.LabelPurpose: token.PurposeRequest, token.LabelClass: "shoot", "l": "l"},
		Annotations: map[string]string{token.AnnotationName: "sa", token.AnnotationNamespace: "ns", "a": "a"},
	}, Data: map[string][]byte{}}
	for k, v := range data {
		secret.Data[k] = []byte(v)
	}
	for i := 0; i < len(annotations); i += 2 {
		secret.Annotations[annotations[i]] = annotations[i+1]
	}
	must.Succeed(f, f.source.Create(f.Context(), secret))
	return secret
}

func (f *fixture) run() (reconcile.Result, error) {
	f.Helper()
	ctx := log.IntoContext(f.Context(), funcr.New(func(_, args string) { f.output.WriteString(args) }, funcr.Options{Verbosity: 9}))
	return f.Reconcile(ctx, reconcile.Request{NamespacedName: key})
}

// after runs and wants the next run within 5 % ahead of a time.
func (f *fixture) after(want time.Duration) {
	f.Helper()
	result, err := f.run()
	must.Succeed(f, err)
	if got := result.RequeueAfter; got > want || got < want/100*95 {
		f.Errorf("the next run is in %s, want at most 5%% less than %s", got, want)
	}
}

func (f *fixture) secret(c client.Client, namespace, name string) *corev1.Secret {
	f.Helper()
	secret := &corev1.Secret{}
	must.Succeed(f, c.Get(f.Context(), client.ObjectKey{Namespace: namespace, Name: name}, secret))
	return secret
}

func (f *fixture) data(c client.Client, namespace, name string) map[string]string {
	f.Helper()
	data := map[string]string{}
	for k, v := range f.secret(c, namespace, name).Data {
		data[k] = string(v)
	}
	return data
}

func (f *fixture) wants(c client.Client, namespace, name string, want map[string]string) {
	f.Helper()
	got := f.data(c, namespace, name)
	for _, data := range []map[string]string{want, got} { // The order of the fields does not matter.
		if content, found := data["kubeconfig"]; found {
			json, err := yaml.YAMLToJSON([]byte(content))
			must.Succeed(f, err)
			data["kubeconfig"] = string(json)
		}
	}
	expect.DeepEqual(f, got, want, "%s/%s", namespace, name)
}

func (f *fixture) failsWith(want string) {
	f.Helper()
	if _, err := f.run(); err == nil || !strings.Contains(err.Error(), want) {
		f.Errorf("got %v, want %q", err, want)
	}
}

func (f *fixture) count(want int) {
	f.Helper()
	expect.Equal(f, len(f.issued), want, "tokens were issued")
}

func ahead(f *fixture, d time.Duration) string { return token.Stamp(f.clock.Now().Add(d)) }

func TestIssues(t *testing.T) {
	for name, tc := range map[string]struct {
		data        map[string]string
		annotations []string
		want        map[string]string
		next        time.Duration
	}{
		"TR-19, TR-22, BH-TR-5/a labelled Secret": {nil, nil, map[string]string{"token": "token-1"}, 9*time.Hour + 36*time.Minute},
		"TR-22/CA":                {nil, []string{token.AnnotationInjectCA, "true"}, map[string]string{"token": "token-1", "bundle.crt": "ca"}, 9*time.Hour + 36*time.Minute},
		"TR-23/kubeconfig":        {map[string]string{"kubeconfig": kubeconfig(`""`)}, nil, map[string]string{"kubeconfig": kubeconfig("token-1")}, 9*time.Hour + 36*time.Minute},
		"TR-17/10m":               {nil, []string{token.AnnotationExpiration, "10m"}, map[string]string{"token": "token-1"}, 8 * time.Minute},
		"C13/100h":                {nil, []string{token.AnnotationExpiration, "100h"}, map[string]string{"token": "token-1"}, 24 * time.Hour},
		"TR-12/TR-7, in the past": {map[string]string{"token": "old"}, []string{token.AnnotationRenew, "2025-01-01T00:00:00Z"}, map[string]string{"token": "token-1"}, 9*time.Hour + 36*time.Minute},
		"TR-9/TR-21, no token":    {map[string]string{"x": "y"}, []string{token.AnnotationRenew, "2026-01-01T01:00:00Z"}, map[string]string{"token": "token-1", "x": "y"}, 9*time.Hour + 36*time.Minute},
		"TR-10/another CA":        {map[string]string{"token": "old", "bundle.crt": "old"}, []string{token.AnnotationRenew, "2026-01-01T01:00:00Z", token.AnnotationInjectCA, "true"}, map[string]string{"token": "token-1", "bundle.crt": "ca"}, 9*time.Hour + 36*time.Minute},
		"TR-10/another CA in the kubeconfig": {map[string]string{"kubeconfig": kubeconfig("old")}, []string{token.AnnotationRenew, "2026-01-01T01:00:00Z", token.AnnotationInjectCA, "true"},
			map[string]string{"kubeconfig": strings.Replace(kubeconfig("token-1"), "server: https://x\n", "server: https://x\n      certificate-authority-data: Y2E=\n", 1)}, 9*time.Hour + 36*time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.given(tc.data, tc.annotations...)
			f.after(tc.next)
			f.wants(f.source, key.Namespace, key.Name, tc.want)
			f.count(1)
			secret := f.secret(f.source, key.Namespace, key.Name)
			expect.True(t, secret.Annotations["a"] == "a" && secret.Labels["l"] == "l",
				"TR-21: foreign labels or annotations are lost")
			at, err := time.Parse(time.RFC3339, secret.Annotations[token.AnnotationRenew])
			if wait := at.Sub(f.clock.Now()); err != nil || wait > tc.next || wait < tc.next/100*95-time.Second || !strings.HasSuffix(secret.Annotations[token.AnnotationRenew], "Z") {
				t.Errorf("TR-18: got %s, %v", secret.Annotations[token.AnnotationRenew], err)
			}
			a := f.issued[0].Audiences
			expect.True(t, len(a) == 1 && a[0] == "gardener", "TR-16: got %v", a)
			// Nothing more is done until then.
			patches := f.patches
			f.after(tc.next)
			expect.Equal(t, f.patches, patches, "TR-12: it was written again")
			f.count(1)
			// Then it is renewed.
			f.clock.SetTime(f.clock.Now().Add(tc.next))
			f.after(tc.next)
			f.count(2)
			lines := f.output.String()
			if news := strings.Count(lines, `"level"=0 "msg"="Renewed a token"`); news > 1 || !strings.Contains(lines, `"level"=1 "msg"="Renewed a token"`) {
				t.Errorf("a renewal that is due is not at debug: %s", lines)
			}
		})
	}
}

// TR-13: the ServiceAccount, also where it is there already, and also when no token is due.
func TestServiceAccount(t *testing.T) {
	f := newFixture(t)
	must.Succeed(t, f.target.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "sa", Labels: map[string]string{"old": "x"}, Annotations: map[string]string{"a": "a"}},
		AutomountServiceAccountToken: ptr.To(true), ImagePullSecrets: []corev1.LocalObjectReference{{Name: "p"}}}))
	account := func() *corev1.ServiceAccount {
		account := &corev1.ServiceAccount{}
		must.Succeed(t, f.target.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "sa"}, account))
		return account
	}
	secret := f.given(nil, token.AnnotationLabels, `{"foo":"bar"}`)
	f.after(12 * time.Hour / 5 * 4)
	if a := account(); *a.AutomountServiceAccountToken || cmp.Diff(map[string]string{"foo": "bar"}, a.Labels) != "" || a.Annotations["a"] != "a" || len(a.ImagePullSecrets) != 1 {
		t.Errorf("BH-TR-3, BH-TR-4: got %+v", a)
	}
	version := account().ResourceVersion
	f.after(12 * time.Hour / 5 * 4)
	expect.Equal(t, account().ResourceVersion, version, "it was written without need")
	secret = f.secret(f.source, secret.Namespace, secret.Name)
	delete(secret.Annotations, token.AnnotationLabels)
	must.Succeed(t, f.source.Update(t.Context(), secret))
	f.after(12 * time.Hour / 5 * 4)
	expect.Empty(t, account().Labels, "TR-13/no annotation")
	f.count(1)
}

func TestTarget(t *testing.T) {
	target := []string{token.AnnotationTargetName, "t", token.AnnotationTargetNamespace, "ns"}
	t.Run("TR-20/C14, BH-TR-12, created", func(t *testing.T) {
		f := newFixture(t)
		f.given(nil, target...)
		f.after(12 * time.Hour / 5 * 4)
		f.wants(f.target, "ns", "t", map[string]string{"token": "token-1"})
		f.wants(f.source, key.Namespace, key.Name, map[string]string{})
		expect.True(t, f.secret(f.source, key.Namespace, key.Name).Annotations[token.AnnotationRenew] != "",
			"TR-18: no annotation at the source")
		patches := f.patches
		f.after(12 * time.Hour / 5 * 4)
		f.count(1)
		expect.Equal(t, f.patches, patches, "TR-12: written again")
		must.Succeed(t, f.target.Delete(t.Context(), f.secret(f.target, "ns", "t")))
		f.after(12 * time.Hour / 5 * 4)
		f.wants(f.target, "ns", "t", map[string]string{"token": "token-2"}) // TR-8
	})
	t.Run("TR-20/the annotations come later", func(t *testing.T) {
		f := newFixture(t)
		f.given(map[string]string{"token": "old", "x": "y"}, append(target, token.AnnotationRenew, "2026-01-01T01:00:00Z")...)
		f.after(12 * time.Hour / 5 * 4)
		f.wants(f.target, "ns", "t", map[string]string{"token": "token-1"})
		f.wants(f.source, key.Namespace, key.Name, map[string]string{"x": "y"})
	})
	t.Run("TR-23a/a kubeconfig of the target or the source with a second document", func(t *testing.T) {
		for _, inTarget := range []bool{true, false} {
			f := newFixture(t)
			data, name := map[string]string{"kubeconfig": kubeconfig("s3cr3t") + "---\nx: s3cr3t\n"}, "Secret shoot/s: "
			if inTarget {
				must.Succeed(t, f.target.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "t"}, Data: map[string][]byte{"kubeconfig": []byte(data["kubeconfig"])}}))
				data, name = nil, "Secret ns/t: "
			}
			f.given(data, target...)
			f.failsWith(name + "kubeconfig: content has more than one document")
			f.count(0)
			f.hides("s3cr3t")
		}
	})
	t.Run("C14/a write of the source that is lost is made up for", func(t *testing.T) {
		f := newFixture(t)
		f.given(map[string]string{"token": "old"}, append(target, token.AnnotationRenew, "2026-01-01T01:00:00Z")...)
		must.Succeed(t, f.target.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "t"}, Data: map[string][]byte{"token": []byte("there")}}))
		f.after(12 * time.Hour / 5 * 4)
		f.wants(f.source, key.Namespace, key.Name, map[string]string{})
	})
	t.Run("C14/2.8, the kubeconfig of the source", func(t *testing.T) {
		f := newFixture(t)
		f.given(map[string]string{"kubeconfig": kubeconfig("old")}, append(target, token.AnnotationInjectCA, "true")...)
		f.after(12 * time.Hour / 5 * 4)
		withCA := strings.Replace(kubeconfig("token-1"), "server: https://x\n", "server: https://x\n      certificate-authority-data: Y2E=\n", 1)
		f.wants(f.target, "ns", "t", map[string]string{"kubeconfig": withCA})
		f.wants(f.source, key.Namespace, key.Name, map[string]string{"kubeconfig": strings.Replace(kubeconfig("x"), "user:\n      token: x\n", "user: {}\n", 1)})
		f.after(12 * time.Hour / 5 * 4)
		f.count(1)
	})
	t.Run("TR-8/half a target", func(t *testing.T) {
		f := newFixture(t)
		f.given(nil, token.AnnotationTargetName, "t")
		f.after(12 * time.Hour / 5 * 4)
		f.wants(f.source, key.Namespace, key.Name, map[string]string{"token": "token-1"})
		events := f.events()
		expect.True(t, len(events) == 1 && events[0].Reason == "IncompleteTarget", "2.8: got %+v", events)
	})
}

func (f *fixture) events() []corev1.Event {
	f.Helper()
	list := &corev1.EventList{}
	must.Succeed(f, f.source.List(f.Context(), list))
	return list.Items
}

// A request that cannot be served leaves the Secret as it is, is reported, and costs no token.
func TestErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		data        map[string]string
		annotations []string
		want        string
	}{
		"TR-15/expiration":          {nil, []string{token.AnnotationExpiration, "unparsable"}, "invalid duration"},
		"TR-12/timestamp":           {map[string]string{"token": "x"}, []string{token.AnnotationRenew, "invalid-format"}, "could not parse renew timestamp"},
		"TR-23a/kubeconfig":         {map[string]string{"kubeconfig": "s3cr3t"}, nil, "cannot unmarshal string into Go value of type v1.Config"},
		"TR-23a/two documents":      {map[string]string{"kubeconfig": kubeconfig("s3cr3t") + "---\nx: s3cr3t\n"}, nil, "Secret shoot/s: kubeconfig: content has more than one document"},
		"TR-23a/a key twice":        {map[string]string{"kubeconfig": kubeconfig("s3cr3t") + "users: s3cr3t\n"}, []string{token.AnnotationRenew, "2026-01-01T01:00:00Z"}, "Secret shoot/s: could not check whether token exists in secret data: kubeconfig: document has a key more than once"},
		"TR-9/kubeconfig":           {map[string]string{"kubeconfig": "s3cr3t"}, []string{token.AnnotationRenew, "2026-01-01T01:00:00Z"}, "could not check whether token exists in secret data: "},
		"TR-14/labels":              {nil, []string{token.AnnotationLabels, "x"}, `annotation "serviceaccount.resources.gardener.cloud/labels"`},
		"2.8/no name":               {nil, []string{token.AnnotationName, ""}, `annotation "serviceaccount.resources.gardener.cloud/name" is missing or empty`},
		"TR-23a/no cluster, for CA": {map[string]string{"kubeconfig": strings.Replace(kubeconfig("s3cr3t"), "- name: c", "- name: d", 1)}, []string{token.AnnotationInjectCA, "true"}, "did not find cluster of current context named c"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.given(tc.data, tc.annotations...)
			version := f.secret(f.source, key.Namespace, key.Name).ResourceVersion
			f.failsWith(tc.want)
			f.failsWith(tc.want)
			expect.Equal(t, f.secret(f.source, key.Namespace, key.Name).ResourceVersion, version, "the Secret has changed")
			f.count(0)
			if events := f.events(); len(events) != 1 || events[0].Reason != "TokenRequestFailed" || !strings.Contains(events[0].Message, tc.want) {
				t.Errorf("Events: got %+v", events)
			}
			f.hides("s3cr3t")
		})
	}
}

// hides fails if anything that is written for people contains a word.
func (f *fixture) hides(word string) {
	f.Helper()
	for _, e := range f.events() {
		f.output.WriteString(e.Message)
	}
	families, err := f.registry.Gather()
	must.Succeed(f, err)
	if output := f.output.String() + fmt.Sprint(families); strings.Contains(output, word) {
		f.Errorf("%q is in the output: %s", word, output)
	}
}

// TR-11: a token that the target does not accept is replaced; one of its own that it does not accept is not replaced in a loop.
func TestReview(t *testing.T) {
	f := newFixture(t)
	f.given(nil)
	f.after(12 * time.Hour / 5 * 4)
	f.after(12 * time.Hour / 5 * 4)
	expect.True(t, len(f.reviews) == 1 && len(f.reviews[0].Audiences) == 1 && f.reviews[0].Audiences[0] == "gardener",
		"TR-24/SW-9: got %v", f.reviews)
	f.overwrite("garbage")
	f.rejected["garbage"] = true
	f.after(12 * time.Hour / 5 * 4)
	f.wants(f.source, key.Namespace, key.Name, map[string]string{"token": "token-2"})
	for i := range 20 {
		f.rejected[fmt.Sprintf("token-%d", i)] = true
	}
	began := f.clock.Now()
	for range 100 {
		result, err := f.run()
		must.Succeed(t, err)
		if result.RequeueAfter < time.Minute {
			f.clock.SetTime(f.clock.Now().Add(result.RequeueAfter + time.Second))
		} else {
			f.clock.SetTime(f.clock.Now().Add(time.Minute))
		}
	}
	hours := f.clock.Now().Sub(began).Hours()
	expect.True(t, len(f.issued) <= 2+7, "%d tokens within %.1f hours", len(f.issued), hours)
	f.rejected = map[string]bool{"other": true}
	f.overwrite("other")
	issued := len(f.issued)
	f.after(12 * time.Hour / 5 * 4)
	f.count(issued + 1) // What is not ours is replaced at once.

	f.reviewErr = errors.New("no such kind")
	f.failsWith("token review failed: no such kind")
	f.Config.ReviewTokens = ptr.To(false)
	f.after(12 * time.Hour / 5 * 4)
}

func (f *fixture) overwrite(content string) {
	f.Helper()
	secret := f.secret(f.source, key.Namespace, key.Name)
	secret.Data = map[string][]byte{"token": []byte(content)}
	must.Succeed(f, f.source.Update(f.Context(), secret))
}

// TR-6: without the annotation there is a new token at once.
func TestForced(t *testing.T) {
	f := newFixture(t)
	f.given(nil)
	f.after(12 * time.Hour / 5 * 4)
	secret := f.secret(f.source, key.Namespace, key.Name)
	delete(secret.Annotations, token.AnnotationRenew)
	must.Succeed(t, f.source.Update(t.Context(), secret))
	f.after(12 * time.Hour / 5 * 4)
	expect.Equal(t, string(f.secret(f.source, key.Namespace, key.Name).Data["token"]), "token-2", "TR-6: without the annotation the token stays")
	f.wants(f.source, key.Namespace, key.Name, map[string]string{"token": "token-2"})
}

// TR-19, HLP-8: a change between read and write is not overwritten.
func TestConflict(t *testing.T) {
	f := newFixture(t)
	f.given(nil)
	f.beforePatch = func() { f.overwrite("somebody's") }
	if _, err := f.run(); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "could not update Secret with token: ") {
		t.Errorf("TR-19/HLP-8: a change between read and write is overwritten: %v", err)
	}
	f.wants(f.source, key.Namespace, key.Name, map[string]string{"token": "somebody's"})
	f.after(12 * time.Hour / 5 * 4)
	f.wants(f.source, key.Namespace, key.Name, map[string]string{"token": "token-2"})
}

// TR-4, TR-25: what is not relevant or gone is left alone, and so is what there is in the target.
func TestNotRelevant(t *testing.T) {
	f := newFixture(t)
	f.given(nil)
	f.after(12 * time.Hour / 5 * 4)
	secret := f.secret(f.source, key.Namespace, key.Name)
	secret.Labels[token.LabelClass] = "garden"
	delete(secret.Annotations, token.AnnotationRenew)
	must.Succeed(t, f.source.Update(t.Context(), secret))
	result, err := f.run()
	expect.True(t, err == nil && result.RequeueAfter == 0, "TR-4: got %+v, %v", result, err)
	must.Succeed(t, f.source.Delete(t.Context(), secret))
	expect.Succeed(t, expect.ErrorOf(f.run()))
	expect.Succeed(t, f.target.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "sa"}, &corev1.ServiceAccount{}),
		"TR-25")
	f.count(1)
	families, err := f.registry.Gather()
	expect.True(t, err == nil && len(families) == 1, "metrics of a Secret that is gone: %v, %v", families, err)
}

// The metric is the time at which the token expires, also after a restart; no token is in any output.
func TestMetrics(t *testing.T) {
	f := newFixture(t)
	expiry := f.clock.Now().Add(5 * time.Hour)
	claims := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"exp":%d}`, expiry.Unix()))
	f.given(map[string]string{"token": "s3cr3t." + claims + ".x"}, token.AnnotationRenew, ahead(f, time.Hour))
	f.after(time.Hour)
	f.clock.SetTime(f.clock.Now().Add(30 * time.Minute))
	families, err := f.registry.Gather()
	must.Succeed(t, err)
	found := false
	for _, family := range families {
		if family.GetName() != "espalier_token_requestor_expiry_timestamp_seconds" {
			continue
		}
		found = true
		if got, labels := family.Metric[0].Gauge.GetValue(), family.Metric[0].Label; got != float64(expiry.Unix()) || labels[1].GetName() != "secret_namespace" {
			t.Errorf("got %v, want %d", family, expiry.Unix())
		}
	}
	expect.True(t, found, "there is no metric of the expiry")
	f.clock.SetTime(f.clock.Now().Add(time.Hour))
	f.after(12 * time.Hour / 5 * 4)
	f.hides("s3cr3t")
	f.hides("token-1")
	expect.True(t, f.output.Len() != 0, "nothing was logged at all")
}

// TR-3: what is relevant, was relevant, or neither.
func TestPredicate(t *testing.T) {
	p := newFixture(t).relevant()
	ours, other := secrets(), secrets()
	ours.Labels = map[string]string{token.LabelPurpose: token.PurposeRequest, token.LabelClass: "shoot"}
	if !p.Create(event.CreateEvent{Object: ours}) || !p.Delete(event.DeleteEvent{Object: ours}) || p.Generic(event.GenericEvent{Object: ours}) ||
		!p.Update(event.UpdateEvent{ObjectOld: ours, ObjectNew: other}) || !p.Update(event.UpdateEvent{ObjectOld: other, ObjectNew: ours}) {
		t.Error("TR-3: what is or was relevant")
	}
	if p.Create(event.CreateEvent{Object: other}) || p.Delete(event.DeleteEvent{Object: other}) || p.Update(event.UpdateEvent{ObjectOld: other, ObjectNew: other}) {
		t.Error("TR-3: what is not relevant")
	}
}

// TR-23b: a CA that changes, also one that could not be read before, has all Secrets looked at, and again if they could not be listed.
func TestFollowsCA(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		var (
			mu           sync.Mutex
			failed, told error
			calls        int
		)
		set := func(change func()) {
			mu.Lock()
			defer mu.Unlock()
			change()
		}
		f.CA = func() ([]byte, error) {
			mu.Lock()
			defer mu.Unlock()
			return []byte(f.ca), failed
		}
		ctx, cancel := context.WithCancel(t.Context())
		go f.pollCA(ctx, func() error {
			mu.Lock()
			defer mu.Unlock()
			calls++
			return told
		})
		step := func(what string, want int) {
			t.Helper()
			time.Sleep(caPause)
			synctest.Wait()
			set(func() {
				expect.Equal(t, calls, want, "TR-23b: %s: calls", what)
			})
		}
		step("nothing", 0)
		set(func() { f.ca = "new" })
		step("another", 1)
		step("nothing", 1)
		set(func() { f.ca, told = "newer", errors.New("no") })
		step("another that nobody is told of", 2)
		set(func() { told = nil })
		step("again", 3)
		set(func() { failed = errors.New("no") })
		step("it cannot be read", 3)
		set(func() { failed = nil })
		step("it can", 4)
		cancel()
	})
}

// 2.8: a clock that is ahead of the target's makes each new token look as if it had expired. Writing one is an event that has the Secret looked
// at again at once, which must not issue the next.
func TestClockAhead(t *testing.T) {
	for _, review := range []bool{true, false} {
		f := newFixture(t)
		f.Config.ReviewTokens = ptr.To(review)
		f.lifetime = -time.Hour // As our clock sees it.
		f.web = true
		f.given(nil)
		for range 10 {
			if result, err := f.run(); err != nil || result.RequeueAfter <= 0 || result.RequeueAfter > 30*time.Second {
				t.Fatalf("got %+v, %v", result, err)
			}
		}
		f.count(1)
		f.clock.SetTime(f.clock.Now().Add(31 * time.Second))
		must.Succeed(t, expect.ErrorOf(f.run()))
		f.count(2)
	}
}

// C14: where source and target are one cluster, the Secret in the target may be the Secret itself.
func TestTargetIsTheSecretItself(t *testing.T) {
	f := newFixture(t)
	f.Target = sameCluster{f.target, f.source}
	f.given(map[string]string{"x": "y"}, token.AnnotationTargetName, key.Name, token.AnnotationTargetNamespace, key.Namespace)
	for range 3 {
		f.after(12 * time.Hour / 5 * 4)
	}
	f.count(1)
	f.wants(f.source, key.Namespace, key.Name, map[string]string{"x": "y", "token": "token-1"})
}

// sameCluster has the Secrets of another cluster.
type sameCluster struct {
	client.Client
	secrets client.Client
}

func (c sameCluster) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if _, ok := object.(*corev1.Secret); ok {
		return c.secrets.Get(ctx, key, object, options...)
	}
	return c.Client.Get(ctx, key, object, options...)
}

func (c sameCluster) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	if _, ok := object.(*corev1.Secret); ok {
		return c.secrets.Patch(ctx, object, patch, options...)
	}
	return c.Client.Patch(ctx, object, patch, options...)
}

// TR-10: that the CA cannot be read is no matter of Secrets that do not ask for it.
func TestUnreadableCA(t *testing.T) {
	f := newFixture(t)
	f.CA = func() ([]byte, error) { return nil, errors.New("no such file") }
	f.given(nil)
	f.after(12 * time.Hour / 5 * 4)
	f.wants(f.source, key.Namespace, key.Name, map[string]string{"token": "token-1"})
	secret := f.secret(f.source, key.Namespace, key.Name)
	secret.Annotations[token.AnnotationInjectCA] = "true"
	must.Succeed(t, f.source.Update(t.Context(), secret))
	f.failsWith("reading the CA of the target: no such file")
	f.count(1)
}

// COM-8: an Event reports a change. A fault that lasts is reported once, also if it keeps nothing from being done, and if it is not all.
func TestLastingTroubleIsToldOnce(t *testing.T) {
	f := newFixture(t)
	f.given(nil, token.AnnotationTargetName, "t")
	reasons := func() string {
		f.Helper()
		events := &corev1.EventList{}
		must.Succeed(t, f.source.List(t.Context(), events))
		var all []string
		for i := range events.Items {
			all = append(all, events.Items[i].Reason)
		}
		return strings.Join(all, " ")
	}
	repeat := func() {
		for range 3 {
			_, _ = f.run()
			f.clock.SetTime(f.clock.Now().Add(time.Second))
		}
	}
	repeat()
	expect.Equal(t, reasons(), "IncompleteTarget", "half a target")
	f.CA = func() ([]byte, error) { return nil, errors.New("no such file") }
	secret := f.secret(f.source, key.Namespace, key.Name)
	secret.Annotations[token.AnnotationInjectCA] = "true"
	must.Succeed(t, f.source.Update(t.Context(), secret))
	repeat()
	expect.Equal(t, reasons(), "IncompleteTarget TokenRequestFailed", "and no CA")
	// An error whose text is never the same is one Event, too.
	for n := range 50 {
		f.CA = func() ([]byte, error) { return nil, fmt.Errorf("attempt %d", n) }
		repeat()
	}
	expect.Equal(t, reasons(), "IncompleteTarget TokenRequestFailed", "and errors of many texts")
}

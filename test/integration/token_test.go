package integration

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
)

const (
	accountPrefix = "serviceaccount.resources.gardener.cloud/"
	renewAt       = accountPrefix + "token-renew-timestamp"
)

// asking creates a Secret in the seed that asks for a token of the ServiceAccount of the same name.
func (f *fixture) asking(name string, data map[string]string, annotations ...string) {
	f.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: f.ns, Name: name, Labels: map[string]string{"resources.gardener.cloud/purpose": "token-requestor", "resources.gardener.cloud/class": "shoot"},
		Annotations: map[string]string{accountPrefix + "name": name, accountPrefix + "namespace": f.ns},
	}, StringData: data}
	for i := 0; i < len(annotations); i += 2 {
		secret.Annotations[annotations[i]] = annotations[i+1]
	}
	f.must(f.seed.Create(f.ctx, secret))
}

func (f *fixture) readSecret(c client.Client, name string) *corev1.Secret {
	f.Helper()
	secret := &corev1.Secret{}
	f.must(c.Get(f.ctx, client.ObjectKey{Namespace: f.ns, Name: name}, secret))
	return secret
}

// works waits until a token is there that the shoot accepts for a ServiceAccount, and returns it.
func (f *fixture) works(account string, read func() string) string {
	f.Helper()
	var token string
	f.eventually(func() error {
		if token = read(); token == "" {
			return errors.New("no token yet")
		}
		review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{"gardener"}}}
		if err := f.shoot.Create(f.ctx, review); err != nil {
			return err
		}
		if want := "system:serviceaccount:" + f.ns + ":" + account; !review.Status.Authenticated || review.Status.User.Username != want {
			return fmt.Errorf("got %+v", review.Status)
		}
		return nil
	})
	return token
}

// TestTokens: tokens of all forms are issued by a real API server, renewed when they are asked to be, and replaced if they are no good
// (TR-1 to TR-25, BH-TR-1).
func TestTokens(t *testing.T) {
	f := newFixture(t)
	process := f.controllers(map[string]any{"tokenRequestor": map[string]any{"enabled": true}})
	bare := func(name string) func() string {
		return func() string { return string(f.readSecret(f.seed, name).Data["token"]) }
	}
	kubeconfig := "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: https://x}}]\nusers: [{name: other, user: {token: keep}}, {name: u, user: {token: \"\"}}]\n"
	inKubeconfig := func(c client.Client, name string) func() string {
		return func() string {
			secret := &corev1.Secret{}
			if err := c.Get(f.ctx, client.ObjectKey{Namespace: f.ns, Name: name}, secret); err != nil {
				return ""
			}
			users := strings.Split(string(secret.Data["kubeconfig"]), "token: ")
			token, _, found := strings.Cut(users[len(users)-1], "\n")
			if !found || len(token) < 100 {
				return ""
			}
			return token
		}
	}

	f.asking("bare", nil, accountPrefix+"labels", `{"foo":"bar"}`)
	f.asking("config", map[string]string{"kubeconfig": kubeconfig}, accountPrefix+"inject-ca-bundle", "true")
	f.asking("elsewhere", map[string]string{"kubeconfig": kubeconfig, "mine": "x"},
		"token-requestor.resources.gardener.cloud/target-secret-name", "there", "token-requestor.resources.gardener.cloud/target-secret-namespace", f.ns)
	f.asking("broken", map[string]string{"kubeconfig": "s3cr3t"})

	first := f.rule("TR-1/BH-TR-1: a token for a Secret of the source").works("bare", bare("bare"))
	f.works("config", inKubeconfig(f.seed, "config"))
	f.works("elsewhere", inKubeconfig(f.shoot, "there"))

	account := &corev1.ServiceAccount{}
	f.must(f.shoot.Get(f.ctx, client.ObjectKey{Namespace: f.ns, Name: "bare"}, account))
	expect.True(t, !*account.AutomountServiceAccountToken && len(account.Labels) == 1 && account.Labels["foo"] == "bar",
		"TR-13: got %+v", account)
	at, err := time.Parse(time.RFC3339, f.readSecret(f.seed, "bare").Annotations[renewAt])
	if wait := time.Until(at); err != nil || wait > 9*time.Hour+36*time.Minute || wait < 9*time.Hour {
		t.Errorf("C13: renewed in %s, %v", wait, err)
	}
	if config := string(f.readSecret(f.seed, "config").Data["kubeconfig"]); !strings.Contains(config, "keep") || !strings.Contains(config, "certificate-authority-data: ") {
		t.Error("TR-23: the rest of the kubeconfig has changed, or there is no CA")
	}
	if source := f.readSecret(f.seed, "elsewhere"); inKubeconfig(f.seed, "elsewhere")() != "" || len(source.Data) != 2 || source.Annotations[renewAt] == "" {
		t.Error("C14: the source holds the token, or has lost what was its own")
	}

	// Changes by others are repaired when a token is renewed, also those of the Secret in the target.
	held := inKubeconfig(f.shoot, "there")()
	elsewhere := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: "elsewhere"}}
	f.must(f.shoot.Patch(f.ctx, elsewhere, harness.MergePatch(map[string]any{"automountServiceAccountToken": true})))
	f.must(f.seed.Patch(f.ctx, harness.Secret(f.ns, "elsewhere", nil), harness.MergePatch(map[string]any{"metadata": map[string]any{"annotations": map[string]any{renewAt: nil}}})))
	f.eventually(func() error {
		f.must(f.shoot.Get(f.ctx, client.ObjectKeyFromObject(elsewhere), elsewhere))
		return expect.Holds(!*elsewhere.AutomountServiceAccountToken && inKubeconfig(f.shoot, "there")() != held,
			"TR-13, C14: not renewed and put right yet")
	})

	// A token that is no good is replaced, and so is one whose time is taken away.
	f.must(f.seed.Patch(f.ctx, harness.Secret(f.ns, "bare", nil), harness.MergePatch(map[string]any{"stringData": map[string]any{"token": "garbage"}})))
	second := f.works("bare", bare("bare"))
	f.must(f.seed.Patch(f.ctx, harness.Secret(f.ns, "bare", nil), harness.MergePatch(map[string]any{"metadata": map[string]any{"annotations": map[string]any{renewAt: nil}}})))
	f.eventually(func() error {
		if secret := f.readSecret(f.seed, "bare"); secret.Annotations[renewAt] == "" || string(secret.Data["token"]) == second {
			return errors.New("not renewed yet")
		}
		return nil
	})
	// The ServiceAccount is deleted: its tokens end with it, and that is noticed when the Secret is looked at again.
	f.must(f.shoot.Delete(f.ctx, account))
	f.must(f.seed.Patch(f.ctx, harness.Secret(f.ns, "bare", nil), harness.MergePatch(map[string]any{"metadata": map[string]any{"labels": map[string]any{"touched": "x"}}})))
	f.eventually(func() error { return f.shoot.Get(f.ctx, client.ObjectKey{Namespace: f.ns, Name: "bare"}, account) })
	last := f.works("bare", bare("bare"))

	// Requests that cannot be served are reported where an operator looks, without content.
	f.eventually(func() error {
		events := &corev1.EventList{}
		f.must(f.seed.List(f.ctx, events, client.InNamespace(f.ns)))
		for _, e := range events.Items {
			if e.InvolvedObject.Name == "broken" && e.Reason == "TokenRequestFailed" && strings.Contains(e.Message, "cannot unmarshal string") {
				return nil
			}
		}
		return fmt.Errorf("no such Event among %d", len(events.Items))
	})
	status, metrics := process.Get(process.Metrics, "/metrics")
	if want := fmt.Sprintf(`espalier_token_requestor_expiry_timestamp_seconds{name="bare",secret_namespace=%q}`, f.ns); status != 200 || !strings.Contains(metrics, want) {
		t.Errorf("metrics: %d, %s is not there", status, want)
	}

	// A restart changes nothing.
	if code := process.Stop(); code != 0 {
		t.Fatalf("ended with %d", code)
	}
	version := f.readSecret(f.seed, "bare").ResourceVersion
	again := f.controllers(map[string]any{"tokenRequestor": map[string]any{"enabled": true}})
	f.eventually(func() error {
		if _, metrics := again.Get(again.Metrics, "/metrics"); !strings.Contains(metrics, `espalier_token_requestor_expiry_timestamp_seconds{name="bare"`) {
			return errors.New("not looked at yet")
		}
		return nil
	})
	expect.Equal(t, f.readSecret(f.seed, "bare").ResourceVersion, version, "TR-5: a restart has written the Secret")
	for _, secret := range []string{"s3cr3t", first, second, last} {
		expect.False(t, strings.Contains(process.Output()+again.Output()+metrics, secret),
			"a token or what is in a Secret was logged")
	}
}

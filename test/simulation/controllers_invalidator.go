package simulation

import (
	"encoding/base64"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/test/fake"
)

// Invariants of the token invalidator.
const (
	sparesUsed         = "a token in use is never invalidated"
	invalidatesOnly    = "only tokens that are to be invalid are invalidated"
	touchesLabels      = "only two labels change"
	becomesInvalidated = "tokens become what is wanted"
)

const (
	considerLabel = "token-invalidator.resources.gardener.cloud/consider"
	skipLabel     = "token-invalidator.resources.gardener.cloud/skip"
	purposeLabel  = "resources.gardener.cloud/purpose"
	accountOf     = "kubernetes.io/service-account.name"
)

// invalidator is a world of ServiceAccounts with static tokens, and of Pods that use some.
type invalidator struct {
	*stage
	// unwanted are the ServiceAccounts whose tokens are to be valid, used the Secrets that Pods use.
	unwanted, used since
}

func newInvalidator(s *stage) act {
	return &invalidator{stage: s, unwanted: since{}, used: since{}}
}

// configure has one worker: what a decision rests on is what was asked for last.
func (v *invalidator) configure(cfg *config.ResourceManagerConfiguration) {
	cfg.Controllers.TokenInvalidator = config.SwitchableControllerConfig{Enabled: true, ConcurrentSyncs: ptr.To(1)}
}

func staticKey(i int) fake.Key {
	return keyOf("", "secrets", targetNamespace, fmt.Sprintf("static%d", i))
}

func mounterKey(i int) fake.Key {
	return keyOf("", "pods", targetNamespace, fmt.Sprintf("mounter%d", i))
}

func (v *invalidator) populate() {
	for i := range 2 {
		v.put(v.target, accountKey(i), object{"metadata": object{}, "automountServiceAccountToken": i == 0})
		v.do(Step{Do: "secret", A: i})
	}
}

func (v *invalidator) do(step Step) {
	i := step.A % 2
	switch step.Do {
	case "account":
		o := object{"metadata": object{}}
		switch step.B % 5 {
		case 0, 1, 2:
			o["automountServiceAccountToken"] = false
		case 3:
			o["automountServiceAccountToken"] = true
		}
		if step.B == 2 {
			fake.Meta(o)["labels"] = object{skipLabel: ""}
		}
		v.put(v.target, accountKey(i), o)
	case "mount":
		secret := staticKey(step.B % 2).Name
		spec := object{"containers": []any{object{"name": "c", "image": "i"}}}
		switch step.B % 3 {
		case 0:
			spec["volumes"] = []any{object{"name": "v", "secret": object{"secretName": secret}}}
		case 1:
			spec["initContainers"] = []any{object{"name": "i", "image": "i", "envFrom": []any{object{"secretRef": object{"name": secret}}}}}
		case 2:
			spec["volumes"] = []any{object{"name": "v", "projected": object{"sources": []any{object{"secret": object{"name": secret}}}}}}
		}
		v.put(v.target, mounterKey(i), object{"metadata": object{"annotations": object{refersTo: secret}}, "spec": spec})
	case "unmount":
		v.remove(v.target, mounterKey(i))
	case "secret":
		at := staticKey(i)
		at.Name = ""
		v.request(v.target, http.MethodPost, v.pathOf(v.target, at), object{
			"type": "kubernetes.io/service-account-token", "metadata": object{"name": staticKey(i).Name, "annotations": object{accountOf: accountKey(i).Name}},
		})
	case "secret-delete":
		v.remove(v.target, staticKey(i))
	case "purpose":
		v.patch(v.target, staticKey(i), object{"metadata": object{"labels": object{purposeLabel: []any{"other", nil}[step.B%2]}}})
	}
}

// invalidate is what the webhook does (TI-12 to TI-14), if it is registered for the Secret (TI-11).
func invalidate(secret object) {
	const invalid = "AAAA" // three zero bytes
	data, hasData := secret["data"].(map[string]any)
	if fake.Text(secret, "metadata", "labels", purposeLabel) != "token-invalidator" || !hasData {
		return
	}
	labels, _ := fake.Meta(secret)["labels"].(map[string]any)
	if _, consider := labels[considerLabel]; consider {
		data["token"] = invalid
	} else if data["token"] == invalid {
		delete(data, "token")
	}
}

// play gives each Secret a token that has none, as kube-controller-manager does.
func (v *invalidator) play(objects map[fake.Key]object) {
	for i := range 2 {
		key := staticKey(i)
		secret := objects[key]
		if secret == nil || fake.Text(secret, "data", "token") != "" || objects[accountKey(i)] == nil {
			continue
		}
		o := runtime.DeepCopyJSON(secret)
		o["data"] = object{"token": base64.StdEncoding.EncodeToString([]byte("valid")), "ca.crt": base64.StdEncoding.EncodeToString([]byte("ca"))}
		v.request(v.target, http.MethodPut, v.pathOf(v.target, key), o)
	}
}

// wants reports whether the tokens of a ServiceAccount are to be invalid.
func (v *invalidator) wants(account object) bool {
	labels, _ := fake.Meta(account)["labels"].(map[string]any)
	_, skipped := labels[skipLabel]
	return account["automountServiceAccountToken"] == false && !skipped
}

func (v *invalidator) user(secret fake.Key) string {
	for i := range 2 {
		if fake.Text(v.target.GetLocked(mounterKey(i)), "metadata", "annotations", refersTo) == secret.Name {
			return mounterKey(i).Name
		}
	}
	return ""
}

func (v *invalidator) look() {
	for i := range 2 {
		account := v.target.GetLocked(accountKey(i))
		v.unwanted.note(accountKey(i), account == nil || !v.wants(account))
		v.used.note(staticKey(i), v.user(staticKey(i)) != "")
	}
}

func (v *invalidator) changed(cluster string, c fake.Change) {
	if !isInstance(c.By) {
		return
	}
	if cluster != "target" || c.Key.Resource != "secrets" || c.Verb != "patch" {
		v.violateLocked(touchesLabels, "%s %ss %s in the %s", c.By, c.Verb, c.Key, cluster)
		return
	}
	if rest := onlyChanges(c, "metadata labels "+considerLabel, "metadata labels "+purposeLabel, "data token"); rest != "" {
		v.violateLocked(touchesLabels, "%s patches %s: %s", c.By, c.Key, rest)
	}
	if was := fake.Text(c.Before, "metadata", "labels", purposeLabel); was != "" && was != fake.Text(c.After, "metadata", "labels", purposeLabel) {
		v.violateLocked(touchesLabels, "%s took the purpose %s from %s", c.By, was, c.Key)
	}
	if fake.Text(c.Before, "metadata", "labels", considerLabel) != "" || fake.Text(c.After, "metadata", "labels", considerLabel) == "" {
		return
	}
	account := keyOf("", "serviceaccounts", targetNamespace, fake.Text(c.After, "metadata", "annotations", accountOf))
	if read := v.heardAt(c.By, "target", "get", "serviceaccounts", account.Namespace, account.Name); v.unwanted.before(account, read) {
		v.violateLocked(invalidatesOnly, "%s invalidated %s, and %s wants it valid since before it was read at %v", c.By, c.Key, account.Name, read.Sub(v.begin))
	}
	if listed := v.heardAt(c.By, "target", "list", "pods", targetNamespace, ""); listed.IsZero() || v.used.before(c.Key, listed) {
		v.violateLocked(sparesUsed, "%s invalidated %s, which %s uses since before Pods were listed at %v", c.By, c.Key, v.user(c.Key), listed.Sub(v.begin))
	}
}

func (v *invalidator) settled() {
	v.lock.Lock()
	defer v.lock.Unlock()
	for i := range 2 {
		secret, account := v.target.GetLocked(staticKey(i)), v.target.GetLocked(accountKey(i))
		if secret == nil || account == nil || fake.Text(secret, "metadata", "labels", purposeLabel) == "other" {
			continue // The last one is not shown to the webhook.
		}
		valid := dataOf(secret, "token") == "valid"
		switch {
		case v.wants(account) && valid && v.user(staticKey(i)) == "":
			v.violateLocked(becomesInvalidated, "the token of %s is valid, and nobody wants or uses it: %s", staticKey(i), shown(secret))
		case !v.wants(account) && !valid:
			v.violateLocked(becomesInvalidated, "the token of %s is not valid: %s", staticKey(i), shown(secret))
		}
	}
}

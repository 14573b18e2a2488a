package simulation

import (
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/test/fake"
)

// Invariants of the token requestor.
const (
	touchesTokens = "only tokens change, and nothing is deleted"
	writesIssued  = "what is written is a token of the ServiceAccount"
	staysValid    = "there always is a valid token"
	issuesFew     = "tokens are issued when they are needed"
)

// tokens is a world of Secrets that ask for tokens.
type tokens struct {
	*stage
	// counted is how many were issued when counting began.
	counted int
}

// issuedToken is one that the target has issued.
type issuedToken struct {
	account fake.Key
	uid     string
	expires time.Time
}

func newTokens(s *stage) act { return &tokens{stage: s} }

func (t *tokens) configure(cfg *config.ResourceManagerConfiguration) {
	cfg.Controllers.TokenRequestor = config.TokenRequestorControllerConfig{Enabled: true}
}

const accountPrefix = "serviceaccount.resources.gardener.cloud/"

// asking are the Secrets: one holds its token itself, one in a kubeconfig, one in a Secret of the target.
var (
	asking         = []fake.Key{keyOf("", "secrets", sourceNamespace, "bare"), keyOf("", "secrets", sourceNamespace, "config"), keyOf("", "secrets", sourceNamespace, "elsewhere")}
	tokenElsewhere = keyOf("", "secrets", targetNamespace, "there")
)

func accountKey(i int) fake.Key {
	return keyOf("", "serviceaccounts", targetNamespace, fmt.Sprintf("sa%d", i))
}

// kubeconfigWith has a part that is to stay and a token.
func kubeconfigWith(token string) string {
	return "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: https://x}}]\nusers:\n- name: other\n  user: {token: stays}\n- name: u\n  user:\n    token: \"" + token + "\"\n"
}

func (t *tokens) populate() {
	for i := range asking {
		t.do(Step{Do: "ask", A: i})
	}
}

func (t *tokens) do(step Step) {
	i := step.A % len(asking)
	key, account := asking[i], accountKey(i)
	switch step.Do {
	case "ask":
		annotations := object{accountPrefix + "name": account.Name, accountPrefix + "namespace": account.Namespace, accountPrefix + "token-expiration-duration": "10m"}
		data := object{"mine": base64.StdEncoding.EncodeToString([]byte("stays"))}
		switch key.Name {
		case "config":
			data["kubeconfig"] = base64.StdEncoding.EncodeToString([]byte(kubeconfigWith("")))
		case "elsewhere":
			annotations["token-requestor.resources.gardener.cloud/target-secret-name"] = tokenElsewhere.Name
			annotations["token-requestor.resources.gardener.cloud/target-secret-namespace"] = tokenElsewhere.Namespace
		}
		t.put(t.source, key, object{"metadata": object{
			"labels": object{"resources.gardener.cloud/purpose": "token-requestor", "resources.gardener.cloud/class": "shoot"}, "annotations": annotations,
		}, "data": data})
	case "withdraw":
		t.remove(t.source, key)
	case "forget":
		t.patch(t.source, key, object{"metadata": object{"annotations": object{accountPrefix + "token-renew-timestamp": nil}}})
	case "garbage":
		garbage := base64.StdEncoding.EncodeToString([]byte("garbage"))
		switch key.Name {
		case "bare":
			t.patch(t.source, key, object{"data": object{"token": garbage}})
		case "config":
			t.patch(t.source, key, object{"data": object{"kubeconfig": base64.StdEncoding.EncodeToString([]byte(kubeconfigWith("garbage")))}})
		default:
			// Nobody watches the target; whoever breaks a token there says so in the source.
			t.patch(t.target, tokenElsewhere, object{"data": object{"token": garbage}})
			t.do(Step{Do: "forget", A: step.A})
		}
	case "edit":
		t.patch(t.source, key, object{"data": object{fmt.Sprintf("mine%d", step.B%2): base64.StdEncoding.EncodeToString([]byte(fmt.Sprint(step.B)))}})
	case "account-delete":
		t.remove(t.target, account)
		t.do(Step{Do: "edit", A: step.A, B: step.B})
	case "target-delete":
		t.remove(t.target, tokenElsewhere)
		t.do(Step{Do: "edit", A: 2, B: step.B})
	case "account-edit":
		t.patch(t.target, account, object{"metadata": object{"labels": object{"somebodys": fmt.Sprint(step.B)}}, "automountServiceAccountToken": true})
	case "rename":
		t.patch(t.source, key, object{"metadata": object{"annotations": object{accountPrefix + "name": accountKey(3 + step.B%2).Name}}})
	case "lifetime":
		t.patch(t.source, key, object{"metadata": object{"annotations": object{accountPrefix + "token-expiration-duration": []any{"10m", "20m", "soon"}[step.B%3]}}})
	}
}

// issueToken issues a token that says of itself what those of a real API server say. The lock is held.
func (s *stage) issueToken(account, sent object) (object, error) {
	seconds, _ := sent["spec"].(map[string]any)["expirationSeconds"].(int64)
	expires := time.Now().Add(time.Duration(seconds) * time.Second).Truncate(time.Second)
	key := keyOf("", "serviceaccounts", fake.Text(account, "metadata", "namespace"), fake.Text(account, "metadata", "name"))
	uid := fake.Text(account, "metadata", "uid")
	claims := marshal(object{
		"exp": expires.Unix(), "sub": "system:serviceaccount:" + key.Namespace + ":" + key.Name, "jti": fmt.Sprint(len(s.issued)), "kubernetes.io": object{"serviceaccount": object{"uid": uid}},
	})
	token := "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
	s.issued[token] = issuedToken{key, uid, expires}
	return object{"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "metadata": object{}, "status": object{
		"token": token, "expirationTimestamp": metav1.NewTime(expires).UTC().Format(time.RFC3339),
	}}, nil
}

// reviewToken reports whether a token is one that was issued and is valid. The lock is held.
func (s *stage) reviewToken(sent object) (object, error) {
	token := fake.Text(sent, "spec", "token")
	return object{"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "metadata": object{}, "status": object{"authenticated": s.validLocked(token)}}, nil
}

func (s *stage) validLocked(token string) bool {
	issued, found := s.issued[token]
	return found && time.Now().Before(issued.expires) && fake.Text(s.target.GetLocked(issued.account), "metadata", "uid") == issued.uid
}

// dataOf returns what is under a key of a Secret.
func dataOf(secret object, name string) string {
	decoded, err := base64.StdEncoding.DecodeString(fake.Text(secret, "data", name))
	if err != nil {
		return ""
	}
	return string(decoded)
}

// tokenOf returns the token that a Secret holds.
func tokenOf(secret object) string {
	if config := dataOf(secret, "kubeconfig"); config != "" {
		_, rest, _ := strings.Cut(config, "- name: u\n")
		_, token, found := strings.Cut(rest, "token: ")
		if !found {
			return ""
		}
		token, _, _ = strings.Cut(token, "\n")
		return strings.Trim(token, `"`)
	}
	return dataOf(secret, "token")
}

func (t *tokens) look() {}

func (t *tokens) changed(cluster string, c fake.Change) {
	if !isInstance(c.By) || c.Key.Resource == "events" && c.Verb == "create" {
		return
	}
	isAccount, isSecret := c.Key.Resource == "serviceaccounts" && cluster == "target", c.Key.Resource == "secrets"
	what := fmt.Sprintf("%s %ss %s %s", c.By, c.Verb, cluster, c.Key)
	switch {
	case isAccount && c.Verb == "create":
	case isAccount && c.Verb == "patch":
		if rest := onlyChanges(c, "automountServiceAccountToken", "metadata labels"); rest != "" {
			t.violateLocked(touchesTokens, "%s: %s", what, rest)
		}
	case isSecret && cluster == "target" && c.Verb == "create":
		t.checkWritten(c, accountKey(2), what)
	case isSecret && c.Verb == "patch":
		paths := []string{"data token", "data kubeconfig", "data bundle.crt"}
		if cluster == "source" {
			paths = append(paths, "metadata annotations "+accountPrefix+"token-renew-timestamp")
		}
		if rest := onlyChanges(c, paths...); rest != "" {
			t.violateLocked(touchesTokens, "%s: %s", what, rest)
		}
		was, is := dataOf(c.Before, "kubeconfig"), dataOf(c.After, "kubeconfig")
		if strings.Contains(was, "token: stays") && !strings.Contains(is, "token: stays") {
			t.violateLocked(touchesTokens, "%s: of the kubeconfig this is left: %q", what, is)
		}
		account := keyOf("", "serviceaccounts", targetNamespace, fake.Text(c.Before, "metadata", "annotations", accountPrefix+"name"))
		if cluster == "target" {
			account.Name = "" // The Secret in the source says it, and may say something else by now.
		}
		t.checkWritten(c, account, what)
	default:
		t.violateLocked(touchesTokens, "%s", what)
	}
}

// checkWritten is about the token that a Secret has now; the account's name is empty if any will do.
func (t *tokens) checkWritten(c fake.Change, account fake.Key, what string) {
	token := tokenOf(c.After)
	if token == "" || token == tokenOf(c.Before) {
		return
	}
	issued, found := t.issued[token]
	switch {
	case !found:
		t.violateLocked(writesIssued, "%s with a token that nobody has issued: %.20q", what, token)
	case account.Name != "" && c.Verb == "patch" && issued.account != account:
		t.violateLocked(writesIssued, "%s with a token of %s", what, issued.account)
	case !time.Now().Before(issued.expires):
		t.violateLocked(writesIssued, "%s with a token that has expired", what)
	}
}

func (t *tokens) play(map[fake.Key]object) {}

// settled watches for half an hour, in which each token is renewed several times.
func (t *tokens) settled() {
	t.lock.Lock()
	t.counted = len(t.issued)
	t.lock.Unlock()
	for range 30 {
		time.Sleep(time.Minute)
		t.checkTokens()
	}
	t.lock.Lock()
	defer t.lock.Unlock()
	// Each lives ten minutes at least, and is renewed after 7.6 at the earliest.
	if n := len(t.issued) - t.counted; n > 5*len(asking) {
		t.violateLocked(issuesFew, "%d tokens in half an hour", n)
	}
}

func (t *tokens) checkTokens() {
	t.lock.Lock()
	defer t.lock.Unlock()
	for _, key := range asking {
		secret := t.source.GetLocked(key)
		if secret == nil || fake.Text(secret, "metadata", "annotations", accountPrefix+"token-expiration-duration") == "soon" {
			continue
		}
		holder := secret
		if key.Name == "elsewhere" {
			holder = t.target.GetLocked(tokenElsewhere)
		}
		token := tokenOf(holder)
		want := fake.Text(secret, "metadata", "annotations", accountPrefix+"name")
		if !t.validLocked(token) || t.issued[token].account.Name != want {
			t.violateLocked(staysValid, "the token for %s is of %s and valid: %t; %s", key, t.issued[token].account, t.validLocked(token), shown(secret))
			return
		}
		if key.Name == "elsewhere" && tokenOf(secret) != "" {
			t.violateLocked(staysValid, "the source holds the token of %s, too", key)
		}
	}
}

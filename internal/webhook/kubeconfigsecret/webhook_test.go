package kubeconfigsecret

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/internal/cluster"
	"github.com/espalier-project/espalier/internal/endpoint/admission/admissiontest"
	"github.com/espalier-project/espalier/internal/externalapi/boundedyaml/yamltest"
	"github.com/espalier-project/espalier/test/expect"
)

type rejections struct{ reasons []string }

func (r *rejections) Count(request *admissionv1.AdmissionRequest, reason string) {
	r.reasons = append(r.reasons, string(request.Operation)+" "+request.Kind.Kind+" "+request.Namespace+" "+reason)
}

// secret is a request about a Secret with a kubeconfig.
func secret(operation admissionv1.Operation, kubeconfig string) admissionv1.AdmissionRequest {
	raw, err := json.Marshal(map[string]any{"metadata": map[string]any{"name": "s"}, "data": map[string][]byte{"kubeconfig": []byte(kubeconfig)}})
	if err != nil {
		panic(err)
	}
	return admissionv1.AdmissionRequest{Operation: operation, Namespace: "ns", Name: "s", Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Secret"}, Object: runtime.RawExtension{Raw: raw}, OldObject: runtime.RawExtension{Raw: []byte("{}")}}
}

func user(fields string) string {
	return `{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":"https://x","certificate-authority-data":"YQ=="}}],"users":[{"name":"u","user":{` + fields + `}}]}`
}

func TestKubeconfigs(t *testing.T) {
	const invalid, fields = `422 Secret "s" is invalid: data.kubeconfig: Invalid value: secret contains invalid kubeconfig: `, `, these are the valid fields: [client-certificate-data client-key-data token username password]`
	for name, c := range map[string]struct{ kubeconfig, want string }{
		"KCS-T1/KCS-1, a certificate":        {user(`"client-certificate-data":"YQ==","client-key-data":"YQ=="`), "200 "},
		"KCS-1/a token and a password":       {user(`"token":"t","username":"n","password":"p"`), "200 "},
		"KCS-T2/KCS-1, no kubeconfig at all": {"foobar", "400 couldn't get version/kind; json parse error: json: cannot unmarshal string"},
		"KCS-2/a file of a certificate":      {user(`"client-certificate":"/f"`), invalid + `client certificate files are not supported (user "u")` + fields},
		"KCS-2/a file of a key":              {user(`"client-key":"/f"`), invalid + `client key files are not supported (user "u")` + fields},
		"KCS-2/a file of a token":            {user(`"tokenFile":"/f"`), invalid + `token files are not supported (user "u")` + fields},
		"KCS-2/a user to act as":             {user(`"as":"admin"`), invalid + `impersonation is not supported` + fields},
		"KCS-2/groups to act as":             {user(`"as-groups":["admin"]`), invalid + `impersonation is not supported` + fields},
		"KCS-2/WB-34, a UID to act as":       {user(`"as-uid":"1"`), invalid + `impersonation is not supported` + fields},
		"KCS-2/WB-34, more to act as":        {user(`"as-user-extra":{"a":["b"]}`), invalid + `impersonation is not supported` + fields},
		"KCS-2/a provider":                   {user(`"auth-provider":{"name":"gcp","config":{"a":"secret"}}`), invalid + `auth provider configurations are not supported (user "u")` + fields},
		"KCS-2/WB-34, an empty provider":     {user(`"auth-provider":{"name":"gcp"}`), invalid + `auth provider configurations are not supported (user "u")` + fields},
		"KCS-T3/KCS-2, KCS-3, a program":     {user(`"exec":{"command":"/bin/sh","apiVersion":"v1"}`), invalid + `exec configurations are not supported (user "u")` + fields},
		"KCS-2/the first of several":         {user(`"exec":{"command":"x"},"client-key":"/f"`), invalid + `client key files are not supported (user "u")` + fields},
		"WB-34/a file of an authority":       {`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"certificate-authority":"/f"}}]}`, invalid + `certificate authority files are not supported (cluster "c"), use certificate-authority-data`},
	} {
		t.Run(name, func(t *testing.T) {
			for _, operation := range []admissionv1.Operation{admissionv1.Create, admissionv1.Update} {
				counted := &rejections{}
				response := admissiontest.Respond(Decide(counted), secret(operation, c.kubeconfig))
				if got := fmt.Sprintf("%d %s", response.Result.Code, response.Result.Message); !strings.HasPrefix(got, c.want) || response.Allowed != (response.Result.Code == 200) {
					t.Errorf("%s: allowed %v: %s, want %s", operation, response.Allowed, got, c.want)
				}
				want := ""
				if response.Result.Code == 422 {
					want = string(operation) + " Secret ns Rejected Kubeconfig"
				}
				expect.Equal(t, strings.Join(counted.reasons, ","), want, "KCS-3, OBS-20: counted")
			}
		})
	}
	for name, r := range map[string]admissionv1.AdmissionRequest{
		"KCS-T1/KCS-1, no key": {Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(`{"data":{"a":"YQ=="}}`)}},
		"KCS-1/a deletion":     {Operation: admissionv1.Delete, OldObject: secret(admissionv1.Create, user(`"exec":{"command":"x"}`)).Object},
	} {
		response := admissiontest.Respond(Decide(&rejections{}), r)
		expect.True(t, response.Allowed, "%s: %+v", name, response.Result)
	}
}

// TestNothingTold: no answer has anything of the Secret but names of its users and clusters (KCS-T4, WB-33).
func TestNothingTold(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const password = "sEcReT123"
		kubeconfig := rapid.SampledFrom([]string{
			user(`"exec":{"command":"%s"}`), user(`"client-key":"%s"`), user(`"tokenFile":"%s"`), user(`"as":"%s"`), user(`"auth-provider":{"config":{"a":"%s"}}`), user(`"token":"%s","exec":{}`),
			"%s", "a: %s: b", "a: *%s", "%s: 1\n%s: 2", "a: !%s x", "a: \"%s", "- %s", `{"apiVersion":"v1","kind":"%s"}`, `{"users":"%s"}`, `{"users":[{"user":{"client-key-data":"%s!"}}]}`, "kind: Config\nusers:\n- user: {token: %s\n",
			"apiVersion: v1\nkind: Config\nusers: [{name: u, user: {as-groups: %s}}]",
		}).Draw(rt, "kubeconfig")
		kubeconfig = strings.ReplaceAll(kubeconfig, "%s", password)
		if i := rapid.IntRange(0, len(kubeconfig)).Draw(rt, "cut"); rapid.Bool().Draw(rt, "is cut") {
			kubeconfig = kubeconfig[:i]
		}
		response := admissiontest.Respond(Decide(&rejections{}), secret(admissionv1.Create, kubeconfig))
		if text := fmt.Sprintf("%+v", response.Result); strings.Contains(text, password) || strings.Contains(text, password[:6]) {
			rt.Errorf("KCS-T4/WB-33: %q is answered with %s", kubeconfig, text)
		}
	})
}

// TestUnchanged: a Secret that was admitted before, with a kubeconfig that is refused now, can be released.
func TestUnchanged(t *testing.T) {
	r := secret(admissionv1.Update, user(`"exec":{"command":"/bin/sh","apiVersion":"v1"}`))
	r.OldObject.Raw = []byte(strings.Replace(string(r.Object.Raw), `"name":"s"`, `"name":"s","finalizers":["x"]`, 1))
	response := admissiontest.Respond(Decide(&rejections{}), r)
	expect.True(t, response.Allowed, "T4-4, KCS-4: %+v", response.Result)
}

// TestNamesTwice: the parser repeats all entries of a list where two have the same name; the answer does not (KCS-T4, KCS-1, WB-33).
func TestNamesTwice(t *testing.T) {
	const password = "sEcReT123"
	for name, kubeconfig := range map[string]string{
		"users":      `{"apiVersion":"v1","kind":"Config","users":[{"name":"u","user":{"token":"` + password + `"}},{"name":"u","user":{"password":"` + password + `"}}]}`,
		"clusters":   `{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"proxy-url":"` + password + `"}},{"name":"c","cluster":{}}]}`,
		"contexts":   `{"apiVersion":"v1","kind":"Config","contexts":[{"name":"c","context":{"namespace":"` + password + `"}},{"name":"c","context":{}}]}`,
		"a password": `{"apiVersion":"v1","kind":"Config","users":[{"name":"u","user":{"password":"\"` + password + `"}},{"name":"u","user":{"token":"x\" ` + password + `"}}]}`,
	} {
		response := admissiontest.Respond(Decide(&rejections{}), secret(admissionv1.Create, kubeconfig))
		if response.Allowed || response.Result.Code != 400 || !strings.Contains(response.Result.Message, "duplicate name") || strings.Contains(response.Result.Message, password) {
			t.Errorf("%s: got %+v", name, response.Result)
		}
	}
}

func FuzzWebhook(f *testing.F) {
	admissiontest.FuzzReviews(f, Decide(&rejections{}), admissionv1.AdmissionRequest{Namespace: "ns", Name: "s"}, `{"data":{"kubeconfig":"e30="}}`, `{"data":{"kubeconfig":""}}`, `{"data":{"kubeconfig":1}}`)
}

// FuzzKubeconfig judges any kubeconfig.
func FuzzKubeconfig(f *testing.F) {
	for _, seed := range []string{"", "{}", user(`"exec":null`), `{"apiVersion":"v1","kind":"Config","users":[null],"clusters":[null]}`, `{"apiVersion":"v1","kind":"Config","users":[{"name":"u","user":null}]}`} {
		f.Add(seed)
	}
	yamltest.Seeds(f, func(content string) { f.Add(content) })
	f.Fuzz(func(t *testing.T, kubeconfig string) {
		r := secret(admissionv1.Create, kubeconfig)
		yamltest.Bounded(t, len(kubeconfig), func() {
			response := admissiontest.Respond(Decide(&rejections{}), r)
			expect.False(t, strings.HasPrefix(response.Result.Message, "panic: "), "%v", response.Result.Message)
		})
	})
}

// TestDocument: the document shows what the webhook does and how it is registered (ADM-12).
func TestDocument(t *testing.T) {
	r := admissionv1.AdmissionRequest{Operation: admissionv1.Create, Namespace: "garden-dev"}
	t.Run("ADM-12 as it is registered", func(t *testing.T) {
		admissiontest.Judged{Decide: Decide(&rejections{}), Request: r, Other: r}.Document(t, Name, Registration())
	})
}

// TestHostileKubeconfigs: a member of a project may write anything (T3-6, KCS-1).
func TestHostileKubeconfigs(t *testing.T) {
	yamltest.RefusesCheaply(t, "T3-6/KCS-1", []int{20 << 10, 80 << 10, 1 << 20}, func(content []byte) error { _, err := cluster.DecodeKubeconfig(content); return err })
	response := admissiontest.Respond(Decide(&rejections{}), secret(admissionv1.Create, yamltest.Nested(12)))
	if response.Allowed || response.Result.Code != 400 || response.Result.Message != "document has more than 100000 nodes, with its aliases expanded" {
		t.Errorf("T3-6/KCS-1: got %+v", response.Result)
	}
}

package token

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/internal/externalapi/boundedyaml/yamltest"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

const secretToken = "s3cr3t-token"

func TestRelevant(t *testing.T) {
	for name, tc := range map[string]struct {
		class  string
		labels map[string]string
		want   bool
	}{
		"TR-2/BH-TR-2, no class configured, none on the Secret": {"", map[string]string{LabelPurpose: PurposeRequest}, true},
		"TR-2, TR-26/no class configured, one on the Secret":    {"", map[string]string{LabelPurpose: PurposeRequest, LabelClass: "garden"}, true},
		"TR-2/SW-8, BH-TR-13, the class":                        {"foo", map[string]string{LabelPurpose: PurposeRequest, LabelClass: "foo"}, true},
		"TR-2/BH-TR-13, another class":                          {"foo", map[string]string{LabelPurpose: PurposeRequest, LabelClass: "bar"}, false},
		"TR-2/no class":                                         {"foo", map[string]string{LabelPurpose: PurposeRequest}, false},
		"TR-2/another purpose":                                  {"", map[string]string{LabelPurpose: "x"}, false},
		"TR-2/nothing":                                          {"", nil, false},
	} {
		expect.Equal(t, Relevant(tc.labels, tc.class), tc.want, "%s", name)
	}
}

func annotations(more ...string) map[string]string {
	a := map[string]string{AnnotationName: "sa", AnnotationNamespace: "ns", AnnotationRenew: "2026-01-01T10:00:00Z"}
	for i := 0; i < len(more); i += 2 {
		a[more[i]] = more[i+1]
	}
	return a
}

func ask(t testing.TB, more ...string) *Asked {
	t.Helper()
	a, err := Ask(annotations(more...))
	must.Succeed(t, err)
	return a
}

func TestAsk(t *testing.T) {
	for _, key := range []string{AnnotationName, AnnotationNamespace} {
		expect.ErrorContains(t, expect.ErrorOf(Ask(annotations(key, ""))), key, "2.8/%s is missing", key)
	}
	for value, want := range map[string]bool{"1": true, "t": true, "T": true, "true": true, "TRUE": true, "True": true, "yes": false, "": false, "false": false} {
		expect.Equal(t, ask(t, AnnotationInjectCA, value).InjectCA, want, "2.1/%q", value)
	}
	a := ask(t, AnnotationTargetName, "n")
	expect.True(t, a.Target == nil && a.HalfTarget, "TR-8/half a target: got %+v", a)
	if a := ask(t, AnnotationTargetNamespace, "m"); a.Target != nil || !a.HalfTarget {
		t.Errorf("TR-8/the other half of a target: got %+v", a)
	}
	if a := ask(t); a.Target != nil || a.HalfTarget {
		t.Errorf("TR-8/no target: got %+v", a)
	}
	if a := ask(t, AnnotationTargetName, "n", AnnotationTargetNamespace, "m"); a.Target == nil || a.Target.String() != "m/n" || a.HalfTarget {
		t.Errorf("TR-8/BH-TR-12, a target: got %+v", a)
	}
	if labels, err := ask(t, AnnotationLabels, `{"foo":"bar"}`).Labels(); err != nil || cmp.Diff(map[string]string{"foo": "bar"}, labels) != "" {
		t.Errorf("TR-13/BH-TR-4: got %v, %v", labels, err)
	}
	if _, err := ask(t, AnnotationLabels, "x").Labels(); err == nil ||
		!strings.HasPrefix(err.Error(), `failed unmarshalling service account labels from secret annotation "serviceaccount.resources.gardener.cloud/labels" (x): `) {
		t.Errorf("TR-14: got %v", err)
	}
	for value, want := range map[string]int64{"": 43200, "10m": 600, "100h": 360000, "90.9s": 90} {
		got, err := ask(t, AnnotationExpiration, value).Seconds()
		expect.True(t, err == nil && got == want, "TR-15/BH-TR-10, %q: got %d, %v", value, got, err)
	}
	expect.ErrorContains(t, expect.ErrorOf(ask(t, AnnotationExpiration, "unparsable").Seconds()), "invalid duration",
		"TR-15")
}

func TestDelay(t *testing.T) {
	for lifetime, want := range map[time.Duration]time.Duration{
		12 * time.Hour: 9*time.Hour + 36*time.Minute, 10 * time.Minute: 8 * time.Minute, 30 * time.Hour: 24 * time.Hour, 100 * time.Hour: 24 * time.Hour,
		0: 30 * time.Second, -time.Hour: 30 * time.Second,
	} {
		expect.Equal(t, Delay(lifetime, 0), want, "TR-17/BH-TR-11: %s", lifetime)
	}
	rapid.Check(t, func(rt *rapid.T) {
		lifetime := time.Duration(rapid.Int64Range(int64(time.Minute), int64(1000*time.Hour)).Draw(rt, "lifetime"))
		latest := min(lifetime/5*4+4, 24*time.Hour)
		got := Delay(lifetime, rapid.Float64Range(0, 1).Draw(rt, "spread"))
		expect.True(rt, got <= latest && got >= latest/100*95-time.Microsecond,
			"C13: %s is not within 5%% below %s", got, latest)
	})
	expect.Equal(t, Stamp(time.Date(2026, 1, 1, 12, 0, 0, 999, time.FixedZone("x", 3600))), "2026-01-01T11:00:00Z", "TR-18/BH-TR-9")
}

// web returns a token of the usual form.
func web(expiry time.Time, user, uid string) string {
	encode := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	return encode(`{"alg":"RS256"}`) + "." + encode(fmt.Sprintf(`{"exp":%d,"sub":%q,"kubernetes.io":{"serviceaccount":{"uid":%q}}}`, expiry.Unix(), user, uid)) + "." + encode("x")
}

func TestExamine(t *testing.T) {
	now := time.Date(2026, 1, 1, 9, 0, 0, 0, time.UTC)
	ca := []byte("ca")
	withCA := func(ca string) string {
		return strings.Replace(twoUsers, "certificate-authority-data: b2xk", "certificate-authority-data: "+base64.StdEncoding.EncodeToString([]byte(ca)), 1)
	}
	for name, tc := range map[string]struct {
		annotations []string
		data        map[string]string
		renew, err  string
	}{
		"TR-7":                          {[]string{AnnotationRenew, ""}, map[string]string{KeyToken: "t"}, "it is not known when to renew the token", ""},
		"TR-9/none":                     {nil, nil, "there is no token", ""},
		"TR-9/token":                    {nil, map[string]string{KeyToken: "t"}, "", ""},
		"TR-9/kubeconfig comes first":   {nil, map[string]string{KeyToken: "t", KeyKubeconfig: strings.Replace(twoUsers, "token: "+secretToken, "x: y", 1)}, "there is no token", ""},
		"TR-9/kubeconfig":               {nil, map[string]string{KeyKubeconfig: twoUsers}, "", ""},
		"TR-9/garbage":                  {nil, map[string]string{KeyKubeconfig: "garbage"}, "", "could not check whether token exists in secret data: cannot unmarshal string into Go value of type v1.Config"},
		"TR-10/not asked for":           {nil, map[string]string{KeyToken: "t", KeyBundle: "old"}, "", ""},
		"TR-10/bundle, the same":        {[]string{AnnotationInjectCA, "true"}, map[string]string{KeyToken: "t", KeyBundle: "ca"}, "", ""},
		"TR-10/bundle, another":         {[]string{AnnotationInjectCA, "true"}, map[string]string{KeyToken: "t", KeyBundle: "old"}, "the CA has changed", ""},
		"TR-10/bundle, none":            {[]string{AnnotationInjectCA, "true"}, map[string]string{KeyToken: "t"}, "the CA has changed", ""},
		"TR-10/kubeconfig, the same":    {[]string{AnnotationInjectCA, "true"}, map[string]string{KeyKubeconfig: withCA("ca")}, "", ""},
		"TR-10/kubeconfig, another":     {[]string{AnnotationInjectCA, "true"}, map[string]string{KeyKubeconfig: twoUsers}, "the CA has changed", ""},
		"TR-10, TR-23a/no such cluster": {[]string{AnnotationInjectCA, "true"}, map[string]string{KeyKubeconfig: strings.Replace(twoUsers, "name: c1", "name: c9", 1)}, "", "could not check whether the caBundle is up to date: did not find cluster of current context named c1"},
		"2.8/it has expired":            {nil, map[string]string{KeyToken: web(now, "system:serviceaccount:ns:sa", "uid")}, "the token has expired", ""},
		"2.8/it has not":                {nil, map[string]string{KeyToken: web(now.Add(time.Second), "system:serviceaccount:ns:sa", "uid")}, "", ""},
		"2.8/stamped after it had expired: our clock is ahead, and there is a pause": {[]string{AnnotationRenew, Stamp(now.Add(shortest))}, map[string]string{KeyToken: web(now.Add(-time.Hour), "system:serviceaccount:ns:sa", "uid")}, "", ""},
		"2.8/it has expired, and is to be renewed much later":                        {[]string{AnnotationRenew, Stamp(now.Add(shortest + time.Second))}, map[string]string{KeyToken: web(now.Add(-time.Hour), "system:serviceaccount:ns:sa", "uid")}, "the token has expired", ""},
		"another ServiceAccount":              {nil, map[string]string{KeyToken: web(now.Add(time.Second), "system:serviceaccount:ns:other", "uid")}, "the token is of another ServiceAccount", ""},
		"a ServiceAccount made anew":          {nil, map[string]string{KeyToken: web(now.Add(time.Second), "system:serviceaccount:ns:sa", "old")}, "the token is of a ServiceAccount that was replaced", ""},
		"TR-12 comes last: no token, no time": {[]string{AnnotationRenew, "invalid-format"}, nil, "there is no token", ""},
	} {
		data := map[string][]byte{}
		for key, value := range tc.data {
			data[key] = []byte(value)
		}
		got, err := ask(t, tc.annotations...).Examine(data, ca, "uid", now)
		if message := fmt.Sprint(err); got.Renew != tc.renew || (err != nil || tc.err != "") && message != tc.err {
			t.Errorf("%s: got %q, %v", name, got.Renew, err)
		}
	}
	remaining, err := ask(t).Remaining(now)
	expect.True(t, err == nil && remaining == time.Hour, "TR-12: got %s, %v", remaining, err)
	if _, err := ask(t, AnnotationRenew, "invalid-format").Remaining(now); err == nil || !strings.HasPrefix(err.Error(), "could not parse renew timestamp: ") {
		t.Errorf("TR-12: got %v", err)
	}
}

func TestClaims(t *testing.T) {
	at := time.Unix(1800000000, 0)
	got := ClaimsOf(web(at, "u", "i"))
	expect.True(t, got.Expiry.Equal(at) && got.User == "u" && got.AccountUID == "i", "got %+v", got)
	for _, token := range []string{"", "a.b", "a.!.c", "a." + base64.RawURLEncoding.EncodeToString([]byte(`{}`)) + ".c", "a." + base64.RawURLEncoding.EncodeToString([]byte(`x`)) + ".c"} {
		expect.Equal(t, ClaimsOf(token), (Claims{}), "%q", token)
	}
}

// twoUsers has two of everything, things nobody here knows, and comments.
const twoUsers = `# Written by somebody.
apiVersion: v1
kind: Config
current-context: x1 # this one
clusters:
  - name: c1
    cluster:
      server: https://one
      certificate-authority-data: b2xk
      x-future: [1, {a: yes}]
  - name: c2
    cluster:
      server: https://two
      certificate-authority-data: b3RoZXI=
contexts:
  - name: x1
    context: {cluster: c1, user: u1}
  - name: x2
    context:
      cluster: c2
      user: u2
      namespace: "0777"
users:
  - name: u2
    user:
      token: other
  - name: u1
    user:
      token: ` + secretToken + `
      username: true
extensions:
  - name: e
    extension: {when: 2026-01-01}
`

func write(t testing.TB, data map[string][]byte, wantCA bool, ca string) map[string][]byte {
	t.Helper()
	written, err := Write(data, "new", wantCA, []byte(ca))
	must.Succeed(t, err)
	return written
}

func TestWriteBare(t *testing.T) {
	for name, tc := range map[string]struct {
		data   map[string][]byte
		wantCA bool
		ca     string
		want   map[string][]byte
	}{
		"TR-22/BH-TR-5, nothing there":     {nil, false, "ca", map[string][]byte{"token": []byte("new")}},
		"TR-22/BH-TR-8, with CA":           {nil, true, "ca", map[string][]byte{"token": []byte("new"), "bundle.crt": []byte("ca")}},
		"TR-22/CA no more wanted":          {map[string][]byte{"bundle.crt": []byte("ca")}, false, "ca", map[string][]byte{"token": []byte("new")}},
		"TR-22/no CA known":                {map[string][]byte{"bundle.crt": []byte("ca")}, true, "", map[string][]byte{"token": []byte("new")}},
		"TR-21/the rest, an older token":   {map[string][]byte{"token": []byte("old"), "x": []byte("y")}, false, "", map[string][]byte{"token": []byte("new"), "x": []byte("y")}},
		"TR-21/empty values are also kept": {map[string][]byte{"x": {}}, false, "", map[string][]byte{"token": []byte("new"), "x": {}}},
	} {
		before := fmt.Sprint(tc.data)
		expect.DeepEqual(t, write(t, tc.data, tc.wantCA, tc.ca), tc.want, "%s", name)
		expect.Equal(t, fmt.Sprint(tc.data), before, "%s: what was given has changed", name)
	}
}

// TR-23: of a kubeconfig the token and the CA of the current context change.
func TestWriteKubeconfig(t *testing.T) {
	got := string(write(t, map[string][]byte{KeyKubeconfig: []byte(twoUsers), KeyToken: []byte("stays")}, true, "ca")[KeyKubeconfig])
	want := strings.NewReplacer("token: "+secretToken, "token: new", "certificate-authority-data: b2xk", "certificate-authority-data: Y2E=").Replace(twoUsers)
	expect.DeepEqual(t, decode(t, got), decode(t, want), "BH-TR-6, BH-TR-7/YAML")
	data := write(t, map[string][]byte{KeyKubeconfig: []byte(twoUsers), KeyToken: []byte("stays"), KeyBundle: []byte("stays")}, false, "ca")
	if string(data[KeyToken]) != "stays" || string(data[KeyBundle]) != "stays" || !strings.Contains(string(data[KeyKubeconfig]), "b2xk") {
		t.Error("TR-23: token, bundle.crt or a CA have changed")
	}
	expect.Contains(t, string(write(t, map[string][]byte{KeyKubeconfig: []byte(twoUsers)}, true, "")[KeyKubeconfig]), "b2xk",
		"TR-23: a CA was removed")

	asJSON, err := yaml.YAMLToJSON([]byte(twoUsers))
	must.Succeed(t, err)
	got = string(write(t, map[string][]byte{KeyKubeconfig: asJSON}, false, "")[KeyKubeconfig])
	expect.True(t, !strings.ContainsAny(got, "{[") && strings.HasPrefix(got, "apiVersion: v1\n"),
		"TR-23/JSON is written as YAML: got %s", got)
	expect.DeepEqual(t, decode(t, got), withToken(t, string(asJSON), "u1", "new"), "BH-TR-6/JSON")
}

func decode(t testing.TB, content string) map[string]any {
	t.Helper()
	var decoded map[string]any
	must.Succeed(t, yaml.Unmarshal([]byte(content), &decoded))
	return decoded
}

// meaning returns data with their kubeconfig decoded.
func meaning(t testing.TB, data map[string][]byte) map[string]any {
	t.Helper()
	all := map[string]any{}
	for key, content := range data {
		all[key] = string(content)
	}
	if content, found := data[KeyKubeconfig]; found {
		all[KeyKubeconfig] = decode(t, string(content))
	}
	return all
}

// withToken is what content means with another token of a user.
func withToken(t testing.TB, content, user, token string) map[string]any {
	t.Helper()
	decoded := decode(t, content)
	for _, entry := range decoded["users"].([]any) {
		if e := entry.(map[string]any); e["name"] == user {
			if e["user"] == nil {
				e["user"] = map[string]any{}
			}
			e["user"].(map[string]any)["token"] = token
		}
	}
	return decoded
}

func TestKubeconfigForms(t *testing.T) {
	const head = "current-context: x\ncontexts: [{name: x, context: {user: u, cluster: c}}]\n"
	for name, content := range map[string]string{
		"no user":             head + "users: [{name: u}]",
		"null user":           head + "users:\n- name: u\n  user: null\n",
		"~ user":              head + "users:\n- name: u\n  user: ~\n",
		"empty user":          head + "users:\n- name: u\n  user: {}\n",
		"null token":          head + "users:\n- {name: u, user: {token: null, x: y}}\n",
		"shared users":        head + "users:\n- name: other\n  user: &u {token: shared}\n- name: u\n  user: *u\n",
		"a merged user":       head + "base: &b {token: shared, x: y}\nusers:\n- name: u\n  user:\n    <<: *b\n",
		"JSON in one line":    `{"current-context":"x","contexts":[{"name":"x","context":{"user":"u"}}],"users":[{"name":"u","user":{"token":""}}]}`,
		"words that are none": head + "users:\n- {name: u, user: {token: \"true\", x: \"1.0\", y: yes}}\n",
	} {
		t.Run("TR-23/"+name, func(t *testing.T) {
			written := write(t, map[string][]byte{KeyKubeconfig: []byte(content)}, false, "")
			diff := cmp.Diff(withToken(t, content, "u", "new"), decode(t, string(written[KeyKubeconfig])))
			expect.Equal(t, diff, "", "%s\n%s", diff, written[KeyKubeconfig])
			got, err := Read(written)
			expect.True(t, err == nil && got == "new", "read %q, %v", got, err)
			expect.Equal(t, string(write(t, written, false, "")[KeyKubeconfig]), string(written[KeyKubeconfig]),
				"written twice")
		})
	}
}

func TestKubeconfigErrors(t *testing.T) {
	const head = "current-context: x\ncontexts: [{name: x, context: {user: u, cluster: c}}]\n"
	for name, tc := range map[string]struct{ content, want string }{
		"TR-23a/a word":            {secretToken, "cannot unmarshal string into Go value of type v1.Config"},
		"TR-23a/a number":          {"5", "cannot unmarshal number into Go value of type v1.Config"},
		"TR-23a/a list":            {"[]", "cannot unmarshal array into Go value of type v1.Config"},
		"TR-23a/nothing":           {"", "did not find context defined in current context"},
		"TR-23a/null":              {"null", "did not find context defined in current context"},
		"TR-23a/a comment":         {"# x", "did not find context defined in current context"},
		"TR-23a/no context":        {"current-context: x", "did not find context defined in current context"},
		"TR-23a/no user":           {head, "did not find authInfo of current context named u"},
		"TR-23a/no cluster":        {head + "users: [{name: u}]", "did not find cluster of current context named c"},
		"TR-23a/no YAML":           {"a: 1\nb: [" + secretToken, "kubeconfig is neither YAML nor JSON: line"},
		"TR-23a/a list of words":   {head + "users: [" + secretToken + "]", "cannot unmarshal string into Go struct field Config.users"},
		"TR-23a/no list":           {head + "users: " + secretToken, "cannot unmarshal string into Go struct field Config.users"},
		"TR-23a/no user but words": {head + "users: [{name: u, user: " + secretToken + "}]", "cannot unmarshal string into Go struct field Config.users.user"},
		"TR-23a/no token but more": {head + "users: [{name: u, user: {token: [" + secretToken + "]}}]", "cannot unmarshal array into Go struct field of type string: token"},
		"TR-23a/a second document": {twoUsers + "---\n" + secretToken, "kubeconfig: content has more than one document"},
		"TR-23a/a key twice":       {twoUsers + "users: " + secretToken, "kubeconfig: document has a key more than once: line 34"},
		"TR-23a/a key of JSON":     {`{"users":[],"users":["` + secretToken + `"]}`, "kubeconfig: document has a key more than once"},
		"T3-6/a list of itself":    {head + "users: &a [*a]", "kubeconfig: document has more than 20000 nodes, with its aliases expanded"},
	} {
		data := map[string][]byte{KeyKubeconfig: []byte(tc.content)}
		if _, err := Write(data, "new", true, []byte("ca")); err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), secretToken) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestPropertyKubeconfig: whatever a kubeconfig has, the token of the current user changes and nothing else does.
func TestPropertyKubeconfig(t *testing.T) {
	names := rapid.SampledFrom([]string{"a", "b", "true", "1", ""})
	values := rapid.SampledFrom([]any{"x", "true", "0777", "multi\nline", " lead", "é", "# no comment", float64(5), true, nil, map[string]any{"k": "v"}, []any{"e", nil}})
	rapid.Check(t, func(rt *rapid.T) {
		config := map[string]any{"current-context": "x", "extra": values.Draw(rt, "extra")}
		user := names.Draw(rt, "user")
		config["contexts"] = []any{map[string]any{"name": "x", "context": map[string]any{"user": user, "namespace": values.Draw(rt, "namespace")}}}
		var users []any
		for _, name := range rapid.SliceOfDistinct(names, func(s string) string { return s }).Draw(rt, "users") {
			users = append(users, map[string]any{"name": name, "user": rapid.MapOf(rapid.SampledFrom([]string{"exec", "password", "x y"}), values).Draw(rt, "content")})
		}
		config["users"] = users
		content, err := json.Marshal(config)
		if rapid.Bool().Draw(rt, "YAML") {
			content, err = yaml.Marshal(config)
		}
		must.Succeed(rt, err)
		written, err := Write(map[string][]byte{KeyKubeconfig: content}, "new", false, nil)
		found := false
		for _, u := range users {
			found = found || u.(map[string]any)["name"] == user
		}
		expect.Equal(rt, err == nil, found, "user there: %v, error %v", found, err)
		if err != nil {
			return
		}
		expect.DeepEqual(rt, decode(t, string(written[KeyKubeconfig])), withToken(t, string(content), user, "new"))
	})
}

// handed returns the data of both Secrets once the token lives in the target.
func handed(source, target map[string][]byte, token string, wantCA bool, ca []byte) (newSource, newTarget map[string][]byte, err error) {
	if newSource, err = Without(source); err == nil {
		newTarget, err = Handed(source, target, token, wantCA, ca)
	}
	return newSource, newTarget, err
}

func TestHanded(t *testing.T) {
	b := func(s string) []byte { return []byte(s) }
	without := strings.Replace(twoUsers, "      token: "+secretToken+"\n", "", 1)
	with := strings.Replace(twoUsers, "token: "+secretToken, "token: new", 1)
	for name, tc := range map[string]struct{ source, target, wantSource, wantTarget map[string][]byte }{
		"TR-20/C14, a bare token": {
			source: map[string][]byte{"token": b("old"), "bundle.crt": b("ca"), "x": b("y")}, target: map[string][]byte{"z": b("z")},
			wantSource: map[string][]byte{"x": b("y")}, wantTarget: map[string][]byte{"token": b("new"), "z": b("z")},
		},
		"TR-20/the target has a form of its own": {
			source: map[string][]byte{"token": b("old")}, target: map[string][]byte{"kubeconfig": b(twoUsers)},
			wantSource: map[string][]byte{}, wantTarget: map[string][]byte{"kubeconfig": b(with)},
		},
		"C14/2.8, the source's kubeconfig is not lost": {
			source: map[string][]byte{"kubeconfig": b(twoUsers)}, target: nil,
			wantSource: map[string][]byte{"kubeconfig": b(without)}, wantTarget: map[string][]byte{"kubeconfig": b(with)},
		},
		"C14/the source's kubeconfig is copied once": {
			source: map[string][]byte{"kubeconfig": b(without)}, target: map[string][]byte{"kubeconfig": b(strings.Replace(twoUsers, "https://one", "https://own", 1))},
			wantSource: map[string][]byte{"kubeconfig": b(without)}, wantTarget: map[string][]byte{"kubeconfig": b(strings.Replace(with, "https://one", "https://own", 1))},
		},
		"C14/the bare token of before does not stay in the target": {
			source: map[string][]byte{"kubeconfig": b(without)}, target: map[string][]byte{"token": b("old"), "bundle.crt": b("ca")},
			wantSource: map[string][]byte{"kubeconfig": b(without)},
			wantTarget: map[string][]byte{"kubeconfig": b(strings.Replace(without, "      username: true\n", "      username: true\n      token: new\n", 1))},
		},
	} {
		source, target, err := handed(tc.source, tc.target, "new", false, nil)
		expect.Succeed(t, err, "%s", name)
		expect.DeepEqual(t, meaning(t, source), meaning(t, tc.wantSource), "%s, source", name)
		expect.DeepEqual(t, meaning(t, target), meaning(t, tc.wantTarget), "%s, target", name)
		leftover, err := Leftover(source)
		expect.True(t, !leftover && err == nil, "%s: the source still holds a token: %v, %v", name, leftover, err)
		if leftover, err := Leftover(tc.source); err != nil || leftover != (tc.source["token"] != nil || strings.Contains(string(tc.source["kubeconfig"]), secretToken)) {
			t.Errorf("%s: the source held a token: %v, %v", name, leftover, err)
		}
	}
}

// FuzzKubeconfig: no content makes the code panic or costs more than any may, and what is written can be read.
func FuzzKubeconfig(f *testing.F) {
	f.Add([]byte(twoUsers))
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte("current-context: x\ncontexts: [{name: x, context: {user: u}}]\nusers: [{name: u}]"))
	yamltest.Seeds(f, func(content string) { f.Add([]byte(content)) })
	f.Fuzz(func(t *testing.T, content []byte) {
		data := map[string][]byte{KeyKubeconfig: content}
		var written map[string][]byte
		var err error
		yamltest.Bounded(t, len(content), func() { written, err = Write(data, "new", true, []byte("ca")) })
		if err != nil {
			return
		}
		got, err := Read(written)
		expect.True(t, err == nil && got == "new", "read %q, %v from\n%s", got, err, written[KeyKubeconfig])
	})
}

// TestHostileKubeconfigs: a tenant writes the Secret in the target, and may write anything (T3-6).
func TestHostileKubeconfigs(t *testing.T) {
	yamltest.RefusesCheaply(t, "T3-6/TR-23, of a target", []int{20 << 10, 80 << 10, 1 << 20}, func(content []byte) error {
		_, err := Read(map[string][]byte{KeyKubeconfig: content})
		return err
	})
}

package token

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-project/espalier/test/expect"
)

// TestFaultsOfKubeconfigs: whoever reads, writes, hands over or looks for leftovers is told of a fault that concerns them, and of no other (TR-23a).
func TestFaultsOfKubeconfigs(t *testing.T) {
	const (
		context = "current-context: x\ncontexts: [{name: x, context: {user: u, cluster: c}}]\n"
		user    = "users: [{name: u, user: {token: s3cr3t}}]\n"
		noToken = "users: [{name: u, user: {}}]\n"
		cluster = "clusters: [{name: c, cluster: {}}]\n"
	)
	for name, tc := range map[string]struct {
		content string
		// concerned are those who are told: r reads the token, a reads the CA, w writes the token, c writes both, h hands over, l looks for leftovers.
		concerned, want string
	}{
		"TR-23a/no user":                 {context + cluster, "rwchl", "did not find authInfo of current context named u"},
		"TR-23a/no cluster":              {context + user, "ac", "did not find cluster of current context named c"},
		"TR-23a/CA is a list":            {context + user + "clusters: [{name: c, cluster: {certificate-authority-data: [s3cr3t]}}]", "ac", "cannot unmarshal array into Go struct field of type string: certificate-authority-data"},
		"TR-23a/CA is no base64":         {context + user + "clusters: [{name: c, cluster: {certificate-authority-data: s3cr3t!}}]", "a", "certificate-authority-data of the current cluster is not base64"},
		"TR-23a/no YAML, without a line": {"\x00", "rawchl", "kubeconfig is neither YAML nor JSON"},
		"TR-23a/all there":               {context + noToken + cluster, "", ""},
	} {
		data := map[string][]byte{KeyKubeconfig: []byte(tc.content)}
		for who, does := range map[string]func() error{
			"r": func() error { _, err := Read(data); return err },
			"a": func() error { _, err := sameCA(data, []byte("ca")); return err },
			"w": func() error { _, err := Write(data, "new", false, nil); return err },
			"c": func() error { _, err := Write(data, "new", true, []byte("ca")); return err },
			"h": func() error { _, _, err := handed(data, nil, "new", false, nil); return err },
			"l": func() error { _, err := Leftover(data); return err },
		} {
			err := does()
			if concerned := strings.Contains(tc.concerned, who); (err != nil) != concerned {
				t.Errorf("%s: %s got %v", name, who, err)
			} else if concerned && (!strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "s3cr3t")) {
				t.Errorf("%s: %s got %v, want %s", name, who, err, tc.want)
			}
		}
		if _, _, err := handed(data, map[string][]byte{KeyKubeconfig: []byte(context + noToken + cluster)}, "new", false, nil); (err != nil) != strings.Contains(tc.concerned, "h") {
			t.Errorf("%s: the target has a kubeconfig of its own, and the source's fault is: %v", name, err)
		}
	}
}

// TestSmallest: what is as short as it can be counts like anything else.
func TestSmallest(t *testing.T) {
	expect.Equal(t, string(write(t, nil, true, "c")[KeyBundle]), "c", "TR-22: a CA of one byte is written")
	const config = "current-context: x\ncontexts:\n- name: x\n  context:\n    user: u\n    cluster: c\nusers:\n- name: u\n  user: {}\nclusters:\n- name: c\n  cluster: {}\n"
	got := string(write(t, map[string][]byte{KeyKubeconfig: []byte(config)}, true, "c")[KeyKubeconfig])
	want := strings.NewReplacer("user: {}", "user:\n      token: new", "cluster: {}", "cluster:\n      certificate-authority-data: Yw==").Replace(config)
	expect.True(t, cmp.Equal(decode(t, got), decode(t, want)) && !strings.ContainsAny(got, "{}"), "TR-23: got\n%s", got)
	for held, want := range map[string]bool{"c": true, "d": false} {
		same, err := sameCA(map[string][]byte{KeyKubeconfig: []byte(got)}, []byte(held))
		expect.True(t, same == want && err == nil, "TR-10: the CA is c, and %s counts as the same: %t, %v", held, same, err)
	}
	same, err := sameCA(map[string][]byte{KeyKubeconfig: []byte(got)}, nil)
	expect.True(t, same && err == nil, "TR-10: no CA is known: %t, %v", same, err)
	encode := base64.RawURLEncoding.EncodeToString
	if got := ClaimsOf("a." + encode([]byte(`{"exp":1}`)) + ".c"); got.Expiry.Unix() != 1 {
		t.Errorf("2.8: a token that ended in 1970 ends at %s", got.Expiry)
	}
	for name, c := range map[string]struct {
		data map[string][]byte
		want bool
	}{
		"C14/a bare token": {map[string][]byte{KeyToken: nil}, true},
		"C14/a bundle":     {map[string][]byte{KeyBundle: nil}, true},
		"C14/neither":      {map[string][]byte{"x": nil}, false},
	} {
		if got, err := Leftover(c.data); got != c.want || err != nil {
			t.Errorf("%s: %t, %v", name, got, err)
		}
	}
}

// TestEarly: a renewal is early if there is time left, or if nobody can say, and if nobody has asked for it (TR-24).
func TestEarly(t *testing.T) {
	now := time.Date(2026, 1, 1, 9, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		renew string
		want  bool
	}{
		"TR-24/asked for":      {"", false},
		"TR-24/time left":      {Stamp(now.Add(time.Second)), true},
		"TR-24/time is up":     {Stamp(now), false},
		"TR-24/nobody can say": {"x", true},
	} {
		expect.Equal(t, ask(t, AnnotationRenew, c.renew).Early(now), c.want, "%s", name)
	}
}

// TestPauses: a token that has expired waits for its renewal if that is due within the shortest delay (2.8).
func TestPauses(t *testing.T) {
	now := time.Date(2026, 1, 1, 9, 0, 0, 0, time.UTC)
	for renew, want := range map[string]bool{
		Stamp(now.Add(-time.Second)): false, Stamp(now): false, Stamp(now.Add(time.Second)): true,
		Stamp(now.Add(shortest)): true, Stamp(now.Add(shortest + time.Second)): false, "x": false,
	} {
		expect.Equal(t, ask(t, AnnotationRenew, renew).pauses(now), want, "2.8: renewed at %s, waits", renew)
	}
}

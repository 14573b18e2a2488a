package agent

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/internal/externalapi/kubernetes"
	"github.com/espalier-project/espalier/test/expect"
)

func TestReferences(t *testing.T) {
	for name, c := range map[string]struct {
		osc  string
		want []Reference
		err  bool
	}{
		"9.6/files of spec, then of status": {
			`{"spec":{"files":[{"content":{"secretRef":{"name":"a"}}},{"content":{"inline":{}}},{"content":{"secretRef":{"name":""}}}]},"status":{"extensionFiles":[{"hostName":"h","content":{"secretRef":{"name":"b"}}}]}}`,
			[]Reference{{Secret: "a"}, {Secret: "b", HostName: ptr.To("h")}}, false,
		},
		"9.6/a host without a name":    {`{"spec":{"files":[{"hostName":"","content":{"secretRef":{"name":"a"}}}]}}`, []Reference{{Secret: "a", HostName: ptr.To("")}}, false},
		"9.6/null is no host":          {`{"spec":{"files":[{"hostName":null,"content":{"secretRef":{"name":"a"}}}]}}`, []Reference{{Secret: "a"}}, false},
		"9.6/null instead of files":    {`{"spec":null,"status":{"extensionFiles":null}}`, nil, false},
		"9.6/what is no configuration": {`[]`, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ReferencesOf(&kubernetes.Secret{Metadata: kubernetes.Metadata{Name: "osc"}, Data: map[string][]byte{"osc.yaml": []byte(c.osc)}})
			diff := cmp.Diff(c.want, got)
			expect.True(t, diff == "" && (err != nil) == c.err, "error %v, -want +got:\n%s", err, diff)
		})
	}
}

func TestIsFor(t *testing.T) {
	for name, c := range map[string]struct {
		of   *string
		host string
		want bool
	}{
		"9.6/all hosts": {nil, "h", true}, "9.6/all hosts, the host is not known": {nil, "", true},
		"9.6/the host": {ptr.To("h"), "h", true}, "9.6/another host": {ptr.To("i"), "h", false}, "9.6/the host is not known": {ptr.To("h"), "", false},
		"9.6/no name": {ptr.To(""), "h", false}, "9.6/no name, the host is not known": {ptr.To(""), "", false},
	} {
		expect.Equal(t, (Reference{Secret: "s", HostName: c.of}).IsFor(c.host), c.want, "%s", name)
	}
}

func node(uid string, labels ...string) *kubernetes.Node {
	n := &kubernetes.Node{Metadata: kubernetes.Metadata{UID: types.UID(uid), Labels: map[string]string{}}}
	for i, key := range []string{hostnameLabel, PoolLabel, SecretLabel} {
		if labels[i] != "" {
			n.Labels[key] = labels[i]
		}
	}
	return n
}

// TestPropertyOfTheFirstLabels: whatever an agent makes of the labels of its Node, what was there first counts until another Node has the name.
func TestPropertyOfTheFirstLabels(t *testing.T) {
	values := rapid.SampledFrom([]string{"", "a", "b", "c"})
	rapid.Check(t, func(rt *rapid.T) {
		var known, want Node
		for step := range rapid.IntRange(1, 12).Draw(rt, "steps") {
			uid := fmt.Sprint(rapid.IntRange(1, 2).Draw(rt, "uid"))
			n := node(uid, values.Draw(rt, "hostname"), values.Draw(rt, "pool"), values.Draw(rt, "secret"))
			if uid != want.UID {
				want = Node{UID: uid, Hostname: n.Labels[hostnameLabel], Pool: n.Labels[PoolLabel], FirstSecret: n.Labels[SecretLabel]}
			}
			want.Secret = n.Labels[SecretLabel]
			known = NodeOf(n).After(known)
			expect.DeepEqual(rt, known, want, "9.4: step %d, -want +", step)
		}
	})
}

// TestUndecodable: a Node of which only the name could be decoded is still the one that was seen.
func TestUndecodable(t *testing.T) {
	before := Node{UID: "1", Hostname: "h", Pool: "p", Secret: "s", FirstSecret: "s"}
	expect.DeepEqual(t, Node{}.After(before), Node{UID: "1", Hostname: "h", Pool: "p", FirstSecret: "s"}, "9.4")
}

// TestWithoutReads: a question in such a context sends no request (SHD-7).
func TestWithoutReads(t *testing.T) {
	if !MayRead(t.Context()) || MayRead(WithoutReads(t.Context())) {
		t.Errorf("SHD-7: a question may read: %v, without reads: %v", MayRead(t.Context()), MayRead(WithoutReads(t.Context())))
	}
}

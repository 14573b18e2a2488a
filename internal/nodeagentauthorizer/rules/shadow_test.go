package rules

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/internal/endpoint/authorization"
	"github.com/espalier-project/espalier/internal/nodeagentauthorizer/agent"
	"github.com/espalier-project/espalier/test/expect"
)

// unread is a view that sees what clusters have, but for what it would have to read.
type unread struct{ *clusters }

func (u unread) NodeOfPod(ctx context.Context, namespace, name string) (string, bool, error) {
	if node, found, _ := u.clusters.NodeOfPod(ctx, namespace, name); found || agent.MayRead(ctx) {
		return node, found, nil
	}
	return "", false, agent.ErrUnseen
}

// TestShadow: what the shadow policy decides differently about agents, and everything else is decided once.
func TestShadow(t *testing.T) {
	narrow := &Policy{AllowWatchAll: ptr.To(false), Selectors: ptr.To(true)}
	for name, c := range map[string]struct {
		question string
		shadow   *Policy
		want     authorization.Outcome
		asked    bool
	}{
		"SHD-7/C9 a watch of all Nodes":               {"foo-machine watch nodes -", narrow, authorization.WouldRefuse, true},
		"SHD-7/C9 while the own Node does not exist":  {"bar-machine watch nodes -", narrow, authorization.Same, true},
		"SHD-7/NA-8 the own Node":                     {"foo-machine watch nodes foo-node", narrow, authorization.Same, true},
		"SHD-7/NA-8 no question about the policy":     {"foo-machine get nodes foo-node", narrow, authorization.Same, false},
		"SHD-7/NA-9 a list without a selector":        {"foo-machine list pods -", narrow, authorization.WouldRefuse, true},
		"SHD-7/NA-9 a list with the selector":         {"foo-machine list pods - field:spec.nodeName=foo-node", narrow, authorization.Same, true},
		"SHD-7/NA-9 a Pod that is not seen yet":       {"foo-machine list pods default/unseen", narrow, authorization.Undecided, true},
		"SHD-7/a field that is unset is as it is":     {"foo-machine list pods -", &Policy{AllowWatchAll: ptr.To(false)}, authorization.Same, false},
		"SHD-7/no shadow policy":                      {"foo-machine list pods -", nil, authorization.Same, false},
		"SHD-7/what is denied to agents of no Node":   {"bare-machine get pods default/foo-pod", narrow, authorization.Same, false},
		"SHD-7/what is denied by an error stays that": {"ill-machine list pods -", narrow, authorization.Same, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := &Authorizer{View: unread{fixture()}, ByMachine: true, AllowWatchAll: true, Shadow: c.shadow, Log: logr.Discard()}
			q := ask(t, c.question)
			identity, _ := identityOf(q.User)
			v, _ := a.decide(t.Context(), identity, q)
			expect.True(t, v.shadow.outcome == c.want && v.shadow.asked == c.asked, "got %+v, want %q", v.shadow, c.want)
		})
	}
}

// TestPropertyOfShadow: the shadow policy says what an authorizer with this policy says, and the answer is the one without a shadow policy.
func TestPropertyOfShadow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		either := rapid.Bool()
		watchAll, checked, shadowWatchAll, shadowLooked := either.Draw(t, "all"), either.Draw(t, "selectors"), either.Draw(t, "shadow all"), either.Draw(t, "shadow selectors")
		machine := rapid.SampledFrom([]string{"foo-machine", "bar-machine", "bare-machine", "gone-machine", "none-machine"}).Draw(t, "machine")
		q := ask(&testing.T{}, fmt.Sprintf("%s %s %s %s", machine, rapid.SampledFrom([]string{"get", "list", "watch", "patch"}).Draw(t, "verb"),
			rapid.SampledFrom([]string{"nodes", "pods", "secrets"}).Draw(t, "resource"),
			rapid.SampledFrom([]string{"-", "foo-node", "default/foo-pod", "default/bar-pod", "- field:spec.nodeName=foo-node", "- field:spec.nodeName=x"}).Draw(t, "object")))
		view, other := fixture(), fixture()
		view.selectors, other.selectors = checked, shadowLooked
		both := &Authorizer{View: view, ByMachine: true, AllowWatchAll: watchAll, Shadow: &Policy{&shadowWatchAll, &shadowLooked}, Log: logr.Discard()}
		alone := &Authorizer{View: view, ByMachine: true, AllowWatchAll: watchAll, Log: logr.Discard()}
		second := &Authorizer{View: other, ByMachine: true, AllowWatchAll: shadowWatchAll, Log: logr.Discard()}
		identity, _ := identityOf(q.User)
		v, err := both.decide(context.Background(), identity, q)
		first, firstErr := alone.decide(context.Background(), identity, q)
		as, _ := second.decide(context.Background(), identity, q)
		expect.True(t, v.allowed == first.allowed && v.reason == first.reason && (err == nil) == (firstErr == nil),
			"SHD-7: got %+v, %v with a shadow policy and %+v, %v without", v, err, first, firstErr)
		said := v.allowed
		if v.shadow.asked {
			said = v.shadow.allowed
		}
		expect.Equal(t, said, as.allowed,
			"SHD-7: %+v: the shadow policy says %v, and an authorizer with this policy %+v", q, said, as)
	})
}

// TestShadowCounted: what is different about agents is counted and logged.
func TestShadowCounted(t *testing.T) {
	var lines []string
	registry := prometheus.NewRegistry()
	a := &Authorizer{
		View: fixture(), ByMachine: true, Shadow: &Policy{Selectors: ptr.To(true)}, Log: funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}),
		Differences: authorization.NewDifferences(registry, clocktesting.NewFakePassiveClock(time.Unix(0, 0))),
	}
	expect.Equal(t, decided(a, ask(t, "foo-machine list pods -")), "A", "SHD-7")
	families, err := registry.Gather()
	expect.True(t, err == nil && len(families) == 1 && families[0].GetMetric()[0].GetCounter().GetValue() == 1,
		"SHD-2: got %v, %v", families, err)
	expect.True(t, len(lines) == 1 && strings.Contains(lines[0], `"rule"="NA-9"`) && strings.Contains(lines[0], `"client"="node-agent"`),
		"SHD-3: got %q", lines)
}

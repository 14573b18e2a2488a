package node

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-project/espalier/test/expect"
)

func TestTail(t *testing.T) {
	for _, c := range []struct {
		text  string
		lines int
		want  string
	}{{"", 3, ""}, {"a\nb\nc\n", 2, "b\nc\n"}, {"a\nb\nc", 1, "c"}, {"a\n", 5, "a\n"}, {"a\nb\n", 0, ""}} {
		expect.Equal(t, string(tail([]byte(c.text), c.lines)), c.want, "the last %d of %q", c.lines, c.text)
	}
}

func TestIsCalled(t *testing.T) {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "grm"}, Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.9"}}
	for host, want := range map[string]bool{
		"10.0.0.9": true, "grm": true, "grm.garden": true, "grm.garden.svc": true, "grm.garden.svc.cluster.local": true,
		"10.0.0.8": false, "grm.other": false, "other.garden.svc": false, "": false,
	} {
		expect.Equal(t, isCalled(service, host), want, "%q", host)
	}
}

// TestAddresses: no two Pods have the same address.
func TestAddresses(t *testing.T) {
	seen := map[string]bool{}
	for number := range 1000 {
		p := &pod{number: number}
		if seen[p.ip()] || seen[p.loopback()] || !strings.HasPrefix(p.loopback(), "127.1.") {
			t.Fatalf("Pod %d has %s and %s", number, p.ip(), p.loopback())
		}
		seen[p.ip()], seen[p.loopback()] = true, true
	}
}

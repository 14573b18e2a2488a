package nodeagent

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// hostility is what one client does that means no good: invented names, and bodies that are huge, slow or costly to decode, on 200
// connections at once. It returns when all of them have begun.
func hostility(t *testing.T, url string, tlsConfig *tls.Config) (stop func()) {
	t.Helper()
	review := func(i int) string {
		return fmt.Sprintf(`{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"gardener.cloud:node-agent:machine:hostile-machine","groups":["gardener.cloud:node-agents"],"resourceAttributes":{"verb":"get","resource":"pods","namespace":"default","name":"invented-%d"}}}`, i)
	}
	stopped := make(chan struct{})
	var clients, begun sync.WaitGroup
	for c := range 200 {
		begun.Add(1)
		clients.Go(func() {
			transport := &http.Transport{TLSClientConfig: tlsConfig.Clone(), ForceAttemptHTTP2: c%8 < 4}
			defer transport.CloseIdleConnections()
			cl := &http.Client{Transport: transport, Timeout: 10 * time.Second}
			for i := 0; ; i++ {
				var body io.Reader
				switch c % 4 {
				case 0:
					body = strings.NewReader(review(c*1_000_000 + i))
				case 1:
					body = io.MultiReader(strings.NewReader("{"), &trickle{stopped})
				case 2:
					body = strings.NewReader(review(i) + strings.Repeat(" ", 2<<20))
				default:
					body = strings.NewReader("- " + strings.Repeat("[a],", 10_000))
				}
				response, err := cl.Post(url, "application/json", body)
				if err == nil {
					_, _ = io.Copy(io.Discard, response.Body)
					_ = response.Body.Close()
				}
				if i == 0 && c%4 != 1 {
					begun.Done()
				}
				select {
				case <-stopped:
					return
				default:
				}
			}
		})
		if c%4 == 1 {
			begun.Done() // Its first body never ends.
		}
	}
	begun.Wait()
	return func() {
		close(stopped)
		clients.Wait()
	}
}

// trickle is the rest of a body that does not come before it is stopped.
type trickle struct{ stopped chan struct{} }

func (t *trickle) Read([]byte) (int, error) {
	<-t.stopped
	return 0, io.EOF
}

// TestHostile: beside a hostile client, each first request of a good one is answered right, also for what came a moment ago.
func TestHostile(t *testing.T) {
	node(t, shoot, "hostile")
	https, err := shoot.HTTPS()
	must.Succeed(t, err)
	defer hostility(t, fmt.Sprintf("https://127.0.0.1:%d/webhooks/auth/nodeagent", process.Web), https.Transport.(*http.Transport).TLSClientConfig)()
	for i := range 5 {
		prefix := fmt.Sprintf("beside-%d", i)
		node(t, shoot, prefix)
		cl, err := shoot.Agent(prefix + "-machine")
		must.Succeed(t, err)
		for what, object := range map[string]client.Object{
			"node":   &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: prefix + "-node"}},
			"pod":    &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: prefix + "-pod"}},
			"osc":    secret("kube-system", prefix+"-osc"),
			"common": secret("kube-system", "gardener-valitail"),
		} {
			expect.Succeed(t, get(object)(t.Context(), cl), "%s: %s", prefix, what)
		}
	}
}

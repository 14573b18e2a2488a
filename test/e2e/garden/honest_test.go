package garden

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/espalier-project/espalier/internal/seedauthorizer/restriction"
	"github.com/espalier-project/espalier/internal/seedauthorizer/rules"
	"github.com/espalier-project/espalier/internal/webhook/auditpolicy"
	"github.com/espalier-project/espalier/internal/webhook/kubeconfigsecret"
	"github.com/espalier-project/espalier/test/expect"
)

// asks returns the answer to the ith question of a client.
type asks func(i int) (path string, body []byte)

// burst is the burst of gardenlet's own client by default; all of it is sent at once.
const burst = 130

// TestHonestClients: beside hostile clients on the same HTTP/2 connection, no request of an honest one is refused.
func TestHonestClients(t *testing.T) {
	honest, hostile, namespace := landscape(t, "fair")
	create(t, "Shoot "+namespace+"/mine", selfHosted)
	gardenlet := `{"username":"gardener.cloud:system:seed:` + honest + `","groups":["gardener.cloud:system:seeds"]}`
	member := `{"username":"somebody@example.com","groups":["system:authenticated"]}`
	extension := func(i int) string { return fmt.Sprintf("system:serviceaccount:seed-%s:extension-%d", hostile, i%40) }
	writes := func(operation, user, resource, kind, name, data string) []byte {
		object := fmt.Sprintf(`{"apiVersion":"v1","kind":%q,"metadata":{"namespace":%q,"name":%q},"data":{"a":%q}}`, kind, namespace, name, data)
		old := "null"
		if operation == "UPDATE" {
			old = object
		}
		return fmt.Appendf(nil, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":%q,"namespace":%q,"name":%q,`+
			`"kind":{"group":"","version":"v1","kind":%q},"resource":{"group":"","version":"v1","resource":%q},"userInfo":%s,"object":%s,"oldObject":%s}}`,
			operation, namespace, name, kind, resource, user, object, old)
	}
	accesses := func(user, group, verb, apiGroup, resource, name string) []byte {
		return review(user, group, fmt.Sprintf(`{"verb":%q,"group":%q,"version":"v1","resource":%q,"namespace":%q,"name":%q}`, verb, apiGroup, resource, namespace, name))
	}
	heavy := writes("UPDATE", member, "configmaps", "ConfigMap", "heavy", strings.Repeat("x", 1000<<10))
	for name, c := range map[string]struct {
		clients int
		hostile asks
		atOnce  int
		honest  asks
	}{
		"CW-2/writers of 2 MB, small reviews": {
			24, func(int) (string, []byte) { return auditpolicy.Path, heavy },
			burst, func(int) (string, []byte) {
				return kubeconfigsecret.Path, writes("CREATE", member, "secrets", "Secret", "small", "eA==")
			},
		},
		"CW-2/writers of 2 MB, reviews of 100 KiB": {
			16, func(int) (string, []byte) { return auditpolicy.Path, heavy },
			2, func(int) (string, []byte) {
				return auditpolicy.Path, writes("UPDATE", member, "configmaps", "ConfigMap", "large", strings.Repeat("x", 50<<10))
			},
		},
		"T3-1/extensions of another seed that create, a gardenlet that creates": {
			40, func(i int) (string, []byte) {
				user := fmt.Sprintf(`{"username":%q,"groups":["system:serviceaccounts","system:serviceaccounts:seed-%s"]}`, extension(i), hostile)
				return restriction.SeedPath, writes("CREATE", user, "configmaps", "ConfigMap", fmt.Sprintf("invented-%d.ca-cluster", i), "x")
			},
			burst, func(int) (string, []byte) {
				return restriction.SeedPath, writes("CREATE", gardenlet, "secrets", "Secret", "on-"+honest+".monitoring", "eA==")
			},
		},
		"T3-1/extensions of another seed that name Shoots, a gardenlet that deletes": {
			40, func(i int) (string, []byte) {
				return rules.SeedPath, accesses(extension(i), "system:serviceaccounts:seed-"+hostile, "update", "core.gardener.cloud", "shoots", fmt.Sprint("invented-", i))
			},
			burst, func(i int) (string, []byte) {
				return rules.SeedPath, accesses("gardener.cloud:system:seed:"+honest, "gardener.cloud:system:seeds", "delete", "", "secrets", fmt.Sprint("gone-", i))
			},
		},
		"T3-2/ServiceAccounts of invented Shoots, a gardenlet that deletes": {
			150, func(i int) (string, []byte) {
				return rules.ShootPath, accesses(fmt.Sprintf("system:serviceaccount:%s:extension-shoot--invented%d--e", namespace, i%150), "system:serviceaccounts:"+namespace, "delete", "", "configmaps", fmt.Sprint("x", i))
			},
			burst, func(i int) (string, []byte) {
				return rules.SeedPath, accesses("gardener.cloud:system:seed:"+honest, "gardener.cloud:system:seeds", "delete", "", "secrets", fmt.Sprint("removed-", i))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			client, stop := https(t), make(chan struct{})
			ask := func(who asks, i int) string {
				path, body := who(i)
				_, answer, err := suite.Process.Ask(client, http.MethodPost, path, "application/json", body)
				return fmt.Sprint(answer, err)
			}
			if answer := ask(c.honest, 0); !strings.Contains(answer, `"allowed":true`) { // It also makes the connection that all share.
				t.Fatalf("alone: got %s", answer)
			}
			var attacking, asking sync.WaitGroup
			for n := range c.clients {
				attacking.Go(func() {
					for i := n; ; i += c.clients {
						select {
						case <-stop:
							return
						default:
							ask(c.hostile, i)
						}
					}
				})
			}
			for range 3 {
				for i := range c.atOnce {
					asking.Go(func() {
						expect.Contains(t, ask(c.honest, i), `"allowed":true`, "an honest client is refused")
					})
				}
				asking.Wait()
			}
			close(stop)
			attacking.Wait()
		})
	}
}

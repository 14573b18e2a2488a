package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"sync"
	"time"

	"github.com/espalier-project/espalier/internal/controller/tokenrequestor/token"
	"github.com/espalier-project/espalier/internal/webhook/kubernetesservicehost"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/fake"
)

// control is a resource-manager between a seed and a shoot, and the connection of the shoot's kube-apiserver to it.
type control struct {
	*connection
	process      *harness.Process
	seed, tenant *harness.Simulated

	mu sync.Mutex
	// issued counts the tokens of the tenant's ServiceAccounts, by name.
	issued map[string]int
}

// Namespaces of the seed and of the shoot.
const (
	technicalID = "shoot--p000--web"
	system      = "kube-system"
)

// resourceManager starts a resource-manager that requests tokens and tells Pods where their API server is. rewrite, if it is set, is what a webhook
// of the tenant does with the Secrets of the shoot.
func (s *stage) resourceManager(rewrite func(fake.Object)) (*control, error) {
	c := &control{issued: map[string]int{}}
	kinds := append(fake.BuiltIn(), fake.CustomKind("resources.gardener.cloud", "v1alpha1", "ManagedResource", "managedresources", true))
	var err error
	if c.seed, err = harness.StartSimulated("seed", filepath.Join(s.dir, "seed"), kinds, technicalID, system); err != nil {
		return nil, err
	}
	s.close = append(s.close, c.seed.Stop)
	if c.tenant, err = harness.StartSimulated("shoot", filepath.Join(s.dir, "shoot"), c.tenantKinds(rewrite), system); err != nil {
		return nil, err
	}
	s.close = append(s.close, c.tenant.Stop)
	if c.process, err = harness.Run(harness.ProcessOptions{
		Binary: filepath.Join(s.bin, "resource-manager"), Dir: filepath.Join(s.dir, "process"), Source: c.seed.Cluster, Target: c.tenant.Cluster, AsAdmin: true,
		Config: map[string]any{
			"controllers": map[string]any{"clusterID": "hostile", "tokenRequestor": map[string]any{"enabled": true}},
			"webhooks":    map[string]any{"kubernetesServiceHost": map[string]any{"enabled": true, "host": "api.example.com"}},
		},
	}); err != nil {
		return nil, err
	}
	s.close = append(s.close, c.process.Kill)
	if err := c.process.AwaitReady(s.ctx); err != nil {
		return nil, err
	}
	if c.connection, err = connect(c.process, filepath.Join(s.dir, "seed")); err != nil {
		return nil, err
	}
	pod := podOf(2)
	return c, harness.Poll(s.ctx, 20*time.Second, func() error { return c.admitted(s.ctx, kubernetesservicehost.Path, pod) })
}

// tenantKinds are the kinds of a shoot: it issues tokens, and accepts each.
func (c *control) tenantKinds(rewrite func(fake.Object)) []*fake.Kind {
	kinds := fake.BuiltIn()
	for _, k := range kinds {
		switch k.Resource {
		case "serviceaccounts":
			k.Issue = map[string]func(of, sent fake.Object) (fake.Object, error){"token": c.issue}
		case "secrets":
			defaults := k.Defaults
			k.Defaults = func(o fake.Object) {
				defaults(o)
				if rewrite != nil {
					rewrite(o)
				}
			}
		}
	}
	reviews := fake.BuiltInKind("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", false)
	reviews.Answer = func(sent fake.Object) (fake.Object, error) {
		answer := maps.Clone(sent)
		answer["status"] = fake.Object{"authenticated": true}
		return answer, nil
	}
	return append(kinds, reviews)
}

// issue issues a token for an hour. It is called under the lock of the shoot's store.
func (c *control) issue(account, _ fake.Object) (fake.Object, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := fake.Text(account, "metadata", "name")
	c.issued[name]++
	expires := time.Now().Add(time.Hour)
	claims := base64Of(fmt.Sprintf(`{"exp":%d,"iat":%d,"aud":["gardener"],"kubernetes.io":{"namespace":%q,"serviceaccount":{"name":%q,"uid":%q}},"sub":"system:serviceaccount:%s:%s"}`,
		expires.Unix(), time.Now().Unix(), system, name, fake.Text(account, "metadata", "uid"), system, name))
	return fake.Object{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": fake.Object{}, "spec": fake.Object{},
		"status": fake.Object{"token": fmt.Sprintf("%s.%s.c2ln%d", base64Of(`{"alg":"none"}`), claims, c.issued[name]), "expirationTimestamp": expires.UTC().Format(time.RFC3339)},
	}, nil
}

// tokensOf counts the tokens that were issued for a ServiceAccount.
func (c *control) tokensOf(account string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.issued[account]
}

// request makes a Secret of the seed that asks for a token of a ServiceAccount, to be kept in a Secret of the shoot.
func (c *control) request(name string) error {
	return c.seed.Put("secrets", fields{"apiVersion": "v1", "kind": "Secret", "metadata": fields{
		"namespace": technicalID, "name": name, "labels": fields{token.LabelPurpose: token.PurposeRequest, token.LabelClass: "shoot"},
		"annotations": fields{
			token.AnnotationName: name, token.AnnotationNamespace: system, token.AnnotationTargetName: name, token.AnnotationTargetNamespace: system,
		},
	}})
}

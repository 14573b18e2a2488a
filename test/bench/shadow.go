package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/espalier-project/espalier/internal/endpoint/authorization"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/internal/seedauthorizer/rules"
)

// shadowTurns is the number of turns in which reviews are measured without and with a shadow policy.
const shadowTurns = 200

// shadow measures whole reviews in process, from the body to the answer, in turns without and with a shadow policy.
func shadow(_ context.Context, b *bench) error {
	p, err := load(largest)
	if err != nil {
		return err
	}
	reviews := shadowReviews(p)
	handlers, fastest := [2]http.Handler{}, [2]time.Duration{time.Hour, time.Hour}
	for i, policy := range []*rules.Policy{nil, {WriteOwned: true}} {
		registry := prometheus.NewRegistry()
		handlers[i] = authorization.New(authorization.Options{Log: logr.Discard(), Authorizer: rules.NewSeedAuthorizer(rules.Options{
			Graph: p.state.Graph, Watches: relation.Watches, Facts: p.state.Facts(), Selectors: always{}, Metrics: rules.NewMetrics(registry),
			ReadAll: true, Shadow: policy, Differences: authorization.NewDifferences(registry, clock.RealClock{}), Log: logr.Discard(),
		})})
	}
	for range shadowTurns {
		for i, h := range handlers {
			started := time.Now()
			for _, body := range reviews {
				request := httptest.NewRequest(http.MethodPost, rules.SeedPath, io.NopCloser(bytes.NewReader(body)))
				request.Header.Set("Content-Type", "application/json")
				h.ServeHTTP(httptest.NewRecorder(), request)
			}
			fastest[i] = min(fastest[i], time.Since(started))
		}
	}
	each := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 / float64(len(reviews)) }
	b.add("review without a shadow policy", each(fastest[0]), "µs", fmt.Sprintf("fastest of %d turns", shadowTurns), "")
	b.add("… with readScope Related and writeScope Owned as shadow policy", each(fastest[1]), "µs", "",
		fmt.Sprintf("%.2f × without; target ≤ 1.2", float64(fastest[1])/float64(fastest[0])))
	return nil
}

// always says that the API server sends selectors.
type always struct{}

func (always) Possible(context.Context) (bool, error) { return true, nil }
func (always) Known() (bool, bool)                    { return true, true }

// shadowReviews are of ten kinds for each of a hundred Shoots: four ask for a Secret, one writes a Secret, one a status, two read a Shoot, one lists and
// one creates.
func shadowReviews(p *inProcess) [][]byte {
	var reviews [][]byte
	for i := range 100 {
		namespace, name := p.ShootName(i)
		seed := p.SeedOf(i)
		add := func(verb, group, resource, subresource, name string) {
			reviews = append(reviews, fmt.Appendf(nil, `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","metadata":{"creationTimestamp":null},"spec":{"resourceAttributes":{"namespace":%q,`+
				`"verb":%q,"group":%q,"version":"*","resource":%q,"subresource":%q,"name":%q},"user":%q,"groups":["gardener.cloud:system:seeds","system:authenticated"]},"status":{"allowed":false}}`,
				namespace, verb, group, resource, subresource, name, "gardener.cloud:system:seed:"+seed))
		}
		const core = "core.gardener.cloud"
		for range 4 {
			add("get", "", "secrets", "", name+".ca-cluster")
		}
		add("update", "", "secrets", "", name+".ca-cluster")
		add("patch", core, "shoots", "status", name)
		add("get", core, "shoots", "", name)
		add("watch", core, "shoots", "", name)
		add("list", core, "controllerregistrations", "", "")
		add("create", "", "events", "", "")
	}
	return reviews
}

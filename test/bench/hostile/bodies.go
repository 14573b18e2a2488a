package main

import (
	"context"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/espalier-project/espalier/internal/webhook/auditpolicy"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/fake"
)

// heavy is a review of 2 MB about a ConfigMap that no Shoot refers to.
func heavy() []byte {
	long := strings.Repeat("x", 1000<<10)
	return review("UPDATE", member, people, object{
		apiVersion: "v1", kind: "ConfigMap", resource: "configmaps", namespace: project, name: "heavy", content: fields{"data": fields{"a": long}},
	}, fields{"data": fields{"a": long}})
}

// heavies writes such ConfigMaps, so many at a time.
func (g *gate) heavies(writers int) client {
	body := heavy()
	return func(ctx context.Context, t *tally) {
		t.together(ctx, writers, func(ctx context.Context, _ int) error { return g.admitted(ctx, auditpolicy.Path, body) })
	}
}

// writers: small reviews do not wait for large ones, on the same connection.
func writers(s *stage) error {
	g, err := s.admissionController(nil)
	if err != nil {
		return err
	}
	at := 64
	if s.short {
		at = 24 // The last ones of them are waited for.
	}
	err = s.phases(g.process, g.smallReviews(), g.heavies(at), time.Second, 6*time.Second)
	s.goal("honest reviews refused", float64(s.during.honest.refused), 0, "")
	s.soon("honest reviews, p99", s.during.honest.quantile(0.99), 20*time.Millisecond)
	s.goal("connections", float64(g.dialled.Load()), 1, "")
	return err
}

// large: reviews of 100 KiB are not refused because of larger ones.
func large(s *stage) error {
	g, err := s.admissionController(nil)
	if err != nil {
		return err
	}
	annotated := func(value string) fields { return fields{"metadata": fields{"annotations": fields{"a": value}}} }
	long := strings.Repeat("x", 50<<10)
	o := object{apiVersion: core, kind: "Shoot", resource: "shoots", namespace: another, name: "x", content: annotated(long)}
	body := review("UPDATE", member, people, o, annotated(long+"y"))
	err = s.phases(g.process, func(ctx context.Context, t *tally) {
		t.paced(ctx, 100*time.Millisecond, func(ctx context.Context, _ int) error { return g.admitted(ctx, auditpolicy.Path, body) })
	}, g.heavies(16), time.Second, 6*time.Second)
	s.goal("reviews of 100 KiB refused", float64(s.during.honest.refused), 0, "")
	return err
}

// shoots: reviews that wait for the garden hold up no others.
func shoots(s *stage) error {
	slow := sets.New("configmaps", "shoots", "secrets")
	g, err := s.admissionController(func(api *harness.Simulated) error {
		api.Latency = func(r *fake.Request) time.Duration {
			if r.Verb == "get" && slow.Has(r.Resource) {
				return 50 * time.Millisecond
			}
			return 0
		}
		return nil
	})
	if err != nil {
		return err
	}
	body := shoot(project, "new", 80<<10, fields{"auditConfig": fields{"auditPolicy": fields{"configMapRef": fields{"name": policy}}}})
	one := func(ctx context.Context, _ int) error { return g.admitted(ctx, auditpolicy.Path, body) }
	all := func(n int) client {
		return func(ctx context.Context, t *tally) {
			var asking sync.WaitGroup
			for i := range n {
				asking.Go(func() { t.ask(ctx, i, one) })
			}
			asking.Wait()
		}
	}
	if s.before, err = s.measure(g.process, all(1), nil, 0); err != nil {
		return err
	}
	if s.during, err = s.measure(g.process, all(100), nil, 0); err != nil {
		return err
	}
	s.after, err = s.measure(g.process, all(1), nil, 0)
	s.goal("Shoots of 80 KiB refused", float64(s.during.honest.refused), 0, "")
	return err
}

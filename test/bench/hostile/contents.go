package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/espalier-project/espalier/internal/webhook/auditpolicy"
	"github.com/espalier-project/espalier/internal/webhook/authenticationconfig"
	"github.com/espalier-project/espalier/internal/webhook/authorizationconfig"
	"github.com/espalier-project/espalier/internal/webhook/kubeconfigsecret"
	"github.com/espalier-project/espalier/internal/webhook/providersecretlabels"
	"github.com/espalier-project/espalier/test/env/harness"
)

// bomb is a review with YAML whose aliases expand, and one of the same size whose YAML is plain.
type bomb struct {
	path         string
	body, modest []byte
}

// bombs are reviews with a file of a size.
func bombs(size int) []bomb {
	padding := "# " + strings.Repeat("x", size) + "\n"
	beta := "apiVersion: apiserver.config.k8s.io/v1beta1\nkind: "
	return []bomb{
		{auditpolicy.Path, configMap(project, policy, "policy", aliasBomb(size)), configMap(project, policy, "policy", padding+goodPolicy)},
		{authenticationconfig.Path, configMap(project, authentication, "config.yaml", aliasBomb(size)), configMap(project, authentication, "config.yaml", padding+beta+"AuthenticationConfiguration\n")},
		{authorizationconfig.Path, configMap(project, authorization, "config.yaml", aliasBomb(size)), configMap(project, authorization, "config.yaml", padding+beta+"AuthorizationConfiguration\n")},
		{
			kubeconfigsecret.Path, secret(project, "s", fields{"data": fields{"kubeconfig": base64Of(aliasBomb(size))}}),
			secret(project, "s", fields{"data": fields{"kubeconfig": base64Of(kubeconfig(size))}}),
		},
	}
}

const mebi = 1 << 20

// aliases: what is refused takes no more memory than what is sent.
func aliases(s *stage) error {
	g, err := s.admissionController(few, nil, nil)
	if err != nil {
		return err
	}
	all := bombs(40 << 10)
	for range 25 { // The code and the garbage of reviews of this size are in memory then.
		for _, b := range all {
			_ = g.admitted(s.ctx, b.path, b.modest)
		}
	}
	var admitted atomic.Int64
	hostile := func(ctx context.Context, i int) error {
		b := all[i%len(all)]
		err := g.admitted(ctx, b.path, b.body)
		if err == nil {
			admitted.Add(1)
		}
		return err
	}
	for i, b := range all {
		grown, err := allocated(g.process, func() { _ = hostile(s.ctx, i) })
		if err != nil {
			return err
		}
		s.goal("peak memory for "+b.path, grown, 2*float64(len(b.body))/mebi+4, " MiB")
	}
	err = s.phases(g.process, g.smallReviews(), func(ctx context.Context, t *tally) { t.paced(ctx, 100*time.Millisecond, hostile) }, time.Second, 4*time.Second)
	s.goal("honest reviews refused", float64(s.during.honest.refused), 0, "")
	s.goal("hostile reviews admitted", float64(admitted.Load()), 0, "")
	return err
}

// labels: what one Secret costs grows with the number of its labels, no more, and ends with its client.
func labels(s *stage) error {
	g, err := s.admissionController(few, nil, nil)
	if err != nil {
		return err
	}
	labelled := fields{}
	for i := range 16_000 {
		labelled[fmt.Sprintf("%sp%d", providersecretlabels.Prefix, i)] = "true"
	}
	// The landscape has a binding for this one.
	poison := secret(project, "credentials-new", fields{"metadata": fields{"labels": labelled}})
	plain := secret(another, "large", fields{"data": fields{"a": base64Of(strings.Repeat("x", 60<<10))}})
	before, err := harness.UsageOf(g.process.PID())
	if err != nil {
		return err
	}
	var took []time.Duration
	for range 5 {
		began := time.Now()
		ctx, cancel := context.WithTimeout(s.ctx, 2*time.Second)
		_, _, err := g.post(ctx, providersecretlabels.Path, poison)
		cancel()
		if took = append(took, time.Since(began)); err != nil {
			break
		}
		time.Sleep(min(2*took[0], s.lasts(time.Second))) // After a large review those rest which come next.
	}
	after, err := harness.UsageOf(g.process.PID())
	if err != nil {
		return err
	}
	s.goal("16,000 labels, processor time of each", (after.CPU-before.CPU)/float64(len(took)), 0.5, " s")
	s.soon("16,000 labels, the best of 5", slices.Min(took), 50*time.Millisecond)
	err = s.phases(g.process, func(ctx context.Context, t *tally) {
		t.paced(ctx, 50*time.Millisecond, func(ctx context.Context, _ int) error { return g.admitted(ctx, providersecretlabels.Path, plain) })
	}, func(ctx context.Context, t *tally) {
		t.together(ctx, 1, func(ctx context.Context, _ int) error {
			ctx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
			defer cancel()
			return hangingUp(ctx, func(ctx context.Context) error { return g.admitted(ctx, providersecretlabels.Path, poison) })
		})
	}, time.Second, 5*time.Second)
	s.goal("honest reviews refused", float64(s.during.honest.refused+s.after.honest.refused), 0, "")
	return err
}

// expressions: what is to be compiled is bounded, and given up with its client.
func expressions(s *stage) error {
	var b strings.Builder
	b.WriteString("apiVersion: apiserver.config.k8s.io/v1beta1\nkind: AuthenticationConfiguration\njwt:\n- issuer: {url: \"https://a.example.org\", audiences: [a]}\n" +
		"  claimMappings: {username: {claim: sub, prefix: \"x:\"}}\n  claimValidationRules:\n")
	for i := range 8000 {
		fmt.Fprintf(&b, "  - {expression: \"claims.a%d == 'x' || claims.b.c.d.exists(e, e.f == 'y')\", message: m}\n", i)
	}
	g, err := s.admissionController(few, nil, func(api *harness.Simulated) error {
		return api.Put("configmaps", fields{"apiVersion": "v1", "kind": "ConfigMap", "metadata": fields{"namespace": project, "name": "expressions"}, "data": fields{"config.yaml": b.String()}})
	})
	if err != nil {
		return err
	}
	body := shoot(project, "new", 0, fields{"structuredAuthentication": fields{"configMapName": "expressions"}})
	_ = g.small()(s.ctx, 0)
	before, err := harness.UsageOf(g.process.PID())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	refused := g.admitted(ctx, authenticationconfig.Path, body)
	cancel()
	after, err := harness.UsageOf(g.process.PID())
	if err != nil {
		return err
	}
	s.goal("processor time for one review", after.CPU-before.CPU, 0.5, " s")
	s.goal("hostile reviews admitted, or not answered", map[bool]float64{true: 0, false: 1}[refused != nil && strings.HasPrefix(refused.Error(), "refused")], 0, "")
	err = s.phases(g.process, g.smallReviews(), func(ctx context.Context, t *tally) {
		t.together(ctx, 4, func(ctx context.Context, _ int) error {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			return hangingUp(ctx, func(ctx context.Context) error { return g.admitted(ctx, authenticationconfig.Path, body) })
		})
	}, 2*time.Second, 4*time.Second)
	s.goal("honest reviews refused", float64(s.during.honest.refused+s.after.honest.refused), 0, "")
	// The honest reviews go on; what they take was measured before.
	s.goal("processor time once the clients are gone, more than before", s.after.cpu-s.before.cpu, 1, " s")
	return err
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/fake"
)

// asking makes a new Secret that asks for a token each 200 ms, and waits for the token.
func (c *control) asking() client {
	var next atomic.Int64
	return func(ctx context.Context, t *tally) {
		t.paced(ctx, 200*time.Millisecond, func(ctx context.Context, _ int) error {
			name := fmt.Sprintf("honest-%d", next.Add(1))
			if err := c.request(name); err != nil {
				return err
			}
			return harness.Poll(ctx, patience, func() error {
				if c.tokensOf(name) == 0 {
					return errors.New("no token was issued")
				}
				return nil
			})
		})
	}
}

// tokensKept are how many tokens one Secret gets at once: the first one, and two in place of it before their time (TR-24).
const tokensKept = 3

// stripped: a tenant who takes tokens away gets no new ones without end.
func stripped(s *stage) error {
	c, err := s.resourceManager(func(o fake.Object) {
		if data, is := o["data"].(map[string]any); is && fake.Text(o, "metadata", "name") == "stripped" {
			delete(data, "token")
		}
	})
	if err != nil {
		return err
	}
	err = s.phases(c.process, c.asking(), func(ctx context.Context, t *tally) {
		t.ask(ctx, 0, func(context.Context, int) error { return c.request("stripped") })
		<-ctx.Done()
	}, time.Second, 5*time.Second)
	s.goal("honest Secrets without a token", float64(s.during.honest.refused), 0, "")
	s.goal("tokens for the Secret that is stripped", float64(c.tokensOf("stripped")), tokensKept, "")
	return err
}

// target: what a tenant writes into a Secret costs the seed no more than its size.
func target(s *stage) error {
	c, err := s.resourceManager(nil)
	if err != nil {
		return err
	}
	const size = 80 << 10
	file := func(name, content string) error {
		return c.tenant.Put("secrets", fields{"apiVersion": "v1", "kind": "Secret", "metadata": fields{"namespace": system, "name": name}, "data": fields{"kubeconfig": base64Of(content)}})
	}
	asked := func(name, content string) error {
		if err := errors.Join(file(name, content), c.request(name)); err != nil {
			return err
		}
		return harness.Poll(s.ctx, patience, func() error {
			if c.tokensOf(name) > 0 || c.failed(name) {
				return nil
			}
			return errors.New("nothing became of the Secret " + name)
		})
	}
	for i := range 8 { // The code and the garbage of kubeconfigs of this size are in memory then.
		if err := asked(fmt.Sprintf("plain-%d", i), kubeconfig(size)); err != nil {
			return err
		}
	}
	var told error
	grown, err := allocated(c.process, func() { told = asked("aliases", aliasBomb(size)) })
	if told != nil {
		fmt.Fprintln(os.Stderr, told)
	}
	if err != nil {
		return err
	}
	s.goal("peak memory", grown, 2*float64(size)/mebi+4, " MiB")
	err = s.phases(c.process, c.asking(), func(ctx context.Context, t *tally) {
		t.paced(ctx, 500*time.Millisecond, func(_ context.Context, i int) error {
			name := fmt.Sprintf("aliases-%d", i)
			return errors.Join(file(name, aliasBomb(size)), c.request(name))
		})
	}, time.Second, 4*time.Second)
	s.goal("honest Secrets without a token", float64(s.during.honest.refused), 0, "")
	return err
}

// failed reports whether there is an Event that tells why a Secret of the seed has no token.
func (c *control) failed(name string) bool {
	return c.seed.Any("events", func(event fake.Object) bool {
		return fake.Text(event, "involvedObject", "name") == name || fake.Text(event, "regarding", "name") == name
	})
}

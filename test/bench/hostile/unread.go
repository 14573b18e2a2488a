package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"strings"
	"time"

	"golang.org/x/net/http2"

	"github.com/espalier-project/espalier/internal/webhook/kubernetesservicehost"
)

// podOf is the creation of a Pod with so many containers, each of which is changed.
func podOf(containers int) []byte {
	var all []any
	for i := range containers {
		all = append(all, fields{"name": fmt.Sprint(i)})
	}
	return review("CREATE", "system:serviceaccount:kube-system:replicaset-controller", people,
		object{apiVersion: "v1", kind: "Pod", resource: "pods", namespace: "default", name: "x", content: fields{"spec": fields{"containers": all}}}, nil)
}

// streams counts the answers that one connection waits for.
const streams = 200

// answered is the longest time that an answer may wait for its reader, and some more.
const answered = 25 * time.Second

// unread: answers that nobody reads do not stay.
func unread(s *stage) error {
	c, err := s.resourceManager(nil)
	if err != nil {
		return err
	}
	small := podOf(2)
	honest := func(ctx context.Context, t *tally) {
		t.paced(ctx, 10*time.Millisecond, func(ctx context.Context, _ int) error { return c.admitted(ctx, kubernetesservicehost.Path, small) })
	}
	body := podOf(4200) // 64 KiB are small, so that nothing bounds them.
	size := 0
	for range 20 {
		_, answer, err := c.post(s.ctx, kubernetesservicehost.Path, body)
		if err != nil {
			return err
		}
		size = len(answer)
	}
	var reader *silent
	defer func() { reader.close() }()
	err = s.phases(c.process, honest, func(_ context.Context, t *tally) {
		t.ask(s.ctx, 0, func(context.Context, int) error {
			var err error
			reader, err = sendAndNotRead(strings.TrimPrefix(c.url, "https://"), kubernetesservicehost.Path, body, streams)
			return err
		})
	}, time.Second, 4*time.Second)
	if err != nil {
		return err
	}
	s.goal("honest reviews refused", float64(s.during.honest.refused+s.after.honest.refused), 0, "")
	s.goal("memory with 200 unread answers, more than before", s.during.peak-s.before.peak, 1.5*streams*float64(size)/mebi, " MiB")
	if s.short {
		return nil
	}
	// The client is still there, and the time for its answers is over.
	for began := time.Now(); time.Since(began) < answered && reader.waiting() > 0; time.Sleep(100 * time.Millisecond) {
		continue
	}
	s.goal("answers that still wait for their reader", float64(reader.waiting()), 0, "")
	return nil
}

// sendAndNotRead sends a review on so many streams of one connection, whose window for answers is zero.
func sendAndNotRead(address, path string, body []byte, streams int) (*silent, error) {
	connection, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}) //nolint:gosec // It is our own process on loopback.
	if err != nil {
		return nil, err
	}
	reader := newSilent(connection)
	go reader.follow()
	_ = connection.SetWriteDeadline(time.Now().Add(patience))
	if _, err := connection.Write([]byte(http2.ClientPreface)); err != nil {
		return reader, err
	}
	if err := reader.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}); err != nil {
		return reader, err
	}
	for i := range streams {
		if err := reader.send(uint32(2*i+1), path, body); err != nil { //nolint:gosec // There are 200.
			return reader, nil //nolint:nilerr // The server takes no more of it, which is fine.
		}
	}
	return reader, nil
}

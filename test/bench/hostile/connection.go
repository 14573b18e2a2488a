package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"sync/atomic"

	"k8s.io/client-go/rest"

	"github.com/espalier-project/espalier/test/env/harness"
)

// connection is how kube-apiserver reaches the webhooks of a host: by client-go's transport, which has one HTTP/2 connection for all of them.
type connection struct {
	client *http.Client
	url    string
	// dialled counts connections, which are to be one.
	dialled atomic.Int64
}

// connect returns a connection to a process whose certificate is signed by the authority of a cluster in a folder.
func connect(p *harness.Process, authority string) (*connection, error) {
	c := &connection{url: fmt.Sprintf("https://127.0.0.1:%d", p.Web)}
	var err error
	c.client, err = rest.HTTPClientFor(&rest.Config{
		Host: c.url, TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(authority, "ca.crt")},
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			c.dialled.Add(1)
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
	})
	if err != nil {
		return nil, err
	}
	// Questions that come while the first one is still dialling would dial, too.
	response, err := c.client.Get(c.url)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return c, errors.Join(err, response.Body.Close())
}

// post sends a review, and reads the answer.
func (c *connection) post(ctx context.Context, path string, body []byte) (int, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}

// answer is what is read of an AdmissionReview.
type answer struct {
	Response struct {
		Allowed bool `json:"allowed"`
		Status  struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"status"`
	} `json:"response"`
}

// admitted asks an admission webhook, and wants the request to be admitted.
func (c *connection) admitted(ctx context.Context, path string, body []byte) error {
	status, text, err := c.post(ctx, path, body)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return fmt.Errorf("%d %s", status, bytes.TrimSpace(text))
	}
	var a answer
	if err := json.Unmarshal(text, &a); err != nil {
		return err
	}
	if !a.Response.Allowed {
		return fmt.Errorf("refused: %d %s", a.Response.Status.Code, a.Response.Status.Message)
	}
	return nil
}

// allowed asks an authorizer, and wants the request to be allowed.
func (c *connection) allowed(ctx context.Context, path string, body []byte) error {
	status, text, err := c.post(ctx, path, body)
	switch {
	case err != nil:
		return err
	case status != http.StatusOK:
		return fmt.Errorf("%d %s", status, bytes.TrimSpace(text))
	case !bytes.Contains(text, []byte(`"allowed":true`)):
		return fmt.Errorf("not allowed: %s", text)
	}
	return nil
}

// hangingUp gives a question a deadline of its own, after which the client is gone.
func hangingUp(ctx context.Context, question func(context.Context) error) error {
	err := question(ctx)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return errHungUp
	}
	return err
}

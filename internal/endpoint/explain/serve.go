package explain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Path of the endpoint. It is for those alone whom the guard lets in: with the right to get it as a nonResourceURL.
const Path = "/explain"

const (
	// atOnce limits the answers that are made at once: each is some milliseconds' work.
	atOnce = 2
	// patience limits the time that a question waits for its turn.
	patience = 5 * time.Second
	// answerLimit bounds the part of an answer that a client reads; an answer has five candidates and some paths.
	answerLimit = 1 << 20
)

// Handler answers questions.
type Handler struct {
	explain func(context.Context, authorizer.Attributes) Answer
	ready   func() bool
	turns   chan struct{}
	log     logr.Logger
}

// NewHandler returns a handler; ready, if it is set, reports whether everything is known that counts.
func NewHandler(explain func(context.Context, authorizer.Attributes) Answer, ready func() bool, log logr.Logger) *Handler {
	return &Handler{explain: explain, ready: ready, turns: make(chan struct{}, atOnce), log: log}
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if request.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		http.Error(w, "only GET is allowed", http.StatusMethodNotAllowed)
		return
	}
	question := QuestionOf(request.URL.Query())
	attributes, err := question.Attributes()
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if h.ready != nil && !h.ready() {
		http.Error(w, "not synced yet", http.StatusServiceUnavailable)
		return
	}
	ctx, cancel := context.WithTimeout(request.Context(), patience)
	defer cancel()
	select {
	case h.turns <- struct{}{}:
		defer func() { <-h.turns }()
	case <-ctx.Done():
		w.Header().Set("Retry-After", "5")
		http.Error(w, "other decisions are being explained; try again", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if err := json.NewEncoder(w).Encode(h.explain(ctx, attributes)); err != nil {
		h.log.V(1).Info("An explanation could not be written", "reason", err.Error())
	}
}

// Ask asks the endpoint of a running process, below a URL without a query; shoot is the name of one of many that it serves, or empty. The token
// is sent nowhere else.
func Ask(ctx context.Context, client *http.Client, server, shoot, token string, q *Question) (Answer, error) {
	var answer Answer
	endpoint, err := url.Parse(strings.TrimSuffix(server, "/") + path.Join(Path, shoot))
	if err != nil {
		return answer, fmt.Errorf("server: %w", err)
	}
	if endpoint.Scheme != "https" {
		return answer, fmt.Errorf("server: want a URL that begins with https://, as a token is sent there")
	}
	endpoint.RawQuery = q.Values().Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint.String(), http.NoBody)
	if err != nil {
		return answer, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := client.Do(request)
	if err != nil {
		return answer, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, answerLimit))
	switch {
	case err != nil:
		return answer, err
	case response.StatusCode == http.StatusUnauthorized:
		return answer, errors.New("the process does not know the token (401)")
	case response.StatusCode == http.StatusForbidden:
		return answer, fmt.Errorf("the token gives no right to get the nonResourceURL %s (403)", endpoint.Path)
	case response.StatusCode == http.StatusNotFound:
		return answer, errors.New("the process serves no explanations (404): debugging.authentication.enabled is false, or the path is another one")
	case response.StatusCode != http.StatusOK:
		return answer, fmt.Errorf("the process answers %s: %s", response.Status, strings.TrimSpace(string(body)))
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return answer, fmt.Errorf("the answer is no explanation: %w", err)
	}
	return answer, nil
}

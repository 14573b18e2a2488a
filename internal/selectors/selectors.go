// Package selectors finds out whether an API server sends the selectors of list and watch requests to authorizers.
package selectors

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

const (
	// selectorsKnownFor is the lifetime of an answer of the API server (SEL-13).
	selectorsKnownFor = 10 * time.Minute
	// selectorsTimeout bounds the question (SEL-12).
	selectorsTimeout = 10 * time.Second
	selectorsProbe   = "is-kubernetes-feature-gate-AuthorizeWithSelectors=enabled?"
)

// alwaysSelectors is the version from which on API servers always send selectors (SEL-11).
var alwaysSelectors = version.MajorMinor(1, 34)

// Checker knows whether an API server sends selectors to authorizers (section 5.1). One request serves all callers: a caller that arrives meanwhile waits
// for the same answer as long as its own context allows, and the end of its context does not affect other callers.
type Checker struct {
	// Client reads from the API server.
	Client rest.Interface
	Clock  clock.PassiveClock

	mu       sync.Mutex
	forever  bool
	possible bool
	asked    time.Time
	// pending is the question that is being asked, nil if there is none.
	pending *question
}

// question is closed when it has its answer.
type question struct {
	done     chan struct{}
	possible bool
	err      error
}

// Possible answers from memory, or asks.
func (s *Checker) Possible(ctx context.Context) (bool, error) {
	possible, q := s.look(ctx)
	if q == nil {
		return possible, nil
	}
	select {
	case <-q.done:
		return q.possible, q.err
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// look returns the answer that is known, or else the question that is being asked.
func (s *Checker) look(ctx context.Context) (bool, *question) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.forever || !s.asked.IsZero() && s.Clock.Since(s.asked) <= selectorsKnownFor {
		return s.possible, nil
	}
	if s.pending == nil {
		s.pending = &question{done: make(chan struct{})}
		go s.ask(context.WithoutCancel(ctx), s.pending)
	}
	return false, s.pending
}

func (s *Checker) ask(ctx context.Context, q *question) {
	ctx, cancel := context.WithTimeout(ctx, selectorsTimeout)
	defer cancel()
	recent, err := s.isRecent(ctx)
	if q.possible = recent; err == nil && !recent {
		if q.possible, err = s.keepsSelectors(ctx); err != nil {
			err = fmt.Errorf("failed creating dry-run SubjectAccessReview: %w", err)
		}
	}
	q.err = err
	s.complete(q, recent)
	close(q.done) // After the lock is let go: a caller that waited finds the answer known at once.
}

// complete keeps the answer to a question, and ends the question in any case.
func (s *Checker) complete(q *question, recent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending = nil; q.err == nil {
		s.forever, s.possible, s.asked = recent, q.possible, s.Clock.Now()
	}
}

// Known is the answer as far as it is known without a request.
func (s *Checker) Known() (possible, known bool) {
	if !s.mu.TryLock() {
		return false, false // It is being asked.
	}
	defer s.mu.Unlock()
	return s.possible, s.forever || !s.asked.IsZero() && s.Clock.Since(s.asked) <= selectorsKnownFor
}

func (s *Checker) isRecent(ctx context.Context) (bool, error) {
	body, err := s.Client.Get().AbsPath("/version").SetHeader("Accept", "application/json").Do(ctx).Raw()
	if err != nil {
		return false, fmt.Errorf("failed discovering Kubernetes version: %w", err)
	}
	var info struct {
		GitVersion string `json:"gitVersion"`
	}
	if err := json.Unmarshal(body, &info); err != nil {
		return false, fmt.Errorf("failed discovering Kubernetes version: %w", err)
	}
	parsed, err := version.ParseSemantic(info.GitVersion)
	if err != nil {
		return false, fmt.Errorf("failed parsing Kubernetes version %q to semver: %w", info.GitVersion, err)
	}
	return parsed.AtLeast(alwaysSelectors), nil
}

// keepsSelectors sends a review with a selector and looks whether it comes back: API servers drop fields of features that are off.
func (s *Checker) keepsSelectors(ctx context.Context) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview"},
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "gardener-admission-controller",
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: "default", Verb: "get", Resource: "shoots",
				LabelSelector: &authorizationv1.LabelSelectorAttributes{RawSelector: selectorsProbe},
			},
		},
	}
	body, err := json.Marshal(review)
	if err != nil {
		return false, err
	}
	answer, err := s.Client.Post().AbsPath("/apis/authorization.k8s.io/v1/subjectaccessreviews").Param("dryRun", "All").
		SetHeader("Content-Type", "application/json").SetHeader("Accept", "application/json").Body(body).Do(ctx).Raw()
	if err != nil {
		return false, err
	}
	returned := &authorizationv1.SubjectAccessReview{}
	if err := json.Unmarshal(answer, returned); err != nil {
		return false, err
	}
	attributes := returned.Spec.ResourceAttributes
	return attributes != nil && attributes.LabelSelector != nil, nil
}

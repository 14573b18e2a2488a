// Package selectors determines whether an API server sends the selectors of list and watch requests to authorizers.
package selectors

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

const (
	// selectorsKnownFor is the lifetime of a result (SEL-13).
	selectorsKnownFor = 10 * time.Minute
	// selectorsTimeout limits the request for a result (SEL-12).
	selectorsTimeout = 10 * time.Second
	selectorsProbe   = "is-kubernetes-feature-gate-AuthorizeWithSelectors=enabled?"
)

// alwaysSelectors is the first version in which API servers always send selectors (SEL-11).
var alwaysSelectors = version.MajorMinor(1, 34)

// Checker determines whether an API server sends selectors to authorizers (section 5.1). One request serves all
// callers: a caller that arrives meanwhile waits for the same result as long as its own context allows, and the end
// of its context does not affect other callers.
type Checker struct {
	// Client reads from the API server.
	Client rest.Interface
	Clock  clock.PassiveClock

	// asking has the present request.
	asking   singleflight.Group
	mu       sync.Mutex
	forever  bool
	possible bool
	asked    time.Time
}

// Possible returns the stored result, or requests it.
func (s *Checker) Possible(ctx context.Context) (bool, error) {
	if possible, known := s.recall(); known {
		return possible, nil
	}
	answer := s.asking.DoChan("", func() (any, error) { return s.ask(context.WithoutCancel(ctx)) })
	select {
	case a := <-answer:
		possible, _ := a.Val.(bool)
		return possible, a.Err
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

func (s *Checker) ask(ctx context.Context) (bool, error) {
	if possible, known := s.recall(); known { // The result arrived in between.
		return possible, nil
	}
	ctx, cancel := context.WithTimeout(ctx, selectorsTimeout)
	defer cancel()
	recent, err := s.isRecent(ctx)
	possible := recent
	if err == nil && !recent {
		if possible, err = s.keepsSelectors(ctx); err != nil {
			err = fmt.Errorf("failed creating dry-run SubjectAccessReview: %w", err)
		}
	}
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forever, s.possible, s.asked = recent, possible, s.Clock.Now()
	return possible, nil
}

// Known returns the result if it is known without a request. It never waits.
func (s *Checker) Known() (possible, known bool) {
	if !s.mu.TryLock() {
		return false, false
	}
	defer s.mu.Unlock()
	return s.knownLocked()
}

func (s *Checker) recall() (possible, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.knownLocked()
}

func (s *Checker) knownLocked() (possible, known bool) {
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

// keepsSelectors sends a review with a selector and checks that the response has it, because API servers drop fields
// of features that are off.
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

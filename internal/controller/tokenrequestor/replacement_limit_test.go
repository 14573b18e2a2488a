package tokenrequestor

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-project/espalier/internal/controller/kit"
	"github.com/espalier-project/espalier/internal/controller/tokenrequestor/token"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// hostile is what a target does to each token that is written there, as a mutating webhook of its owner would.
var hostile = map[string]func(*fixture, *corev1.Secret) error{
	"the token is taken out": func(_ *fixture, s *corev1.Secret) error { delete(s.Data, token.KeyToken); return nil },
	"the CA is another":      func(_ *fixture, s *corev1.Secret) error { s.Data[token.KeyBundle] = []byte("mine"); return nil },
	"the token has expired": func(_ *fixture, s *corev1.Secret) error {
		s.Data[token.KeyToken] = []byte("x.eyJleHAiOjF9.x")
		return nil
	},
	"the token is of another": func(_ *fixture, s *corev1.Secret) error {
		s.Data[token.KeyToken] = []byte("x.eyJzdWIiOiJ4In0.x")
		return nil
	},
	"the token is not accepted": func(_ *fixture, s *corev1.Secret) error { s.Data[token.KeyToken] = []byte("not accepted"); return nil },
	"its own is not accepted": func(f *fixture, s *corev1.Secret) error {
		f.rejected[string(s.Data[token.KeyToken])] = true
		return nil
	},
	"the write is refused": func(*fixture, *corev1.Secret) error { return errors.New("admission webhook denied the request") },
	"nothing":              func(*fixture, *corev1.Secret) error { return nil },
}

// attack has the target do this to each Secret that is written there.
func (f *fixture) attack(change func(*fixture, *corev1.Secret) error) {
	f.rejected["not accepted"] = true
	inner := f.target.(client.WithWatch)
	target := interceptor.NewClient(inner, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.CreateOption) error {
			if secret, is := object.(*corev1.Secret); is {
				if err := change(f, secret); err != nil {
					return err
				}
			}
			return c.Create(ctx, object, o...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, p client.Patch, o ...client.PatchOption) error {
			secret, is := object.(*corev1.Secret)
			if !is {
				return c.Patch(ctx, object, p, o...)
			}
			refused := change(f, secret.DeepCopy())
			if refused != nil {
				return refused
			}
			if err := c.Patch(ctx, object, p, o...); err != nil {
				return err
			}
			if err := change(f, secret); err != nil {
				return err
			}
			return c.Update(ctx, secret)
		},
	})
	f.target, f.Target = target, target
}

// cost is what a while of looks has cost.
type cost struct{ tokens, writes, looks int }

// live lets the queue of the controller do its work for a while: each write of the source is looked at again at once, a failure is repeated
// later and later, and all else when the controller wants it.
func (f *fixture) live(fatal func(args ...any), retries workqueue.TypedRateLimiter[reconcile.Request], long time.Duration) cost {
	f.Helper()
	tokens, writes, looks := len(f.issued), f.patches, 0
	end := f.clock.Now().Add(long)
	for f.clock.Now().Before(end) {
		before := f.patches
		result, err := f.run()
		if looks++; looks > 10_000 {
			fatal("the controller does not come to rest")
		}
		wait := result.RequeueAfter
		switch {
		case err != nil:
			wait = retries.When(reconcile.Request{})
		case f.patches > before:
			retries.Forget(reconcile.Request{})
			continue // The event of the write.
		default:
			retries.Forget(reconcile.Request{})
		}
		f.clock.SetTime(f.clock.Now().Add(min(wait, end.Sub(f.clock.Now()))))
	}
	return cost{len(f.issued) - tokens, f.patches - writes, looks}
}

// TR-24: whatever a target does to each of the tokens that are written there, in whatever order, an hour costs a bounded number of tokens and of
// writes of the source; and once the target does nothing more, its token is there after one pause, and stays.
func TestPropertyOfHostileTargets(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f, retries := newFixture(t), kit.Retries()
		f.web = rapid.Bool().Draw(rt, "web")
		acts, ends := rapid.SliceOfN(rapid.SampledFrom(slices.Sorted(maps.Keys(hostile))), 1, 5).Draw(rt, "acts"), false
		n := 0
		f.attack(func(f *fixture, secret *corev1.Secret) error {
			if ends {
				return nil
			}
			n++
			return hostile[acts[n%len(acts)]](f, secret)
		})
		f.given(nil, token.AnnotationTargetName, "t", token.AnnotationTargetNamespace, "ns", token.AnnotationInjectCA, "true")
		// The first token may need as many tries as there are retries in an hour: 18 up to the longest wait, and 3 more.
		first := 21 + replacements + int(time.Hour/replacementPause)
		c := f.live(rt.Fatal, retries, time.Hour)
		must.True(rt, c.tokens <= first && c.writes <= first, "TR-24: the first hour has cost %+v", c)
		for range 3 {
			most := replacements + int(time.Hour/replacementPause) + 2 // One whose time is up, and what is tried again then.
			c := f.live(rt.Fatal, retries, time.Hour)
			must.True(rt, c.tokens <= most && c.writes <= most, "TR-24: an hour has cost %+v", c)
		}
		ends, f.rejected = true, map[string]bool{"not accepted": true}
		f.live(rt.Fatal, retries, lastPause)
		f.overwriteTarget(rt.Fatal, "not accepted")
		f.live(rt.Fatal, retries, replacementPause+time.Second)
		if c := f.live(rt.Fatal, retries, time.Hour); c.tokens > 1 { // One whose time is up.
			rt.Fatalf("TR-24: the target does nothing, and an hour has cost %+v", c)
		}
		destination := f.secret(f.target, "ns", "t").Data
		if content := string(destination[token.KeyToken]); content == "" || content == "not accepted" {
			rt.Fatalf("TR-24: the target does nothing any more, and has %q", content)
		}
	})
}

// overwriteTarget puts a token of somebody else into the Secret of the target. Nobody watches it: an event of the source has it looked at.
func (f *fixture) overwriteTarget(fatal func(args ...any), content string) {
	f.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "t"}}
	if err := f.target.Get(f.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
		fatal(err)
	}
	secret.Data[token.KeyToken] = []byte(content)
	if err := f.target.Update(f.Context(), secret); err != nil {
		fatal(err)
	}
}

// TR-24: at one moment a Secret costs the token that it asked for and two that replace it; the reasons that are exempt cost what they are.
func TestReplacementLimit(t *testing.T) {
	for name, change := range hostile {
		if name == "nothing" || name == "the write is refused" || name == "its own is not accepted" {
			continue
		}
		t.Run("TR-24/"+name, func(t *testing.T) {
			f := newFixture(t)
			f.attack(change)
			f.given(nil, token.AnnotationTargetName, "t", token.AnnotationTargetNamespace, "ns", token.AnnotationInjectCA, "true")
			for range 50 {
				must.Succeed(t, expect.ErrorOf(f.run()))
			}
			f.count(1 + replacements)
			expect.Equal(t, f.patches, 1+replacements, "writes of the source")
			result, err := f.run()
			must.True(t, err == nil && result.RequeueAfter > 0 && result.RequeueAfter <= replacementPause,
				"the next look: %+v, %v", result, err)
			events := f.events()
			expect.True(t, len(events) == 1 && events[0].Reason == "TokenDoesNotStay", "Events: %+v", events)
			f.clock.SetTime(f.clock.Now().Add(result.RequeueAfter))
			must.Succeed(t, expect.ErrorOf(f.run()))
			f.count(1 + replacements + 1)
			// TR-6: whoever asks for a new token gets it at once, as often as that.
			for i := range 5 {
				f.annotate(token.AnnotationRenew, "")
				must.Succeed(t, expect.ErrorOf(f.run()))
				f.count(1 + replacements + 1 + i + 1)
			}
			// TR-12: a token whose time is up is renewed at once.
			f.annotate(token.AnnotationRenew, ahead(f, -time.Second))
			must.Succeed(t, expect.ErrorOf(f.run()))
			f.count(1 + replacements + 1 + 5 + 1)
			// A pause ends when the time of the token is up.
			f.annotate(token.AnnotationRenew, ahead(f, time.Second))
			if result, err := f.run(); err != nil || result.RequeueAfter <= 0 || result.RequeueAfter > time.Second {
				t.Errorf("a token whose time is soon up: %+v, %v", result, err)
			}
		})
	}
}

// TR-24: a Secret that others write at the same time, or whose latest version has not been seen yet, loses no replacement by that.
func TestReplacementLimit_CountsNoConflict(t *testing.T) {
	f := newFixture(t)
	f.rejected["not accepted"] = true
	f.given(map[string]string{"token": "not accepted"}, token.AnnotationRenew, ahead(f, time.Hour))
	for n := range 5 {
		f.beforePatch = func() { f.annotate("written-by-somebody", strconv.Itoa(n)) }
		_, err := f.run()
		must.True(t, apierrors.IsConflict(err), "attempt %d: %v, want a conflict", n, err)
	}
	for n := range replacements {
		f.overwrite("not accepted")
		must.Succeed(t, expect.ErrorOf(f.run()))
		expect.True(t, string(f.secret(f.source, key.Namespace, key.Name).Data[token.KeyToken]) != "not accepted",
			"TR-24: replacement %d waits, and there were only conflicts before", n+1)
	}
}

// annotate sets an annotation of the source Secret, or removes it if the value is empty.
func (f *fixture) annotate(name, value string) {
	f.Helper()
	secret := f.secret(f.source, key.Namespace, key.Name)
	if secret.Annotations[name] = value; value == "" {
		delete(secret.Annotations, name)
	}
	must.Succeed(f, f.source.Update(f.Context(), secret))
}

// TR-25: what is counted of a Secret goes with it.
func TestReplacementLimit_Forgets(t *testing.T) {
	f := newFixture(t)
	f.attack(hostile["the token is taken out"])
	f.given(nil, token.AnnotationTargetName, "t", token.AnnotationTargetNamespace, "ns")
	for range 5 {
		must.Succeed(t, expect.ErrorOf(f.run()))
	}
	must.Equal(t, len(f.replacementLimit.buckets), 1, "Secrets are counted")
	must.Succeed(t, f.source.Delete(t.Context(), f.secret(f.source, key.Namespace, key.Name)))
	if _, err := f.run(); err != nil || len(f.replacementLimit.buckets) != 0 {
		t.Errorf("%d Secrets that are gone are counted, %v", len(f.replacementLimit.buckets), err)
	}
}

// TR-12, TR-25: a Secret that a finalizer keeps is still mounted, and its token is renewed until it is gone.
func TestTerminating(t *testing.T) {
	f := newFixture(t)
	secret := f.given(map[string]string{"token": "old"}, token.AnnotationRenew, ahead(f, -time.Minute))
	secret.Finalizers = []string{"gardener.cloud/reference-protection"}
	must.Succeed(t, f.source.Update(t.Context(), secret))
	must.Succeed(t, f.source.Delete(t.Context(), secret))
	f.after(12 * time.Hour / 5 * 4)
	f.wants(f.source, key.Namespace, key.Name, map[string]string{"token": "token-1"})
	f.after(12 * time.Hour / 5 * 4)
	f.count(1)
}

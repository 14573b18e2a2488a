package kit

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/espalier-project/espalier/test/expect"
)

// TestGroup: what is added runs until the context ends, what they add in turn as well, and the first error ends all.
func TestGroup(t *testing.T) {
	wrong := errors.New("wrong")
	for name, c := range map[string]struct {
		first error
		stop  bool
		want  error
	}{
		"the context ends":    {stop: true},
		"one of them fails":   {first: wrong, want: wrong},
		"adding itself fails": {want: wrong},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var began, ended atomic.Int32
			lasting := manager.RunnableFunc(func(ctx context.Context) error {
				began.Add(1)
				defer ended.Add(1)
				<-ctx.Done()
				return nil
			})
			inner := make(chan struct{})
			err := Run(ctx, nil, func(g *Group) error {
				err := g.Add(manager.RunnableFunc(func(context.Context) error {
					defer close(inner)
					if err := g.Add(lasting); err != nil {
						return err
					}
					return c.first
				}))
				if err != nil {
					return err
				}
				<-inner
				switch {
				case c.stop:
					cancel()
				case c.first == nil:
					return wrong
				}
				return g.Add(lasting)
			})
			expect.True(t, errors.Is(err, c.want) && began.Load() == ended.Load() && began.Load() != 0,
				"got %v; %d began, %d ended", err, began.Load(), ended.Load())
		})
	}
}

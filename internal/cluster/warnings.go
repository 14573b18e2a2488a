package cluster

import (
	"context"
	"strings"
	"sync"
	"time"
	"unicode"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// repeated is the time after which a warning is logged again.
	repeated = time.Hour
	// remembered bounds the warnings that count as logged: at most a MiB with texts of shownWarning bytes. Above that
	// limit none is logged until an hour has passed; metrics still count all.
	remembered = 4096
	// shownWarning is the maximum length of a warning in a log, and mostWarnings the maximum number in one response.
	shownWarning, mostWarnings = 256, 32
)

// Warnings handles the warnings in an API server's responses (CCH-5, CCH-61). Requests with a context from
// CollectWarnings add theirs to it; others are logged, each text once an hour.
type Warnings struct{ hourly hourly }

// NewWarnings returns a handler of warnings.
func NewWarnings(c clock.PassiveClock) *Warnings {
	return &Warnings{hourly{clock: c, logged: map[string]time.Time{}}}
}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w *Warnings) HandleWarningHeaderWithContext(ctx context.Context, code int, _ string, text string) {
	if text = oneLine(text); code != 299 || text == "" {
		return
	}
	if collected, is := ctx.Value(collectedKey{}).(*Collected); is {
		collected.add(&w.hourly, text)
		return
	}
	if w.hourly.isDue(text) {
		klog.FromContext(ctx).Info("The API server warns", "warning", text)
	}
}

// oneLine returns the beginning of a text in one line, without unprintable characters.
func oneLine(text string) string {
	if len(text) > shownWarning {
		text = strings.ToValidUTF8(text[:shownWarning], "") + "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
}

// Collected has the warnings of all requests with one context.
type Collected struct {
	mu     sync.Mutex
	texts  []string
	hourly *hourly
}

type collectedKey struct{}

// CollectWarnings returns a context whose requests add their warnings to the Collected.
func CollectWarnings(ctx context.Context) (context.Context, *Collected) {
	collected := &Collected{}
	return context.WithValue(ctx, collectedKey{}, collected), collected
}

func (c *Collected) add(all *hourly, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hourly = all
	if len(c.texts) < mostWarnings {
		c.texts = append(c.texts, text)
	}
}

// Texts returns the warnings.
func (c *Collected) Texts() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.texts
}

// IsDue reports whether a warning was not logged within the last hour, and records it as logged.
func (c *Collected) IsDue(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hourly.isDue(key)
}

// hourly has the texts that were logged within the last hour.
type hourly struct {
	clock  clock.PassiveClock
	mu     sync.Mutex
	logged map[string]time.Time
}

func (h *hourly) isDue(text string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.clock.Now()
	if at, known := h.logged[text]; known && now.Sub(at) < repeated {
		return false
	}
	if len(h.logged) >= remembered {
		for text, at := range h.logged {
			if now.Sub(at) >= repeated {
				delete(h.logged, text)
			}
		}
		if len(h.logged) >= remembered {
			return false
		}
	}
	h.logged[text] = now
	return true
}

package process

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/utils/lru"
)

const (
	// firstPause is the time for which a logged error is not logged again. It doubles with each line, up to
	// lastPause. An error without a line for newAfter counts as new.
	firstPause, lastPause, newAfter = 10 * time.Second, 10 * time.Minute, 30 * time.Minute
	// mostErrors bounds the distinct errors. They take less than a megabyte, at some hundred bytes each.
	mostErrors = 4096
)

// repeats decides which errors are logged again: a lasting error, such as a kind that is not served, has few lines
// (OBS-36).
type repeats struct {
	mu    sync.Mutex
	known *lru.Cache
}

// repeated has the last log line of an error.
type repeated struct {
	last  time.Time
	pause time.Duration
	// omitted counts the lines that were omitted since the last one.
	omitted int
}

func newRepeats() *repeats { return &repeats{known: lru.New(mostErrors)} }

// due reports whether an error is logged now, and how many lines were omitted before it.
func (r *repeats) due(key string, now time.Time) (bool, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	value, _ := r.known.Get(key)
	known, found := value.(repeated)
	since := now.Sub(known.last)
	if found && since < known.pause {
		known.omitted++
		r.known.Add(key, known)
		return false, 0
	}
	pause := firstPause
	if found && since < newAfter {
		pause = min(2*known.pause, lastPause)
	}
	r.known.Add(key, repeated{last: now, pause: pause})
	return true, known.omitted
}

// unreported are keys whose values differ between lines about the same error.
var unreported = []string{"reconcileID", "stack", "stacktrace"}

// errorKey returns the same key for lines about the same error of one object. It ignores numbers in the text, such as
// ports and resource versions.
func errorKey(entry zapcore.Entry, fields []zapcore.Field) string {
	encoded := zapcore.NewMapObjectEncoder()
	for i := range fields {
		if !slices.Contains(unreported, fields[i].Key) {
			fields[i].AddTo(encoded)
		}
	}
	key := entry.LoggerName + " " + withoutDigits(entry.Message)
	for _, name := range slices.Sorted(maps.Keys(encoded.Fields)) {
		value := fmt.Sprint(encoded.Fields[name])
		if name == "error" || name == "err" || name == "reason" {
			value = withoutDigits(value)
		}
		key += " " + name + "=" + value
	}
	return key
}

func withoutDigits(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, text)
}

// unrepeated is a core that omits errors that were logged recently.
type unrepeated struct {
	zapcore.Core
	repeats *repeats
	// context has the fields of the logger.
	context []zapcore.Field
}

// With implements zapcore.Core.
func (u unrepeated) With(fields []zapcore.Field) zapcore.Core {
	return unrepeated{u.Core.With(fields), u.repeats, slices.Concat(u.context, fields)}
}

// Check implements zapcore.Core.
func (u unrepeated) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if entry.Level < zapcore.ErrorLevel {
		return u.Core.Check(entry, checked)
	}
	if u.Enabled(entry.Level) {
		return checked.AddCore(entry, u)
	}
	return checked
}

// Write implements zapcore.Core.
func (u unrepeated) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	due, omitted := u.repeats.due(errorKey(entry, slices.Concat(u.context, fields)), entry.Time)
	if !due {
		return nil
	}
	if omitted > 0 {
		fields = append(slices.Clone(fields), zap.Int("notLogged", omitted))
	}
	return u.Core.Write(entry, fields)
}

package process

import (
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/espalier-project/espalier/internal/managedresource/meta"
)

// maxLogged bounds a text in a line of the log, in bytes. Errors contain foreign texts: names in certificates,
// messages of admission webhooks, responses of API servers. People read the lines, and log collectors cut lines of
// some 16 KiB.
const maxLogged = 4 << 10

// routine are messages that the libraries log at info for each webhook, controller and failed probe. The
// configuration, or other lines such as "Probe fails", already have this information, so they count as debug: at info
// the log of a start is for people (CLI-7).
var routine = map[string]bool{
	"Registering webhook": true, "Starting EventSource": true, "Starting Controller": true, "Starting workers": true,
	"Starting metrics server": true, "Starting certificate poll+watcher": true, "healthz check failed": true,
}

// bounded is a core of a logger that shortens texts, and logs routine messages of libraries at debug.
type bounded struct{ zapcore.Core }

// With implements zapcore.Core.
func (b bounded) With(fields []zapcore.Field) zapcore.Core {
	return bounded{b.Core.With(shortened(fields))}
}

// Check implements zapcore.Core.
func (b bounded) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if entry.Level == zapcore.InfoLevel && routine[entry.Message] {
		entry.Level = zapcore.DebugLevel
	}
	if b.Enabled(entry.Level) {
		return checked.AddCore(entry, b)
	}
	return checked
}

// Write implements zapcore.Core.
func (b bounded) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	entry.Message = meta.Shortened(entry.Message, maxLogged)
	return b.Core.Write(entry, shortened(fields))
}

// shortened returns copies of the fields with texts and errors of at most maxLogged bytes.
func shortened(fields []zapcore.Field) []zapcore.Field {
	for i := range fields {
		text, isLong := longText(&fields[i])
		if !isLong {
			continue
		}
		short := append([]zapcore.Field(nil), fields...)
		short[i] = zap.String(fields[i].Key, meta.Shortened(text, maxLogged))
		return append(short[:i+1:i+1], shortened(short[i+1:])...)
	}
	return fields
}

func longText(field *zapcore.Field) (string, bool) {
	text := field.String
	if err, is := field.Interface.(error); is && field.Type == zapcore.ErrorType {
		text = err.Error()
	} else if field.Type != zapcore.StringType {
		return "", false
	}
	return text, len(text) > maxLogged
}

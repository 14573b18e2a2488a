package process

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
)

// LogLevelPath is the path for reading and setting the log level, on the port of the metrics. It requires
// debugging.authentication.
const LogLevelPath = "/debug/log-level"

// thresholds are the levels of the configuration in the log library.
var thresholds = map[string]zapcore.Level{
	shared.LogLevelDebug: zapcore.DebugLevel, shared.LogLevelInfo: zapcore.InfoLevel, shared.LogLevelError: zapcore.ErrorLevel,
}

// leveled is the core of a logger whose level can be set.
type leveled struct {
	zapcore.Core
	level zap.AtomicLevel
}

// With implements zapcore.Core.
func (l leveled) With(fields []zapcore.Field) zapcore.Core {
	return leveled{l.Core.With(fields), l.level}
}

// levelOf returns the level of a logger from NewLogger, which all derived loggers share.
func levelOf(log logr.Logger) (zap.AtomicLevel, bool) {
	sink, ok := log.GetSink().(zapr.Underlier)
	if !ok {
		return zap.AtomicLevel{}, false
	}
	core, ok := sink.GetUnderlying().Core().(leveled)
	return core.level, ok
}

// logLevel returns the log level, and a PUT sets it to its body: debug, info or error. A restart restores the
// configured level.
type logLevel struct {
	level zap.AtomicLevel
	log   logr.Logger
}

// ServeHTTP implements http.Handler.
func (l *logLevel) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	switch request.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodPut:
		text, err := io.ReadAll(http.MaxBytesReader(w, request.Body, 64))
		wanted, known := thresholds[strings.TrimSpace(string(text))]
		if err != nil || !known {
			http.Error(w, "want debug, info or error", http.StatusBadRequest)
			return
		}
		before := l.level.Level()
		l.level.SetLevel(min(before, zapcore.InfoLevel)) // The change itself is always logged.
		l.log.Info("Setting the log level", "from", before.String(), "to", wanted.String())
		l.level.SetLevel(wanted)
	default:
		w.Header().Set("Allow", "GET, HEAD, PUT")
		http.Error(w, http.StatusText(http.StatusMethodNotAllowed), http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = fmt.Fprintln(w, l.level.Level())
}

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

// LogLevelPath is the path for reading and setting the log level, on the port of the metrics and with
// debugging.authentication only.
const LogLevelPath = "/debug/log-level"

// thresholds are the levels of the configuration, as the log has them.
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

// levelOf returns the level of a logger of NewLogger, which is that of all loggers made from it.
func levelOf(log logr.Logger) (zap.AtomicLevel, bool) {
	sink, ok := log.GetSink().(zapr.Underlier)
	if !ok {
		return zap.AtomicLevel{}, false
	}
	core, ok := sink.GetUnderlying().Core().(leveled)
	return core.level, ok
}

// logLevel shows the level of the log, and sets it to the body of a PUT: debug, info or error. A restart brings that
// of the configuration back.
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
		l.level.SetLevel(min(before, zapcore.InfoLevel)) // The change itself is logged at any level.
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

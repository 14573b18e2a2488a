package process

import (
	"io"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
)

// NewLogger returns the logger of a process and makes the libraries use it (OBS-1 … OBS-3). Only lines about panics
// have a stack, as a value.
func NewLogger(level, format string, out io.Writer) logr.Logger {
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = func(t time.Time, enc zapcore.PrimitiveArrayEncoder) {
		enc.AppendString(t.UTC().Format("2006-01-02T15:04:05.000Z07:00"))
	}
	encoding.EncodeDuration = zapcore.StringDurationEncoder
	encoding.CallerKey = zapcore.OmitKey
	encoder := zapcore.NewJSONEncoder(encoding)
	if format == shared.LogFormatText {
		encoder = zapcore.NewConsoleEncoder(encoding)
	}
	threshold := zap.NewAtomicLevelAt(thresholds[level]) // Without a level it is 0, which is info.
	written := unrepeated{bounded{zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(out)), threshold)}, newRepeats(), nil}
	core := leveled{sampled{zapcore.NewSamplerWithOptions(written, time.Second, 100, 100), written}, threshold}
	logger := zapr.NewLogger(zap.New(core))
	ctrllog.SetLogger(logger)
	klog.SetLogger(logger)
	return logger
}

// Logger returns the logger of this process, and logs the warnings about the configuration.
func Logger(level, format string, warnings []string) logr.Logger {
	log := NewLogger(level, format, Stderr())
	for _, warning := range warnings {
		log.Info("The configuration has a key to correct", "warning", warning)
	}
	return log
}

// sampled is a core that samples all lines except those about deletions (MRB-51).
type sampled struct {
	zapcore.Core
	whole zapcore.Core
}

// With implements zapcore.Core.
func (s sampled) With(fields []zapcore.Field) zapcore.Core {
	return sampled{s.Core.With(fields), s.whole.With(fields)}
}

// Check implements zapcore.Core.
func (s sampled) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if strings.HasSuffix(entry.LoggerName, meta.DeletionLogger) {
		return s.whole.Check(entry, checked)
	}
	return s.Core.Check(entry, checked)
}

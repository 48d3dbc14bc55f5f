package ziti

import (
	"fmt"
	"io"

	"github.com/sirupsen/logrus"
)

// forward has the SDK's lines go to log. The SDK writes through logrus' own logger,
// which nobody else of the runner uses. Its debug lines show session tokens: they are
// not to be had.
func forward(log *logrus.Logger) {
	global := logrus.StandardLogger()
	global.SetOutput(io.Discard)
	global.SetLevel(logrus.InfoLevel)
	global.ReplaceHooks(logrus.LevelHooks{})
	global.AddHook(&lines{log})
}

// lines is a hook that passes lines on.
type lines struct{ log *logrus.Logger }

// Levels are those that the SDK's logger lets through.
func (*lines) Levels() []logrus.Level { return logrus.AllLevels }

// Fire passes a line on. What the SDK tells the world in passing is for those who look
// closely; what it cannot do is tried again, and so no more than a warning.
func (l *lines) Fire(entry *logrus.Entry) error {
	level := logrus.WarnLevel
	if entry.Level > logrus.WarnLevel {
		level = logrus.DebugLevel
	}
	fields := logrus.Fields{"part": "ziti"}
	// Other fields hold tokens and whole structures.
	for _, name := range []string{"router", "routerName", "routerUrl", "service", "serviceName", "circuitId", "errorCode", "url", logrus.ErrorKey} {
		if value, ok := entry.Data[name]; ok {
			fields[name] = clean(fmt.Sprint(value))
		}
	}
	l.log.WithFields(fields).Log(level, clean(entry.Message))
	return nil
}

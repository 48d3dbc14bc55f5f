package tlsfiles

import (
	"time"

	"github.com/sirupsen/logrus"
)

// expiry is when a certificate counts. Outside of it the other side refuses it;
// whether that is so may also lie in this side's clock, so that it is used.
type expiry struct {
	setting       string
	after, before time.Time
	// warned is true once the log has a line about it.
	warned bool
}

// warn has a certificate that does not count at now in the log, once.
func (e *expiry) warn(log logrus.FieldLogger, now time.Time) {
	if e.setting == "" || e.warned {
		return
	}
	switch log := log.WithFields(e.fields()); {
	case now.After(e.before):
		log.Warnf("%s has expired; it is used all the same", e.setting)
	case now.Before(e.after):
		log.Warnf("%s does not count yet; it is used all the same", e.setting)
	default:
		return
	}
	e.warned = true
}

func (e *expiry) fields() logrus.Fields {
	if e.setting == "" {
		return nil
	}
	return logrus.Fields{"not_before": e.after.UTC().Format(time.RFC3339), "not_after": e.before.UTC().Format(time.RFC3339)}
}

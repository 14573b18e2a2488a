package endpoint

import "time"

// Sample limits the log lines of one series to one in a period. Its caller holds a lock.
type Sample struct {
	logged time.Time
	silent int
}

// Due reports whether a line is due, and how many were left out since the last one.
func (s *Sample) Due(now time.Time, period time.Duration) (silent int, due bool) {
	if !s.logged.IsZero() && now.Sub(s.logged) < period {
		s.silent++
		return 0, false
	}
	silent, s.silent, s.logged = s.silent, 0, now
	return silent, true
}

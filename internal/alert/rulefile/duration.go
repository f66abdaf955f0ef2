package rulefile

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var durationPart = regexp.MustCompile(`^(\d{1,9})(ms|s|m|h|d|w)`)

var units = map[string]time.Duration{"ms": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour}

// ParseDuration reads a duration of at most a year as Prometheus writes them: 1h30m, 2d.
func ParseDuration(source string) (time.Duration, error) {
	if source == "0" {
		return 0, nil
	}
	var total time.Duration
	rest := source
	for rest != "" {
		m := durationPart.FindStringSubmatch(rest)
		if m == nil {
			return 0, fmt.Errorf("%q is not a duration", source)
		}
		n, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil || n > int64((math.MaxInt64-total)/units[m[2]]) {
			return 0, fmt.Errorf("%q is too long", source)
		}
		total += time.Duration(n) * units[m[2]]
		rest = rest[len(m[0]):]
	}
	if source == "" || total > 366*24*time.Hour {
		return 0, fmt.Errorf("%q is not a duration of at most a year", source)
	}
	return total, nil
}

// ShortDuration is a duration without its parts that are zero, as rules are written: 10m, not 10m0s.
func ShortDuration(d time.Duration) string {
	var b strings.Builder
	for _, unit := range []string{"d", "h", "m", "s", "ms"} {
		if n := d / units[unit]; n > 0 {
			fmt.Fprintf(&b, "%d%s", n, unit)
			d -= n * units[unit]
		}
	}
	return b.String()
}

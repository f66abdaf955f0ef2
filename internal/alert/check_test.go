package alert_test

import (
	"strings"
	"testing"
	"time"

	"github.com/statusd/statusd/internal/alert"
)

// A silence that would match every alert is refused, whichever way it is written.
func TestSilenceOfEverything_IsRefused(t *testing.T) {
	now := time.Now()
	for text, refused := range map[string]bool{
		"alertname=~.+": true, "alertname=~.*": true, "severity=~.+": true, "team!=x": true, "alertname=~[a-zA-Z0-9_]+": true,
		"alertname=KubePodNotReady": false, "severity=~critical|warning|info": false, "alertname=~Kube.*": false, "pod=~.+": false, "alertname!=Watchdog": true,
	} {
		m, err := alert.ParseMatcher(text)
		if err != nil {
			t.Fatal(err)
		}
		s := alert.Silence{Matchers: []alert.Matcher{m}, Until: now.Add(time.Hour), By: "me", Comment: "why"}
		if err := s.Check(now); (err != nil) != refused || err != nil && !strings.Contains(err.Error(), "match every alert") {
			t.Errorf("%s: got %v, want it refused: %v", text, err, refused)
		}
	}
}

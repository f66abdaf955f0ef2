package logs

import (
	"strings"
	"testing"
)

// Each default rule has a text that is searched for before its expression, so that a flood of
// other lines is cheap.
func TestDefaultRulesAreSearchedForByText(t *testing.T) {
	for _, r := range DefaultRules() {
		for _, expression := range []string{r.Match, r.Clear} {
			if texts := literals(expression); expression != "" && shortest(texts) < 4 {
				t.Errorf("%s: %s: texts %q: every match must contain one of at least 4 characters", r.Reason, expression, texts)
			}
		}
	}
}

// Texts must be in each match.
func TestLiteralsAreInEachMatch(t *testing.T) {
	for _, tt := range []struct{ expression, want string }{
		{`EXT4-fs error`, "EXT4-fs error"},
		{`(?:abc|defg) tail`, " tail"},
		{`(?:first one|second)x?`, "first one second"},
		{`(?i)nocase`, ""},
		{`a*bcd`, "bcd"},
		{`(?:x|)y`, "y"},
		{`(?:abcd|)`, ""},
		{`say "quoted words" now`, "quoted words"},
		{`[ab]+c`, "c"},
		{`(?:long text)?`, ""},
		{`(?:abc){2,3}`, "abc"},
	} {
		if got := strings.Join(literals(tt.expression), " "); got != tt.want {
			t.Errorf("literals(%q) = %q, want %q", tt.expression, got, tt.want)
		}
	}
}

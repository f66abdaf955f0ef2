package explain

import (
	"regexp"
	"slices"
	"strings"

	"github.com/statusd/statusd/internal/podrules"
	"github.com/statusd/statusd/internal/text"
)

// Log is the end of the log of one run of a container.
type Log struct {
	// Container is the name of the container. Previous: the log is from the previous run.
	Container string `json:"container"`
	Previous  bool   `json:"previous,omitempty"`
	// Lines are the last lines, the oldest first, as formatted by [LogLines].
	Lines []string `json:"lines"`
}

// Limits of the displayed part of a log.
const (
	maxLines = 12
	maxLine  = 300
	// MaxLog is the number of bytes at the end of a log that suffice for [LogLines].
	MaxLog = 16 << 10
)

// LogLines returns the last lines of a log for display: bounded, without control characters, and without likely secrets.
func LogLines(data []byte) []string {
	lines := harmlessLines(data)
	if len(lines) <= maxLines {
		return lines
	}
	end := lines[len(lines)-maxLines:]
	if !slices.ContainsFunc(end, troubled) {
		for i := len(lines) - maxLines - 1; i >= 0; i-- {
			if troubled(lines[i]) { // what was said after it is how the program ended in order
				return append([]string{lines[i]}, end[1:]...)
			}
		}
	}
	return end
}

// Tail returns the last lines of a log as formatted by [LogLines], at most the given number.
func Tail(data []byte, most int) []string {
	lines := harmlessLines(data)
	return lines[max(0, len(lines)-most):]
}

// harmlessLines are the lines of a log without control characters, and without what looks like a secret.
func harmlessLines(data []byte) (lines []string) {
	clean := escapes.ReplaceAllString(strings.ToValidUTF8(string(data), "\uFFFD"), "")
	for line := range strings.SplitSeq(redact(clean), "\n") {
		indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		if line = text.Line(line); line != "" {
			lines = append(lines, text.Ends(strings.Repeat(" ", min(len(indent), 8))+line, maxLine))
		}
	}
	return lines
}

// escapes are sequences that color a terminal, or change it otherwise.
var escapes = regexp.MustCompile(`\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[@-Z\\^_])`)

// secrets are what looks like one. The last group is what is left out.
var secrets = []*regexp.Regexp{
	regexp.MustCompile(`(?is)-----BEGIN [A-Z ]*PRIVATE KEY-----(.*?)(?:-----END|\z)`),
	regexp.MustCompile(`(?i)\b(?:authorization["']?\s*[:=]\s*["']?(?:bearer|basic|token)?|bearer|basic)\s+([A-Za-z0-9+/=_.~-]{8,})`),
	regexp.MustCompile(`(?i)[a-z][a-z0-9+.-]*://[^\s:/@]*:([^\s/@]+)@`),
	regexp.MustCompile(`(?i)(?:^|[^/a-z0-9_.-])[a-z0-9_.-]*(?:password|passwd|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credential)[a-z0-9_.-]*["']?\s*(?:=|:)\s*["']?([^\s"',;&]+)`),
	regexp.MustCompile(`\b((?:AKIA|ASIA)[0-9A-Z]{16})\b`),
	regexp.MustCompile(`\b(gh[pousr]_[A-Za-z0-9]{20,}|xox[abposr]-[A-Za-z0-9-]{10,}|sk-[A-Za-z0-9_-]{20,}|glpat-[A-Za-z0-9_-]{16,})`),
	regexp.MustCompile(`\b(eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*)`),
}

// redact leaves out what looks like a secret.
func redact(s string) string {
	for _, pattern := range secrets {
		var b strings.Builder
		end := 0
		for _, m := range pattern.FindAllStringSubmatchIndex(s, -1) {
			if m[2] < end {
				continue
			}
			b.WriteString(s[end:m[2]])
			b.WriteString("[redacted]")
			end = m[3]
		}
		s = b.String() + s[end:]
	}
	return s
}

var (
	// trouble is what lines have that name a failure.
	trouble = regexp.MustCompile(`(?i)\b(fatal|panic|error|missing|unrecognized|unknown|unexpected|undefined|mismatch|expired|not permitted|timed out|timeout|exception|failed|failure|refused|denied|cannot|can't|could not|unable|no such|not found|invalid|caused by|killed|abort\w*|traceback)\b|Error:|Exception:`)
	// trace is a line of a stack trace, which says where and not what.
	trace = regexp.MustCompile(`^\s+|^(?:at |goroutine \d|Traceback |created by |\.\.\. \d+ more|exit status \d)|^[\w./*()-]+\(.*\)$|^\[signal `)
)

// pointer is a line that only says that there was trouble, and where to read about it.
var pointer = regexp.MustCompile(`(?i)^emitted 'error' event|did not exit normally|\bcheck the logs?\b|log of this run can be found|\baborting\.?$|\bshutting down\b|failed to boot\b|\bcaches? to (?:sync|be synced)\b|\bexited with code \d+\.?$|\bsee (?:the )?(?:logs?|above)\b`)

// troubled reports whether a line names trouble, and is no line of a stack trace.
func troubled(line string) bool { return !trace.MatchString(line) && trouble.MatchString(line) }

// dated is a time at the beginning of a line, and what klog writes there.
var dated = regexp.MustCompile(`^(?:\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z| ?[+-]\d\d:?\d\d| UTC)?\]?|[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [\w.-]+:\d+\]) +`)

// undated returns a line without its leading timestamp: the sentence has the time of the end
// already.
func undated(line string) string {
	if rest := dated.ReplaceAllString(line, ""); strings.TrimSpace(rest) != "" {
		return rest
	}
	return line
}

// telling is the line that says most about a failure: the last line that names trouble, or else the last line.
func telling(lines []string) string {
	if line := analyzed(lines); line != "" {
		return shorten(redact(line))
	}
	last, points := "", ""
	for i := len(lines) - 1; i >= 0; i-- {
		line := strings.TrimRight(lines[i], " \t\r")
		if strings.TrimSpace(line) == "" {
			continue
		}
		if last == "" {
			last = line
		}
		if troubled(line) && !pointer.MatchString(line) {
			return shorten(redact(undated(line)))
		}
		if troubled(line) && points == "" {
			points = line
		}
	}
	if points != "" {
		last = points
	}
	return shorten(redact(undated(last)))
}

// analyzed returns Spring Boot's description of a failure, which is followed by the reason and advice in the log, or empty.
func analyzed(lines []string) string {
	failed, described := false, false
	for _, line := range lines {
		switch line = strings.TrimSpace(line); {
		case line == "APPLICATION FAILED TO START":
			failed = true
		case failed && line == "Description:":
			described = true
		case described && line != "":
			return line
		}
	}
	return ""
}

// logs are the ends of the logs of runs that failed.
func logs(f Facts) []Log {
	var list []Log
	inits, regular := f.containers()
	for _, c := range append(inits, regular...) {
		if c.Log != nil && len(c.Log.Lines) > 0 && c.status != nil && !c.status.Ready {
			l := *c.Log
			l.Container = c.spec.Name
			list = append(list, l)
		}
	}
	return list
}

// FailedRun reports whether the log of a container shows why its pod is not Ready, and whether that log is from the previous
// run. Wanted are the logs of failed runs, and of a running init container for which the other containers wait.
func (f Facts) FailedRun(container string) (wanted, previous bool) {
	inits, regular := f.containers()
	for _, c := range append(inits, regular...) {
		switch {
		case c.spec.Name != container || c.status == nil || c.status.Ready:
		case c.status.State.Running != nil && c.kind == podrules.KindInitContainer && !c.sidecar:
			return true, false
		case c.status.State.Terminated != nil:
			return c.status.State.Terminated.ExitCode != 0, false
		case c.status.LastTerminationState.Terminated != nil:
			return c.status.LastTerminationState.Terminated.ExitCode != 0, true
		}
	}
	return false, false
}

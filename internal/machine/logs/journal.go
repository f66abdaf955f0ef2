package logs

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// journal reads units of systemd's journal by way of journalctl. Its position is the cursor of the last
// entry.
type journal struct {
	command string            // journalctl
	args    []string          // more arguments, such as --directory
	units   map[string]Origin // by the name of the unit
	kernel  bool              // the lines of the kernel, too

	filter   *prefilter
	throttle throttle
	now      func() time.Time
}

// listOfBytes begins a text that is no UTF-8, in which no other text can be searched for.
var listOfBytes = []byte(`"MESSAGE":[`)

func (j *journal) name() string { return "journal" }

func (j *journal) read(ctx context.Context, position string, take func(batch)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, j.command, j.arguments(position)...)
	cmd.WaitDelay = 2 * time.Second
	var complaint bytes.Buffer
	cmd.Stderr = &limited{&complaint, 4 << 10}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	limit := j.throttle
	limit.spent = func() time.Duration { // journalctl waits while its pipe is full
		spent := j.throttle.spent()
		if cmd.Process != nil {
			spent += processTime(cmd.Process.Pid)
		}
		return spent
	}
	limit.begin()
	if err := cmd.Start(); err != nil {
		return err
	}
	err = j.follow(ctx, out, position, take, &limit)
	ended := ctx.Err() != nil
	cancel()
	waited := cmd.Wait()
	switch {
	case ended:
		return nil
	case err != nil:
		return err
	case complaint.Len() > 0:
		if position != "" && strings.Contains(complaint.String(), "cursor") {
			return &lostPosition{strings.TrimSpace(complaint.String())}
		}
		return fmt.Errorf("%s: %s", j.command, strings.TrimSpace(complaint.String()))
	case waited != nil:
		return fmt.Errorf("%s: %w", j.command, waited)
	}
	return fmt.Errorf("%s has ended", j.command)
}

func (j *journal) arguments(position string) []string {
	args := append([]string{"--output=json", "--follow", "--all", "--no-pager", "--quiet",
		"--output-fields=MESSAGE,UNIT,_SYSTEMD_UNIT,_TRANSPORT,_PID"}, j.args...)
	if position != "" {
		// --after-cursor would skip the first existing entry after the cursor's entry was vacuumed.
		args = append(args, "--lines=all", "--cursor="+position)
	} else {
		args = append(args, "--since=-"+strconv.Itoa(int(lookback.Seconds()))+"s")
	}
	units := make([]string, 0, len(j.units))
	for unit := range j.units {
		units = append(units, unit)
	}
	slices.Sort(units)
	for i, unit := range units { // "+" is or: what a unit logs, and what systemd logs about it
		if i > 0 {
			args = append(args, "+")
		}
		args = append(args, "_SYSTEMD_UNIT="+unit, "+", "_PID=1", "UNIT="+unit)
	}
	if len(units) > 0 {
		args = append(args, "+", "_TRANSPORT=driver", "MESSAGE_ID="+suppressed)
	}
	if j.kernel {
		if len(units) > 0 {
			args = append(args, "+")
		}
		args = append(args, "_TRANSPORT=kernel")
	}
	return args
}

// suppressed is the ID of the message by which journald says that a unit has logged more than its rate limit allows. Only
// journald itself has the transport driver.
const suppressed = "a596d6fe7bfa4994828e72309e95d61e"

var suppressedLines = regexp.MustCompile(`^Suppressed (\d+) messages from (\S+)$`)

// lost is how many lines of a unit journald has not taken, by its message.
func (j *journal) lost(e entry) (n int, origin Origin) {
	if e.Transport != "driver" {
		return 0, ""
	}
	m := suppressedLines.FindStringSubmatch(textOf(e.Message))
	if m == nil {
		return 0, ""
	}
	unit := m[2]
	if i := strings.LastIndexByte(unit, '/'); i >= 0 { // a path of control groups
		unit = unit[i+1:]
	}
	n, err := strconv.Atoi(m[1])
	if err != nil || j.units[unit] == "" {
		return 0, ""
	}
	return n, j.units[unit]
}

// follow reads entries after a position, as many as there are in one go.
func (j *journal) follow(ctx context.Context, out io.Reader, position string, take func(batch), limit *throttle) error {
	in := bufio.NewReaderSize(out, chunkSize)
	for {
		text, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) { // an entry of more than a chunk
			if err := skipLine(in); err != nil {
				return ignoreEnd(err)
			}
			take(batch{origin: ServiceState, count: 1, lost: 1})
			limit.worked(ctx)
			continue
		}
		if err != nil {
			return ignoreEnd(err)
		}
		b := batch{}
		for {
			if position == "" || cursorOf(text) != position { // that one was read before
				j.add(&b, text)
			}
			if !bytes.ContainsRune(peek(in), '\n') {
				break
			}
			if text, err = in.ReadSlice('\n'); err != nil {
				return ignoreEnd(err)
			}
		}
		take(b)
		if !limit.worked(ctx) {
			return nil
		}
	}
}

// peek is what can be read without waiting.
func peek(in *bufio.Reader) []byte {
	data, _ := in.Peek(in.Buffered())
	return data
}

func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func skipLine(in *bufio.Reader) error {
	for {
		_, err := in.ReadSlice('\n')
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// entry is what counts of an entry of the journal. Texts that are no UTF-8 come as lists of bytes.
type entry struct {
	Cursor    string          `json:"__CURSOR"`
	Micros    string          `json:"__REALTIME_TIMESTAMP"`
	Message   json.RawMessage `json:"MESSAGE"`
	Unit      string          `json:"UNIT"`
	From      string          `json:"_SYSTEMD_UNIT"`
	Transport string          `json:"_TRANSPORT"`
	PID       string          `json:"_PID"`
}

// add reads an entry if a rule may match it. For other entries it only advances the position.
func (j *journal) add(b *batch, text []byte) {
	b.count++
	if cursor := cursorOf(text); cursor != "" {
		b.position = cursor
	}
	if !j.filter.has(text) {
		return
	}
	var e entry
	if json.Unmarshal(text, &e) != nil {
		return
	}
	if n, origin := j.lost(e); n > 0 {
		b.lost, b.origin = b.lost+n, origin
		return
	}
	origin, ok := j.origin(e)
	if !ok {
		return
	}
	message := textOf(e.Message)
	if message == "" {
		return
	}
	at := j.now()
	if micros, err := strconv.ParseInt(e.Micros, 10, 64); err == nil {
		at = time.UnixMicro(micros)
	}
	b.lines = append(b.lines, line{origin: origin, at: at, text: bounded(message), id: e.Cursor})
}

// origin is the writer of an entry. Fields that begin with an underscore come from the journal itself and
// cannot be faked.
func (j *journal) origin(e entry) (Origin, bool) {
	if e.Transport == "kernel" {
		return Kernel, j.kernel
	}
	if _, ours := j.units[e.Unit]; ours && e.PID == "1" {
		return ServiceState, true
	}
	origin, ok := j.units[e.From]
	return origin, ok
}

var cursorKey = []byte(`"__CURSOR":"`)

// cursorOf finds the cursor without decoding the entry.
func cursorOf(text []byte) string {
	i := bytes.Index(text, cursorKey)
	if i < 0 {
		return ""
	}
	rest := text[i+len(cursorKey):]
	end := bytes.IndexByte(rest, '"')
	if end < 0 {
		return ""
	}
	return string(rest[:end])
}

// textOf is a text, or a list of bytes, or nothing.
func textOf(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var numbers []int
	if json.Unmarshal(raw, &numbers) != nil {
		return ""
	}
	data := make([]byte, len(numbers))
	for i, n := range numbers {
		data[i] = byte(n)
	}
	return strings.ToValidUTF8(string(data), "\uFFFD")
}

// bounded cuts a line.
func bounded(text string) string {
	if len(text) > maxLine {
		text = text[:maxLine]
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// limited writes the first bytes of its input.
type limited struct {
	w    io.Writer
	left int
}

func (l *limited) Write(data []byte) (int, error) {
	if n := min(len(data), l.left); n > 0 {
		l.w.Write(data[:n])
		l.left -= n
	}
	return len(data), nil
}

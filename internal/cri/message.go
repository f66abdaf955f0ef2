package cri

import (
	"cmp"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/statusd/statusd/internal/logfile"
	"github.com/statusd/statusd/runtime"
)

// terminationLog is the file of a container's termination message.
func terminationLog(dir string) string { return filepath.Join(dir, "termination-log") }

// message is what the container and the container runtime report about an end.
func (c *container) message(s *runtimeapi.ContainerStatus) string {
	own := readMessage(cmp.Or(c.messageFile, terminationLog(c.dir)))
	if own == "" && c.fromLog && s.ExitCode != 0 {
		own, _ = logfile.Tail(c.log) // a container without a log has none
	}
	switch {
	case s.Message == "":
		return own
	case own == "":
		return cut(s.Message)
	}
	return cut(s.Message + ": " + own)
}

// readMessage reads the beginning of a file that the container can write, and replace by anything.
func readMessage(path string) string {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0) // a named pipe would block
	if err != nil {
		return ""
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	data, err := io.ReadAll(io.LimitReader(file, runtime.MaxMessageBytes+4))
	if err != nil {
		return ""
	}
	return cut(string(data))
}

// cut shortens a message to the API's limit, between two runes. Invalid UTF-8 is replaced: the API would reject or change it.
func cut(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= runtime.MaxMessageBytes {
		return text
	}
	end := runtime.MaxMessageBytes
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

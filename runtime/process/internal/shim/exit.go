package shim

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/statusd/statusd/internal/logfile"
	"github.com/statusd/statusd/runtime/process/internal/record"
)

// startFailed is the exit of a container whose command did not start.
func startFailed(err error) record.Exit {
	return record.Exit{
		ExitCode: ExitCodeStartError, Reason: ReasonStartError,
		Message: logfile.LastBytes(err.Error(), MaxMessageBytes), FinishedAt: time.Now(),
	}
}

// ended is the exit of a container whose command ended with this status.
func (s *shim) ended(status syscall.WaitStatus, at time.Time, oomKilled bool) record.Exit {
	exit := record.Exit{ExitCode: int32(status.ExitStatus()), StartedAt: s.state.Started.At, FinishedAt: at, Reason: ReasonCompleted}
	if status.Signaled() {
		exit.Signal = int32(status.Signal())
		exit.ExitCode = 128 + exit.Signal
	}
	if exit.ExitCode != 0 {
		exit.Reason = ReasonError
		if oomKilled {
			exit.Reason = ReasonOOMKilled
		}
	}
	message, err := lastOfFile(s.dir.TerminationLog(), MaxMessageBytes)
	if err != nil {
		message = fmt.Sprintf("Error on reading termination log: %v", err)
	}
	if s.spec.MessageFromLogs && exit.ExitCode != 0 {
		message = cmp.Or(message, s.log.Tail())
	}
	exit.Message = message
	return exit
}

// lastOfFile reads the end of a file that the container may have made into anything.
func lastOfFile(path string, n int) (string, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", path)
	}
	// One rune more than needed: the beginning may be half of one.
	most := int64(n + utf8.UTFMax)
	data, err := io.ReadAll(io.NewSectionReader(file, max(0, info.Size()-most), most))
	return logfile.LastBytes(string(data), n), err
}

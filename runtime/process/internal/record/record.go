// Package record is what the process runtime and its shims tell each other and the
// next start of statusd: small JSON files, one directory per container.
//
// Each file has one writer and is replaced whole, so that a reader sees all of it or
// nothing. A file names its format and carries a checksum: see seal.
package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/statusd/statusd/internal/proc"
)

// Spec is the container that a shim runs, complete and resolved. The runtime writes it, durably,
// before the shim is started.
type Spec struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Attempt   int       `json:"attempt"`
	CreatedAt time.Time `json:"createdAt"`
	// Boot is the boot of the machine in which the container was created.
	Boot string `json:"boot,omitempty"`

	Command []string `json:"command"`
	Env     []string `json:"env"`
	Dir     string   `json:"dir"`
	User    *User    `json:"user,omitempty"`

	View        *View        `json:"view,omitempty"`
	Confinement *Confinement `json:"confinement,omitempty"`
	// Cgroup are the directories of the control groups that hold the container: one
	// with cgroup v2, one for each controller with v1. The runtime makes them before
	// the shim starts and removes them after the end; the shim puts the command into
	// them before it is executed, kills what they hold when the command has ended, and
	// looks there whether the kernel killed it for its memory. None is right as well.
	Cgroup []string `json:"cgroup,omitempty"`

	// Stdin keeps the input of the command open for clients, until the first one has ended if
	// StdinOnce. TTY connects the command to a terminal.
	Stdin     bool `json:"stdin,omitempty"`
	StdinOnce bool `json:"stdinOnce,omitempty"`
	TTY       bool `json:"tty,omitempty"`

	StopSignal  int   `json:"stopSignal"`
	LogMaxBytes int64 `json:"logMaxBytes"`
	LogMaxFiles int   `json:"logMaxFiles"`
	// MessageFromLogs takes the end of the log as termination message of a container
	// that failed without writing one.
	MessageFromLogs bool `json:"messageFromLogs,omitempty"`
}

// View is the difference between the file system of the machine and the container's view of it.
type View struct {
	Mounts       []Mount `json:"mounts,omitempty"`
	ReadOnlyRoot bool    `json:"readOnlyRoot,omitempty"`
	Hostname     string  `json:"hostname,omitempty"`
}

// Mount is a file or directory of the machine that is mounted at another path, or at its own path
// with other options.
type Mount struct {
	Source string `json:"source"`
	// Within is the directory of the volume that Source is in: links below it that lead out of
	// it are not followed. Without one the whole path is the machine's.
	Within   string `json:"within,omitempty"`
	Target   string `json:"target"`
	ReadOnly bool   `json:"readOnly,omitempty"`
	// Optional leaves the mount out if no place can be made for it.
	Optional bool `json:"optional,omitempty"`
	// Inside is the target of another mount that holds this one's. What is missing of the
	// target is made in it.
	Inside string `json:"inside,omitempty"`
}

// Confinement has the restrictions of a container.
type Confinement struct {
	// NoNewPrivileges disables set-user-ID programs and file capabilities.
	NoNewPrivileges bool `json:"noNewPrivileges,omitempty"`
	// Capabilities are the bits of the allowed capabilities; nil keeps the capabilities of the
	// user.
	Capabilities *uint64 `json:"capabilities,omitempty"`
	// Seccomp denies system calls that change the machine.
	Seccomp bool `json:"seccomp,omitempty"`
}

// User is the user of a container, if not statusd's own user.
type User struct {
	UID    uint32   `json:"uid"`
	GID    uint32   `json:"gid"`
	Groups []uint32 `json:"groups,omitempty"`
}

// Started records that the command runs. Written by the shim.
type Started struct {
	Main proc.ID   `json:"main"`
	At   time.Time `json:"at"`
}

// Stop requests the shim to end the container. It is sent over the control socket, and written by
// the runtime only if the socket cannot be used.
type Stop struct {
	Grace time.Duration `json:"grace"`
}

// Exit records how the container ended. The shim writes it, durably, when no process of the
// container runs any more; the runtime writes it if the shim ended before that.
type Exit struct {
	ExitCode   int32     `json:"exitCode"`
	Signal     int32     `json:"signal,omitempty"`
	Reason     string    `json:"reason"`
	Message    string    `json:"message,omitempty"`
	StartedAt  time.Time `json:"startedAt,omitzero"`
	FinishedAt time.Time `json:"finishedAt"`
}

// Dir is the directory of one container.
type Dir string

func (d Dir) path(name string) string { return filepath.Join(string(d), name) }

// Spec is the path of the file of a [Spec], Shim of the shim's [proc.ID], and so on.
func (d Dir) Spec() string           { return d.path("spec.json") }
func (d Dir) Shim() string           { return d.path("shim.json") }
func (d Dir) Started() string        { return d.path("started.json") }
func (d Dir) Stop() string           { return d.path("stop.json") }
func (d Dir) Exit() string           { return d.path("exit.json") }
func (d Dir) TerminationLog() string { return d.path("termination-log") }
func (d Dir) Logs() string           { return d.path("logs") }
func (d Dir) ShimLog() string        { return d.path("shim.log") }

// Control is the socket on which the shim receives requests and reports states.
func (d Dir) Control() string { return d.path("control.sock") }

// Attach is the socket on which the shim connects clients to the container's streams.
func (d Dir) Attach() string { return d.path("attach.sock") }

// Discard removes the directory of a container that was never started. Discard removes only files with
// names of this package.
func (d Dir) Discard() error {
	own := []string{d.Control(), d.Attach(), d.TerminationLog(), d.ShimLog(), filepath.Join(d.Logs(), "log"), d.Logs(), d.Shim(), d.Spec()}
	for _, path := range append(own, string(d)) {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// tempPrefix starts the names of files that are not complete.
const tempPrefix = ".tmp-"

// Write replaces a file, atomically but not durably: for records that are invalid after a reboot
// anyway.
func Write(path string, value any) error { return write(path, value, false) }

// WriteDurably replaces a file so that it survives a power loss: file and directory are
// synced before it returns.
func WriteDurably(path string, value any) error { return write(path, value, true) }

func write(path string, value any, durably bool) error {
	data, err := seal(filepath.Base(path), value)
	if err != nil {
		return fmt.Errorf("record %s: %w", path, err)
	}
	temp, err := writeTemp(filepath.Dir(path), data, durably)
	if err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	if !durably {
		return nil
	}
	return SyncDir(filepath.Dir(path))
}

func writeTemp(dir string, data []byte, durably bool) (name string, err error) {
	file, err := os.CreateTemp(dir, tempPrefix+"*")
	if err != nil {
		return "", err
	}
	defer func() {
		err = errors.Join(err, file.Close())
		if err != nil {
			os.Remove(file.Name()) // the error that led here counts; New removes what stays
		}
	}()
	if _, err := file.Write(data); err != nil {
		return "", err
	}
	if durably {
		if err := file.Sync(); err != nil {
			return "", err
		}
	}
	return file.Name(), nil
}

// SyncDir makes the names in a directory durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// RemoveTemps removes the incomplete files that a crash left in a directory.
func RemoveTemps(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), tempPrefix) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

package datadir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Paths in a data directory.
const (
	addressFile         = "address"
	adminKubeconfigFile = "admin.kubeconfig"
	etcdDirectory       = "etcd"
	lockFile            = "lock"
	logFile             = "controlplane.log"
	pkiDirectory        = "pki"
	portFile            = "port"
)

// ErrInUse says that another process serves from the directory.
var ErrInUse = errors.New("in use")

// Dir is a data directory. Its methods may be called from any goroutine.
type Dir struct {
	path string
	lock *os.File // nil: opened for reading beside a server
}

// Open creates the directory if it is missing and locks it for this process until Close.
func Open(path string) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("data directory %s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Join(path, pkiDirectory), 0o700); err != nil {
		return nil, fmt.Errorf("data directory %s cannot be created: %w", path, err)
	}
	lock, err := acquire(path)
	if err != nil {
		return nil, err
	}
	return &Dir{path: path, lock: lock}, nil
}

// Existing is the directory without the lock, for reading beside the server that holds it.
func Existing(path string) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("data directory %s: %w", path, err)
	}
	d := &Dir{path: path}
	if _, err := os.Stat(d.join(portFile)); err != nil {
		return nil, fmt.Errorf("no control plane has run in data directory %s: start one with controlplane --data-dir %s", path, path)
	}
	return d, nil
}

func acquire(dir string) (*os.File, error) {
	path := filepath.Join(dir, lockFile)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data directory %s cannot be locked: %w", dir, err)
	}
	switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		defer f.Close()
		return nil, fmt.Errorf("data directory %s is %w by another control plane%s: stop it or choose another --data-dir", dir, ErrInUse, holder(path))
	case err != nil:
		defer f.Close()
		return nil, fmt.Errorf("data directory %s cannot be locked: %w", dir, err)
	}
	// The number only serves the message above; the lock is the kernel's.
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return f, nil
}

func holder(lockPath string) string {
	pid, err := os.ReadFile(lockPath)
	if err != nil || len(pid) == 0 {
		return ""
	}
	return " (process " + strings.TrimSpace(string(pid)) + ")"
}

// Close releases the lock. The lock file stays: removing it would let two processes lock two files.
func (d *Dir) Close() error {
	if d.lock == nil {
		return nil
	}
	return d.lock.Close()
}

func (d *Dir) join(name string) string { return filepath.Join(d.path, name) }

// Path is the directory itself, absolute.
func (d *Dir) Path() string { return d.path }

// Etcd is the directory of etcd's write-ahead log and database.
func (d *Dir) Etcd() string { return d.join(etcdDirectory) }

// PKI is the directory of keys and certificates.
func (d *Dir) PKI() string { return d.join(pkiDirectory) }

// Log is the file that receives what the API server and etcd log.
func (d *Dir) Log() string { return d.join(logFile) }

// AdminKubeconfig is the file that lets kubectl in as an administrator.
func (d *Dir) AdminKubeconfig() string { return d.join(adminKubeconfigFile) }

// ComponentKubeconfig is the file that a component of the control plane, such as kube-scheduler, connects with.
func (d *Dir) ComponentKubeconfig(component string) string { return d.join(component + ".kubeconfig") }

// Port is the port that this directory was last served at, 0 if it never was.
func (d *Dir) Port() (int, error) {
	text, err := os.ReadFile(d.join(portFile))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("remembered port: %w", err)
	}
	port, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 16)
	if err != nil || port == 0 {
		return 0, fmt.Errorf("remembered port: %s holds %q, not a port: remove the file or pass --port", d.join(portFile), text)
	}
	return int(port), nil
}

// SetPort remembers the port, so that the next start on this directory is found by the same clients.
func (d *Dir) SetPort(port int) error {
	return WriteFile(d.join(portFile), []byte(strconv.Itoa(port)+"\n"), 0o600)
}

// SetAddress publishes the address of a server that is ready.
func (d *Dir) SetAddress(address string) error {
	return WriteFile(d.join(addressFile), []byte(address+"\n"), 0o600)
}

// ClearAddress removes the address: the server is not ready there, or no longer.
func (d *Dir) ClearAddress() error {
	if err := os.Remove(d.join(addressFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("published address: %w", err)
	}
	return nil
}

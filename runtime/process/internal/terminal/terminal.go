// Package terminal makes pseudoterminals: what is written to the master is read from the slave
// as if it was typed, and the other way round.
package terminal

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Open returns the two ends of a new terminal. The master can wait with deadlines. The slave
// belongs to a user, so that a process of this user can open it again by its name.
func Open(owner *syscall.Credential) (master, slave *os.File, err error) {
	master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	slave, err = openSlave(master)
	if err == nil && owner != nil {
		err = slave.Chown(int(owner.Uid), -1) // all terminals have this group
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("terminal: %w", err), master.Close(), slave.Close())
	}
	return master, slave, nil
}

func openSlave(master *os.File) (slave *os.File, err error) {
	controlErr := control(master, func(fd int) {
		if err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
			return
		}
		// By its master: its name may mean another one where /dev/pts is another one.
		peer, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
		if errno != 0 {
			err = errno
			return
		}
		slave = os.NewFile(peer, "terminal")
	})
	return slave, errors.Join(controlErr, err)
}

// Resize sets the size of a terminal in characters; the kernel sends SIGWINCH to its processes.
func Resize(master *os.File, width, height uint16) (err error) {
	controlErr := control(master, func(fd int) {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: width, Row: height})
	})
	return errors.Join(controlErr, err)
}

// control uses the descriptor of a file without making it one that blocks.
func control(file *os.File, use func(fd int)) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Control(func(fd uintptr) { use(int(fd)) })
}

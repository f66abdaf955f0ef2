package control

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The messages between a shim and an attached client. Each message begins with one of these bytes.
const (
	// Stdout and Stderr are output of the container.
	Stdout byte = 1
	Stderr byte = 2
	// End is the last message: the container has ended.
	End byte = 3
	// Attached is sent before the first output: all later output of the container follows.
	Attached byte = 4

	// Attach is the first message of a client: with one more byte, 1 if it has input.
	Attach byte = 11
	// Stdin is input, and StdinEnd its end.
	Stdin    byte = 12
	StdinEnd byte = 13
	// Resize is a new size of the terminal: width and height, two bytes each.
	Resize byte = 14
)

// MaxFrame is the maximum length of a message of an attached client.
const MaxFrame = 32<<10 + 1

// Connection is a connection of an attached client, at either end. One goroutine may receive
// while another sends.
type Connection struct {
	file *os.File
	raw  syscall.RawConn
}

// NewConnection takes ownership of a non-blocking descriptor.
func NewConnection(fd int) (*Connection, error) {
	file := os.NewFile(uintptr(fd), "attach")
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, err
	}
	return &Connection{file, raw}, nil
}

// Close makes the other end receive io.EOF, and ends blocked calls.
func (c *Connection) Close() error { return c.file.Close() }

// Send waits until the other end has room, at most for timeout if timeout is not 0.
func (c *Connection) Send(timeout time.Duration, kind byte, data []byte) error {
	if timeout > 0 {
		if err := c.file.SetWriteDeadline(time.Now().Add(timeout)); err != nil {
			return err
		}
	}
	var err error
	waitErr := c.raw.Write(func(fd uintptr) bool {
		_, err = unix.SendmsgBuffers(int(fd), [][]byte{{kind}, data}, nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		return !errors.Is(err, unix.EAGAIN)
	})
	return errors.Join(waitErr, err)
}

// Receive waits for a message. Receive returns io.EOF when the other end has closed the connection.
func (c *Connection) Receive(buffer []byte) (kind byte, data []byte, err error) {
	var n int
	waitErr := c.raw.Read(func(fd uintptr) bool {
		n, _, err = unix.Recvfrom(int(fd), buffer, unix.MSG_DONTWAIT)
		return !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR)
	})
	switch {
	case waitErr != nil:
		return 0, nil, waitErr
	case errors.Is(err, unix.ECONNRESET) || (err == nil && n == 0):
		return 0, nil, io.EOF
	case err != nil:
		return 0, nil, err
	}
	return buffer[0], buffer[1:n], nil
}

// Size encodes the data of a [Resize].
func Size(width, height uint16) []byte {
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, width), height)
}

// ParseSize decodes the data of a [Resize].
func ParseSize(data []byte) (width, height uint16, ok bool) {
	if len(data) != 4 {
		return 0, 0, false
	}
	return binary.BigEndian.Uint16(data), binary.BigEndian.Uint16(data[2:]), true
}

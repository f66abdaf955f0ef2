package collect

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/statusd/statusd/guard"
)

func (c *Collector) askProcess(ctx context.Context, now time.Time) (again bool) {
	process, err := c.o.Service.State(ctx)
	fact := guard.Read(now, process)
	if err != nil {
		fact = guard.NotKnown[guard.Process](now, err.Error())
	}
	c.set(func(e *guard.Evidence) { e.Process = fact })
	return false
}

func (c *Collector) askDisk(_ context.Context, now time.Time) (again bool) {
	fact := guard.NotKnown[guard.Disk](now, "")
	var fs unix.Statfs_t
	if err := unix.Statfs(c.o.Root, &fs); err != nil {
		fact.Why = fmt.Sprintf("%s: %v", c.o.Root, err)
	} else {
		size := uint64(fs.Bsize)
		fact = guard.Read(now, guard.Disk{
			Free: fs.Bfree * size, Total: fs.Blocks * size, InodesFree: fs.Ffree, Inodes: fs.Files,
			ReadOnly: fs.Flags&unix.ST_RDONLY != 0,
		})
	}
	c.set(func(e *guard.Evidence) { e.Disk = fact })
	return false
}

func (c *Collector) askCertificate(_ context.Context, now time.Time) (again bool) {
	expires, err := certificateExpiry(c.o.Certificate)
	fact := guard.Read(now, expires)
	if err != nil {
		fact = guard.NotKnown[time.Time](now, err.Error())
	}
	c.set(func(e *guard.Evidence) { e.Certificate = fact })
	return false
}

// maxCertificate is far more than a certificate with its key and chain takes.
const maxCertificate = 1 << 20

// certificateExpiry is when the first certificate of a file expires. The file may have the key too.
func certificateExpiry(path string) (time.Time, error) {
	file, err := os.Open(path)
	if err != nil {
		return time.Time{}, err
	}
	defer file.Close()
	rest, err := io.ReadAll(io.LimitReader(file, maxCertificate))
	if err != nil {
		return time.Time{}, err
	}
	expires, err := CertificateExpiry(rest)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s: %w", path, err)
	}
	return expires, nil
}

// CertificateExpiry is when the first certificate of some PEM blocks expires.
func CertificateExpiry(rest []byte) (time.Time, error) {
	for block := (*pem.Block)(nil); ; {
		if block, rest = pem.Decode(rest); block == nil {
			return time.Time{}, errors.New("no certificate")
		}
		if block.Type == "CERTIFICATE" {
			certificate, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return time.Time{}, err
			}
			return certificate.NotAfter, nil
		}
	}
}

func (c *Collector) askBehind(_ context.Context, now time.Time) (again bool) {
	fact := c.o.Behind(now)
	c.set(func(e *guard.Evidence) { e.Behind = fact })
	return false
}

func (c *Collector) askShutdown(_ context.Context, now time.Time) (again bool) {
	fact := guard.Read(now, c.o.ShuttingDown())
	c.set(func(e *guard.Evidence) { e.ShuttingDown = fact })
	return false
}

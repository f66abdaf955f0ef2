package collect

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/statusd/statusd/internal/bounded"
	"github.com/statusd/statusd/internal/diskspace"
	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/hostproc"
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

func (c *Collector) askDisk(ctx context.Context, now time.Time) (again bool) {
	fact := guard.NotKnown[guard.Disk](now, "")
	var space diskspace.Space
	if err := c.disk.Do(ctx, func() (err error) { space, err = c.space(c.o.Root); return err }); err != nil {
		fact.Why = fmt.Sprintf("%s: %v", c.o.Root, err)
	} else {
		fact = guard.Read(now, guard.Disk{Free: space.Free, Total: space.Total, InodesFree: space.InodesFree, Inodes: space.Inodes, ReadOnly: space.ReadOnly})
	}
	c.set(func(e *guard.Evidence) { e.Disk = fact })
	return false
}

func (c *Collector) askCertificate(ctx context.Context, now time.Time) (again bool) {
	var expires time.Time
	err := c.certificate.Do(ctx, func() (err error) {
		expires, err = certificateExpiry(c.o.HostRoot, c.o.Certificate)
		return err
	})
	var fact guard.Fact[time.Time]
	switch {
	case err == nil:
		fact = guard.Read(now, expires)
	case errors.Is(err, bounded.ErrHangs):
		fact = guard.NotKnown[time.Time](now, fmt.Sprintf("%s: %v", c.o.Certificate, err))
	default:
		fact = guard.NotKnown[time.Time](now, err.Error())
	}
	c.set(func(e *guard.Evidence) { e.Certificate = fact })
	return false
}

// maxCertificate is far more than a certificate with its key and chain takes.
const maxCertificate = 1 << 20

// certificateExpiry is when the first certificate of a file expires. The file may have the key too, or it is a kubeconfig that
// has the certificate or names its file.
func certificateExpiry(root, path string) (time.Time, error) {
	data, err := readBounded(root, path)
	if err != nil {
		return time.Time{}, err
	}
	expires, err := CertificateExpiry(data)
	if errors.Is(err, errNoCertificate) {
		var file string
		if data, file, err = certificateOfKubeconfig(data, filepath.Dir(path)); err == nil && file != "" {
			data, err = readBounded(root, file)
		}
		if err == nil {
			expires, err = CertificateExpiry(data)
		}
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("%s: %w", path, err)
	}
	return expires, nil
}

func readBounded(root, path string) ([]byte, error) {
	file, err := hostproc.Open(root, path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxCertificate))
}

// errNoCertificate is the error of a file without a certificate.
var errNoCertificate = errors.New("no certificate")

// certificateOfKubeconfig is the certificate of the user of a kubeconfig in a directory, or the file that has it.
func certificateOfKubeconfig(data []byte, dir string) (certificate []byte, file string, err error) {
	config, err := clientcmd.Load(data)
	if err != nil {
		return nil, "", errNoCertificate // and no kubeconfig either
	}
	var user *clientcmdapi.AuthInfo
	if current := config.Contexts[config.CurrentContext]; current != nil {
		user = config.AuthInfos[current.AuthInfo]
	}
	switch {
	case user == nil:
		return nil, "", errors.New("the kubeconfig has no user for its current context")
	case len(user.ClientCertificateData) > 0:
		return user.ClientCertificateData, "", nil
	case user.ClientCertificate == "":
		return nil, "", errors.New("the user of the kubeconfig has no client certificate")
	case filepath.IsAbs(user.ClientCertificate):
		return nil, user.ClientCertificate, nil
	}
	return nil, filepath.Join(dir, user.ClientCertificate), nil
}

// CertificateExpiry is when the first certificate of some PEM blocks expires.
func CertificateExpiry(rest []byte) (time.Time, error) {
	for block := (*pem.Block)(nil); ; {
		if block, rest = pem.Decode(rest); block == nil {
			return time.Time{}, errNoCertificate
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

func (c *Collector) askShutdown(_ context.Context, now time.Time) (again bool) {
	fact := guard.Read(now, c.o.ShuttingDown())
	c.set(func(e *guard.Evidence) { e.ShuttingDown = fact })
	return false
}

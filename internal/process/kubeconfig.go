package process

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// LoadKubeconfig reads a kubeconfig and the files that it names. LoadKubeconfig sends no request.
func LoadKubeconfig(path string) (*rest.Config, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err == nil {
		// With the contents in place of the files no goroutine of client-go follows them: a process
		// that uses them looks at [KubeconfigDigest].
		err = rest.LoadTLSFiles(config)
	}
	if err == nil {
		config.CertFile, config.KeyFile, config.CAFile = "", "", ""
		_, err = rest.TransportFor(config) // certificates and keys that cannot be used show up here
	}
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", path, err)
	}
	return config, nil
}

// KubeconfigDigest is the digest of a kubeconfig and of the certificates and keys that it names.
func KubeconfigDigest(kubeconfig string) [sha256.Size]byte {
	hash := sha256.New()
	files := []string{kubeconfig}
	if config, err := clientcmd.BuildConfigFromFlags("", kubeconfig); err == nil {
		files = append(files, config.CAFile, config.CertFile, config.KeyFile)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			content = []byte(err.Error())
		}
		part := sha256.Sum256(content)
		hash.Write(part[:])
	}
	return [sha256.Size]byte(hash.Sum(nil))
}

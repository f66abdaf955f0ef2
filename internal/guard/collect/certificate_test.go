package collect

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// The certificate is found in its own file, in a kubeconfig, and in the file that a kubeconfig names.
func TestWhereACertificateIs(t *testing.T) {
	expires := time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)
	file := certificate(t, expires)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := func(dir string, user *clientcmdapi.AuthInfo) string {
		config := clientcmdapi.NewConfig()
		config.Clusters["c"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1"}
		config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
		config.CurrentContext = "x"
		if user != nil {
			config.AuthInfos["u"] = user
		}
		path := filepath.Join(dir, fmt.Sprintf("kubeconfig-%d", time.Now().UnixNano()))
		if err := clientcmd.WriteToFile(*config, path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("neither: [nor"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ path, err string }{
		"its file":                     {path: file},
		"in a kubeconfig":              {path: kubeconfig(t.TempDir(), &clientcmdapi.AuthInfo{ClientCertificateData: data})},
		"named by a kubeconfig":        {path: kubeconfig(t.TempDir(), &clientcmdapi.AuthInfo{ClientCertificate: file})},
		"named by its name alone":      {path: kubeconfig(filepath.Dir(file), &clientcmdapi.AuthInfo{ClientCertificate: filepath.Base(file)})},
		"a kubeconfig with a token":    {path: kubeconfig(t.TempDir(), &clientcmdapi.AuthInfo{Token: "t"}), err: "the user of the kubeconfig has no client certificate"},
		"a kubeconfig without users":   {path: kubeconfig(t.TempDir(), nil), err: "the kubeconfig has no user for its current context"},
		"a kubeconfig, no such file":   {path: kubeconfig(t.TempDir(), &clientcmdapi.AuthInfo{ClientCertificate: "/nowhere.pem"}), err: "/nowhere.pem: no such file"},
		"a kubeconfig that names one":  {path: kubeconfig(t.TempDir(), &clientcmdapi.AuthInfo{ClientCertificate: text}), err: "no certificate"},
		"neither PEM nor a kubeconfig": {path: text, err: "no certificate"},
		"no file":                      {path: "/nowhere", err: "/nowhere: no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := certificateExpiry("", c.path)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) || !strings.Contains(err.Error(), c.path) {
					t.Errorf("got %v, want %s: %s", err, c.path, c.err)
				}
				return
			}
			if err != nil || !got.Equal(expires) {
				t.Errorf("got %v, %v, want %v", got, err, expires)
			}
		})
	}
}

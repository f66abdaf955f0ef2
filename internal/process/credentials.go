package process

import (
	"cmp"
	"context"
	"crypto/sha256"
	"log/slog"
	"time"

	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/internal/wake"
)

// Credentials follows the files of a kubeconfig.
type Credentials struct {
	Kubeconfig string
	// Used is the [KubeconfigDigest] of the credentials in use.
	Used [sha256.Size]byte
	// Use takes others over while the process runs, and reports whether it can: see [Connection.Use]. nil: it cannot.
	Use func(*rest.Config) (bool, error)
	// Reload is called when others can be used only by a process that is set up again; nil: it is only logged.
	Reload func()
	// Busy, if it is set, defers everything while it reports true.
	Busy func() bool
	// Interval is the time between two checks of the files; 5 s if 0.
	Interval time.Duration
	Logger   *slog.Logger
}

// Follow takes over the credentials when the kubeconfig, its authority or its certificate has changed and is usable,
// or triggers a reload, until ctx ends. Unusable changes are logged, and the old credentials stay in force.
func (c Credentials) Follow(ctx context.Context) error {
	seen := c.Used
	wake.Every(ctx, cmp.Or(c.Interval, 5*time.Second), func() {
		now := KubeconfigDigest(c.Kubeconfig)
		if now == seen || c.Busy != nil && c.Busy() {
			return
		}
		if seen = now; now != c.Used && c.changed() { // otherwise a change was taken back
			c.Used = now
		}
	})
	return nil
}

// changed reports whether the credentials were taken over.
func (c Credentials) changed() bool {
	config, err := LoadKubeconfig(c.Kubeconfig)
	used := false
	if err == nil && c.Use != nil {
		used, err = c.Use(config)
	}
	if err != nil {
		c.Logger.Error("changed credentials cannot be used, the old ones stay in force", "err", err)
		return false
	}
	if used {
		c.Logger.Info("credentials changed, using the new ones", "kubeconfig", c.Kubeconfig)
		return true
	}
	if c.Reload == nil {
		c.Logger.Warn("credentials changed; restart to use the new ones", "kubeconfig", c.Kubeconfig)
		return false
	}
	c.Logger.Info("credentials changed, reloading", "kubeconfig", c.Kubeconfig)
	c.Reload()
	return false
}

package daemon

import (
	"cmp"
	"context"
	"crypto/sha256"
	"log/slog"
	"time"
)

// Credentials follows the files of a kubeconfig.
type Credentials struct {
	Kubeconfig string
	// Used is the [KubeconfigDigest] of those that the process has.
	Used [sha256.Size]byte
	// Reload is called when others can be used; nil: it is only logged.
	Reload func()
	// Busy, if it is set, defers everything while it reports true.
	Busy func() bool
	// Interval is how often the files are looked at; 5 s if 0.
	Interval time.Duration
	Logger   *slog.Logger
}

// Follow asks for a reload when the kubeconfig, its authority or its certificate has changed and can be
// used, until ctx ends. Changes that cannot be used are logged, and the old ones stay in force.
func (c Credentials) Follow(ctx context.Context) error {
	seen := c.Used
	ticker := time.NewTicker(cmp.Or(c.Interval, 5*time.Second))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		now := KubeconfigDigest(c.Kubeconfig)
		if now == seen || c.Busy != nil && c.Busy() {
			continue
		}
		if seen = now; now != c.Used { // otherwise a change was taken back
			c.changed()
		}
	}
}

func (c Credentials) changed() {
	if _, err := LoadKubeconfig(c.Kubeconfig); err != nil {
		c.Logger.Error("changed credentials cannot be used, the old ones stay in force", "err", err)
		return
	}
	if c.Reload == nil {
		c.Logger.Warn("credentials changed; restart to use the new ones", "kubeconfig", c.Kubeconfig)
		return
	}
	c.Logger.Info("credentials changed, reloading", "kubeconfig", c.Kubeconfig)
	c.Reload()
}

package alertsetup

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/statusd/statusd/internal/backoff"
)

// interval is how often the files of rules are looked at. Changes of mounted config maps, and of files on
// the network, notify no one, so that a look is what always works; it reads no file.
const interval = 2 * time.Second

// follow reloads the rules when their files change. Rules with mistakes leave those in force as they are.
func (a *Alerting) follow(ctx context.Context) error {
	for backoff.Sleep(ctx, interval) {
		now := a.look()
		if now == a.files {
			continue
		}
		a.files = now
		if err := a.ReloadWith(a.config.Load); err == nil {
			a.log.Info("rules reloaded")
		}
	}
	return nil
}

// look returns a digest of the rule files' names and change times.
func (a *Alerting) look() (digest [sha256.Size]byte) {
	hash := sha256.New()
	note := func(path string) os.FileInfo {
		info, err := os.Stat(path)
		if err != nil {
			fmt.Fprintln(hash, path, err)
			return nil
		}
		fmt.Fprintln(hash, path, info.ModTime().UnixNano(), info.Size(), info.Mode())
		if stat, ok := info.Sys().(*syscall.Stat_t); ok { // a copy may keep size and time
			fmt.Fprintln(hash, stat.Dev, stat.Ino, stat.Ctim.Nano())
		}
		return info
	}
	for _, path := range a.config.Files {
		if info := note(path); info == nil || !info.IsDir() {
			continue
		}
		entries, err := os.ReadDir(path)
		if err != nil {
			fmt.Fprintln(hash, path, err)
		}
		for _, entry := range entries {
			note(filepath.Join(path, entry.Name()))
		}
	}
	hash.Sum(digest[:0])
	return digest
}

package cri

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/wholefile"
)

// podDir is the directory of a pod.
type podDir string

func (d podDir) record() string            { return filepath.Join(string(d), "pod.json") }
func (d podDir) volumes() string           { return filepath.Join(string(d), "volumes") }
func (d podDir) volume(name string) string { return filepath.Join(d.volumes(), name) }
func (d podDir) hosts() string             { return filepath.Join(string(d), "etc-hosts") }
func (d podDir) subPaths() string          { return filepath.Join(string(d), "subpaths") }
func (d podDir) attempt(name string, attempt int) string {
	return filepath.Join(string(d), "containers", name, strconv.Itoa(attempt))
}

// podRecord is what is remembered of a pod.
type podRecord struct {
	CreatedAt  time.Time `json:"createdAt"`
	PlaceSince time.Time `json:"placeSince"`
	IPs        []string  `json:"ips,omitempty"`
	Released   bool      `json:"released,omitempty"`
	Pod        *v1.Pod   `json:"pod"`
}

// stopRecord is by when a container must have ended.
type stopRecord struct {
	By time.Time `json:"by"`
}

func (r *Runtime) podDir(uid types.UID) podDir {
	return podDir(filepath.Join(r.options.Dir, "pods", string(uid)))
}

// checkUID refuses what could name another directory than one of our own.
func checkUID(uid types.UID) error {
	if uid == "" || uid == "." || uid == ".." || strings.ContainsAny(string(uid), "/\x00") {
		return fmt.Errorf("cri: pod UID %q cannot name a directory", uid)
	}
	return nil
}

// save writes the record of a pod. The caller holds mu, or is the only one who knows the pod.
func (p *pod) save() error {
	data, err := json.Marshal(podRecord{CreatedAt: p.createdAt, PlaceSince: p.placeSince, IPs: p.ips, Released: p.released, Pod: p.manifest})
	if err != nil {
		return err
	}
	return wholefile.Write(p.dir.record(), data)
}

// load reads the records of all pods. One that cannot be read is a problem, and its pod is left alone.
func (r *Runtime) load() error {
	top := filepath.Join(r.options.Dir, "pods")
	if err := os.MkdirAll(top, 0o711); err != nil {
		return err
	}
	entries, err := os.ReadDir(top)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		dir := podDir(filepath.Join(top, entry.Name()))
		p, err := readPod(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist): // its start was interrupted
			if err := removeTree(string(dir)); err != nil {
				r.report(string(dir), err)
			}
		case err != nil:
			r.options.Logger.Error("the record of a pod cannot be read, its containers are left alone", "path", dir, "err", err)
			r.report(string(dir), err)
		default:
			r.pods[p.manifest.UID] = p
		}
	}
	return nil
}

func readPod(dir podDir) (*pod, error) {
	data, err := os.ReadFile(dir.record())
	if err != nil {
		return nil, err
	}
	var rec podRecord
	if err := json.Unmarshal(data, &rec); err != nil {
		return nil, err
	}
	if rec.Pod == nil || string(rec.Pod.UID) != filepath.Base(string(dir)) {
		return nil, errors.New("the record is not of this pod")
	}
	return &pod{dir: dir, manifest: rec.Pod, createdAt: rec.CreatedAt, placeSince: rec.PlaceSince, ips: rec.IPs, released: rec.Released}, nil
}

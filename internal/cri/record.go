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

// podRecord is the stored record of a pod.
type podRecord struct {
	CreatedAt  time.Time `json:"createdAt"`
	PlaceSince time.Time `json:"placeSince"`
	IPs        []string  `json:"ips,omitempty"`
	Sandbox    string    `json:"sandbox,omitempty"` // that has the IPs
	Kubelet    string    `json:"kubelet,omitempty"` // the directory of the kubelet that the pod was taken over from
	FirstUser  uint32    `json:"firstUser,omitempty"`
	Released   bool      `json:"released,omitempty"`
	// Resized are the resources of containers that were resized, by name.
	Resized map[string]v1.ResourceRequirements `json:"resized,omitempty"`
	Pod     *v1.Pod                            `json:"pod"`
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

// save writes the record of a pod as the pod is now. The caller does not hold mu: a slow disk must not delay other pods.
func (r *Runtime) save(p *pod) error {
	p.saving.Lock()
	defer p.saving.Unlock()
	r.mu.Lock()
	rec := podRecord{CreatedAt: p.createdAt, PlaceSince: p.placeSince, IPs: p.ips, Sandbox: p.addressed, Kubelet: p.kubelet, FirstUser: p.firstUser, Released: p.released, Resized: p.resized, Pod: p.manifest}
	r.mu.Unlock()
	data, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	return r.options.writeRecord(p.dir.record(), data)
}

// load reads the records of all pods. An unreadable record is a problem, and its pod is not touched.
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
			r.options.Logger.Error("the record of a pod cannot be read, its containers are not touched", "path", dir, "err", err)
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
	return &pod{dir: dir, manifest: rec.Pod, createdAt: rec.CreatedAt, placeSince: rec.PlaceSince, ips: rec.IPs, addressed: rec.Sandbox, kubelet: rec.Kubelet, firstUser: rec.FirstUser, released: rec.Released, resized: rec.Resized}, nil
}

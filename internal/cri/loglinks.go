package cri

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// maxLinkName is how long the name of a file can be without its suffix.
const maxLinkName = 255 - len(".log")

// linkDir has the links to the logs of containers, beside the directory of logs: /var/log/containers. Collectors of logs look there, because a
// name says pod, namespace, container and ID.
func (r *Runtime) linkDir() string {
	return filepath.Join(filepath.Dir(r.options.LogDir), "containers")
}

// logLink is the link to the log of a container, with the name that a kubelet gives it.
func (r *Runtime) logLink(pod *v1.Pod, container, id string) string {
	name := fmt.Sprintf("%s_%s_%s-%s", pod.Name, pod.Namespace, container, id)
	return filepath.Join(r.linkDir(), name[:min(len(name), maxLinkName)]+".log")
}

// link makes the link to the log of a container. Without the link the container runs all the same.
func (r *Runtime) link(c *container) {
	err := os.MkdirAll(r.linkDir(), 0o755)
	if err == nil {
		err = os.Symlink(c.log, c.link)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		r.options.Logger.Warn("the link to the log of a container cannot be made, collectors of logs may not find the log", "uid", c.uid, "path", c.link, "err", err)
	}
}

// unlink removes links. Links that are missing are ignored.
func unlink(links ...string) error {
	var errs []error
	for _, link := range links {
		if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// sweepLinks removes links to logs that are gone, as those of a pod that was removed.
func (r *Runtime) sweepLinks() {
	entries, _ := os.ReadDir(r.linkDir()) // without the directory there are none
	for _, entry := range entries {
		link := filepath.Join(r.linkDir(), entry.Name())
		log, err := os.Readlink(link)
		if err != nil || !strings.HasPrefix(log, r.options.LogDir+"/") {
			continue
		}
		if _, err := os.Stat(log); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := unlink(link); err != nil {
			r.options.Logger.Warn("a link to a log that is gone cannot be removed", "path", link, "err", err)
		}
	}
}

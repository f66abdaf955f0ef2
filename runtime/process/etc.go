package process

import (
	"os"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/podetc"
	"github.com/statusd/statusd/runtime/process/internal/record"
)

// resolvConf is the resolver of the machine.
const resolvConf = "/etc/resolv.conf"

// etcFiles are the files of /etc that the pod has of its own, by name: without one a container sees the machine's.
func etcFiles(pod *v1.Pod) (map[string]string, error) {
	files := map[string]string{}
	if len(pod.Spec.HostAliases) > 0 {
		hosts, err := podetc.HostsOfMachine(pod)
		if err != nil {
			return nil, err
		}
		files["hosts"] = hosts
	}
	if pod.Spec.DNSPolicy == v1.DNSNone || pod.Spec.DNSConfig != nil {
		resolver, err := podetc.NewResolver(pod, podetc.Cluster{}, resolvConf)
		if err != nil {
			return nil, err
		}
		files["resolv.conf"] = resolver.File()
	}
	return files, nil
}

// makeEtc writes the pod's own files of /etc.
func (p *pod) makeEtc() error {
	files, err := etcFiles(p.manifest)
	if err != nil || len(files) == 0 {
		return err
	}
	if err := makeDir(p.dir.etc(""), traversable); err != nil {
		return err
	}
	for name, content := range files {
		// Containers may have the file mounted: it is written in its place, not replaced.
		if err := os.WriteFile(p.dir.etc(name), []byte(content), 0o644); err != nil {
			return err
		}
		if err := os.Chmod(p.dir.etc(name), 0o644); err != nil { // the umask has no say
			return err
		}
	}
	return nil
}

// etcMounts puts the pod's own files of /etc in the place of the machine's, unless the container mounts something there itself.
func (p *pod) etcMounts(target *v1.Container) (mounts []record.Mount) {
	for _, name := range []string{"hosts", "resolv.conf"} {
		if _, err := os.Lstat(p.dir.etc(name)); err == nil && mountOf(target, "/etc/"+name) == nil {
			mounts = append(mounts, record.Mount{Source: p.dir.etc(name), Target: "/etc/" + name})
		}
	}
	return mounts
}

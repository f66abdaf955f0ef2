package cri

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"path"
	"sort"
	"strings"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// dockerHub are the names of the registry that images without one come from.
var dockerHub = map[string]bool{"docker.io": true, "index.docker.io": true, "registry-1.docker.io": true}

// entry is what a pull secret has for a registry.
type entry struct {
	Username      string `json:"username"`
	Password      string `json:"password"`
	Auth          string `json:"auth"`
	IdentityToken string `json:"identitytoken"`
	RegistryToken string `json:"registrytoken"`
}

// credential is what a registry is asked with: nil for none. From is the pull secret that has it.
type credential struct {
	auth *runtimeapi.AuthConfig
	from pullSecret
}

// credentials are those of the pod's pull secrets that match the image, the most specific first. A secret that cannot be read is logged: the image
// may be public.
func (r *Runtime) credentials(ctx context.Context, pod *v1.Pod, image string) []credential {
	if r.options.Objects == nil {
		return nil
	}
	matching := map[string][]credential{}
	for _, ref := range pod.Spec.ImagePullSecrets {
		secret, err := r.options.Objects.Secret(ctx, pod.Namespace, ref.Name)
		if err != nil {
			r.options.Logger.Warn("pull secret cannot be read", "pod", pod.Namespace+"/"+pod.Name, "secret", ref.Name, "err", err)
			continue
		}
		for registry, e := range entries(secret) {
			if matches(registry, image) {
				auth := e.auth(registry)
				from := pullSecret{UID: string(secret.UID), Namespace: pod.Namespace, Name: ref.Name, Hash: hashOf(auth)}
				matching[registry] = append(matching[registry], credential{auth, from})
			}
		}
	}
	registries := make([]string, 0, len(matching))
	for registry := range matching {
		registries = append(registries, registry)
	}
	sort.Slice(registries, func(i, j int) bool { return len(registries[i]) > len(registries[j]) })
	var all []credential
	for _, registry := range registries {
		all = append(all, matching[registry]...)
	}
	return all
}

// entries reads a secret of one of the two types of pull secrets.
func entries(secret *v1.Secret) map[string]entry {
	var found map[string]entry
	switch secret.Type {
	case v1.SecretTypeDockerConfigJson:
		var config struct {
			Auths map[string]entry `json:"auths"`
		}
		if json.Unmarshal(secret.Data[v1.DockerConfigJsonKey], &config) == nil {
			found = config.Auths
		}
	case v1.SecretTypeDockercfg:
		_ = json.Unmarshal(secret.Data[v1.DockerConfigKey], &found) // an unreadable secret has no credentials
	}
	return found
}

func (e entry) auth(registry string) *runtimeapi.AuthConfig {
	auth := &runtimeapi.AuthConfig{Username: e.Username, Password: e.Password, IdentityToken: e.IdentityToken, RegistryToken: e.RegistryToken, ServerAddress: registry}
	if decoded, err := base64.StdEncoding.DecodeString(e.Auth); err == nil && e.Auth != "" && e.Username == "" {
		auth.Username, auth.Password, _ = strings.Cut(strings.TrimRight(string(decoded), "\x00"), ":")
	}
	return auth
}

// matches reports whether the credentials of a registry are for an image. A registry may have a path, and patterns in the parts of its host.
func matches(registry, image string) bool {
	if !strings.Contains(registry, "://") {
		registry = "https://" + registry
	}
	of, err := url.Parse(registry)
	if err != nil {
		return false
	}
	host, rest := splitImage(image)
	if dockerHub[of.Host] {
		return dockerHub[host]
	}
	prefix := strings.Trim(of.Path, "/")
	if prefix == "v1" || prefix == "v2" {
		prefix = ""
	}
	wanted, got := strings.Split(of.Host, "."), strings.Split(host, ".")
	if len(wanted) != len(got) || prefix != "" && rest != prefix && !strings.HasPrefix(rest, prefix+"/") {
		return false
	}
	for i := range wanted {
		if ok, err := path.Match(wanted[i], got[i]); !ok || err != nil {
			return false
		}
	}
	return true
}

// splitImage is the registry of an image, and the rest.
func splitImage(image string) (host, rest string) {
	host, rest, found := strings.Cut(image, "/")
	if !found || !strings.ContainsAny(host, ".:") && host != "localhost" {
		return "docker.io", image
	}
	return host, rest
}

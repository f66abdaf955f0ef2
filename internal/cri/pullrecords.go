package cri

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// pullRecords remembers which images were pulled here and with whose credentials: a pod may use such an image if it has credentials that have pulled the
// image, else its own credentials must pull the image again. Images that came another way, such as by an import, are for all pods.
//
// The files have the names and the format of the kubelet's, so that they can be handed over with the pods.
type pullRecords struct {
	dir   string
	write func(path string, data []byte) error

	mu      sync.Mutex // guards what follows, and the files
	pulling map[string]int
	pulled  map[string]*pulledRecord // by file name
}

const (
	pullingDir = "pulling"
	pulledDir  = "pulled"
	pullAPI    = "kubelet.config.k8s.io/v1beta1"
	// maxPullers bounds the credentials that are remembered of an image.
	maxPullers = 100
)

// pullIntent is on disk while an image is being pulled: if statusd ends in between, the image counts as pulled with unknown credentials.
type pullIntent struct {
	metav1.TypeMeta `json:",inline"`
	Image           string `json:"image"`
}

// pulledRecord is of one image, by its ID.
type pulledRecord struct {
	metav1.TypeMeta `json:",inline"`
	LastUpdatedTime metav1.Time `json:"lastUpdatedTime"`
	ImageRef        string      `json:"imageRef"`
	// By is who has pulled the image, by its name without tag and digest.
	By map[string]pullers `json:"credentialMapping,omitempty"`
}

// pullers are those whose credentials have pulled an image.
type pullers struct {
	Secrets         []pullSecret      `json:"kubernetesSecrets,omitempty"`
	ServiceAccounts []json.RawMessage `json:"kubernetesServiceAccounts,omitempty"` // a kubelet's
	Everyone        bool              `json:"nodePodsAccessible,omitempty"`
}

// pullSecret names the secret with the credentials of a pull; the zero value is a pull without credentials.
type pullSecret struct {
	UID       string `json:"uid"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Hash      string `json:"credentialHash"`
}

func (s pullSecret) sameSecret(other pullSecret) bool {
	return s.UID == other.UID && s.Namespace == other.Namespace && s.Name == other.Name
}

// matches reports whether the credentials are the same, or the secret is the same with other credentials.
func (s pullSecret) matches(other pullSecret) bool {
	return s.sameSecret(other) || s.Hash != "" && s.Hash == other.Hash
}

// hashOf tells credentials apart without keeping them.
func hashOf(auth *runtimeapi.AuthConfig) string {
	secrets, _ := json.Marshal([]string{auth.Username, auth.Password, auth.Auth, auth.ServerAddress, auth.IdentityToken, auth.RegistryToken}) // strings can be marshaled
	return fmt.Sprintf("%x", sha256.Sum256(secrets))
}

func pullFile(name string) string { return fmt.Sprintf("sha256-%x", sha256.Sum256([]byte(name))) }

// repository is the name of an image without tag and digest.
func repository(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if at := strings.LastIndexByte(image, ':'); at > strings.LastIndexByte(image, '/') {
		image = image[:at]
	}
	return image
}

// openPullRecords reads the records. An image whose record cannot be read counts as pulled with unknown credentials. It returns the names of images
// that were being pulled when the last statusd ended.
func openPullRecords(dir string, write func(string, []byte) error) (*pullRecords, []string, error) {
	s := &pullRecords{dir: dir, write: write, pulling: map[string]int{}, pulled: map[string]*pulledRecord{}}
	var interrupted []string
	err := s.eachFile(pullingDir, func(name string, content []byte) {
		var intent pullIntent
		if json.Unmarshal(content, &intent) == nil && pullFile(intent.Image) == name {
			interrupted = append(interrupted, intent.Image)
		}
	})
	if err != nil {
		return nil, nil, err
	}
	return s, interrupted, s.eachFile(pulledDir, func(name string, content []byte) {
		record := &pulledRecord{}
		if json.Unmarshal(content, record) != nil || pullFile(record.ImageRef) != name {
			record = &pulledRecord{}
		}
		s.pulled[name] = record
	})
}

// eachFile makes the directory if need be, and removes files that a kill has left unfinished.
func (s *pullRecords) eachFile(below string, do func(name string, content []byte)) error {
	dir := filepath.Join(s.dir, below)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		if strings.Contains(entry.Name(), ".") {
			if err := os.Remove(path); err != nil {
				return err
			}
			continue
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		do(entry.Name(), content)
	}
	return nil
}

// begin notes durably that an image is going to be pulled.
func (s *pullRecords) begin(image string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pulling[image] == 0 {
		content, err := json.Marshal(pullIntent{metav1.TypeMeta{Kind: "ImagePullIntent", APIVersion: pullAPI}, image})
		if err != nil {
			return err
		}
		if err := s.write(filepath.Join(s.dir, pullingDir, pullFile(image)), content); err != nil {
			return err
		}
	}
	s.pulling[image]++
	return nil
}

// end notes that a pull is over. With recorded false the intent stays on disk until the next start, because what was pulled could not be noted.
func (s *pullRecords) end(image string, recorded bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pulling[image]--; s.pulling[image] > 0 {
		return nil
	}
	delete(s.pulling, image)
	if !recorded {
		return nil
	}
	if err := os.Remove(filepath.Join(s.dir, pullingDir, pullFile(image))); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// record notes who has pulled an image; nil: credentials that are not known. The image is for its pullers at once, also if the note cannot be written.
func (s *pullRecords) record(image, id string, by *pullSecret) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	file := pullFile(id)
	r := s.pulled[file]
	if r == nil {
		r = &pulledRecord{}
		s.pulled[file] = r
	}
	r.TypeMeta, r.ImageRef, r.LastUpdatedTime = metav1.TypeMeta{Kind: "ImagePulledRecord", APIVersion: pullAPI}, id, metav1.Now()
	if by != nil {
		if r.By == nil {
			r.By = map[string]pullers{}
		}
		r.By[repository(image)] = r.By[repository(image)].with(*by)
	}
	content, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return s.write(filepath.Join(s.dir, pulledDir, file), content)
}

// with adds a puller. Of too many secrets the oldest one is forgotten.
func (p pullers) with(s pullSecret) pullers {
	if p.Everyone || s == (pullSecret{}) {
		return pullers{Everyone: true}
	}
	p.Secrets = append(slices.DeleteFunc(slices.Clone(p.Secrets), s.sameSecret), s)
	p.Secrets = p.Secrets[max(0, len(p.Secrets)-maxPullers):]
	return p
}

// allows reports whether a pod with these secrets may use an image, by one of its names, without a pull.
func (s *pullRecords) allows(name string, image *runtimeapi.Image, secrets func() []pullSecret) bool {
	s.mu.Lock()
	r := s.pulled[pullFile(image.Id)]
	var by pullers
	if r != nil {
		by = r.By[repository(name)]
	}
	pulled := r != nil || s.isPulled(name, image)
	s.mu.Unlock()
	switch {
	case !pulled:
		return true
	case by.Everyone:
		return true
	case len(by.Secrets) == 0:
		return false
	}
	return slices.ContainsFunc(secrets(), func(secret pullSecret) bool { return slices.ContainsFunc(by.Secrets, secret.matches) })
}

// isPulled reports whether a pull of the image is under way, or has just ended and is not noted yet. It needs mu.
func (s *pullRecords) isPulled(name string, image *runtimeapi.Image) bool {
	for pulling := range s.pulling {
		same := func(name string) bool { return fullName(name) == fullName(pulling) }
		if same(name) || slices.ContainsFunc(image.RepoTags, same) || slices.ContainsFunc(image.RepoDigests, same) {
			return true
		}
	}
	return false
}

// fullName is the name of an image with its registry, as container runtimes list the image.
func fullName(image string) string {
	host, rest := splitImage(image)
	if dockerHub[host] && !strings.Contains(rest, "/") {
		rest = "library/" + rest
	}
	return host + "/" + rest
}

// keep forgets images that the container runtime did not have at a time.
func (s *pullRecords) keep(images []*runtimeapi.Image, at time.Time) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	there := map[string]bool{}
	for _, image := range images {
		there[pullFile(image.Id)] = true
	}
	for file, r := range s.pulled {
		if there[file] || !r.LastUpdatedTime.Time.Before(at) {
			continue
		}
		if removed := os.Remove(filepath.Join(s.dir, pulledDir, file)); removed != nil && !errors.Is(removed, fs.ErrNotExist) {
			err = errors.Join(err, removed)
			continue
		}
		delete(s.pulled, file)
	}
	return err
}

// copyPullRecords copies the records of one agent to the directory of the other.
func copyPullRecords(from, to string) error {
	for _, below := range []string{pullingDir, pulledDir} {
		entries, err := os.ReadDir(filepath.Join(from, below))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.MkdirAll(filepath.Join(to, below), 0o700)
		}
		if err != nil {
			return err
		}
		for _, entry := range entries {
			content, err := os.ReadFile(filepath.Join(from, below, entry.Name()))
			if err == nil {
				err = os.WriteFile(filepath.Join(to, below, entry.Name()), content, 0o600)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

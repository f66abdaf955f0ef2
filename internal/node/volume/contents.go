package volume

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/instant"
)

// Options configure the contents of a pod's volumes.
type Options struct {
	// Objects reads config maps, secrets and tokens. Without one only the downward API works.
	Objects Objects
	// Dir is the directory of a volume.
	Dir func(volume string) string
	// Fields returns the downward API's values of the current pod.
	Fields func(pod *v1.Pod) Fields
	// Root reports whether files may be given to other users and groups.
	Root bool
	// Group is the group that the pod has for itself, and all of its containers have.
	Group uint32
	// Isolated reports that no other user of the machine can reach the directories of volumes, and that images choose users: files
	// have the modes and owners that the kubelet gives them.
	Isolated bool
}

// Contents are the volumes of one pod that have contents. All methods may be called from any
// goroutine; one Refresh runs at a time.
type Contents struct {
	objects Objects
	dir     func(string) string
	fields  func(*v1.Pod) Fields
	root    bool
	group   uint32
	alone   bool // see Options.Isolated

	refreshing sync.Mutex // held during a refresh; guards tokens
	tokens     map[tokenKey]token

	mu  sync.Mutex // guards pod
	pod *v1.Pod
}

// NewContents makes the contents of a pod. NewContents writes nothing: see Refresh.
func NewContents(pod *v1.Pod, options Options) *Contents {
	return &Contents{
		objects: options.Objects, dir: options.Dir, fields: options.Fields, root: options.Root, group: options.Group, alone: options.Isolated,
		tokens: map[tokenKey]token{}, pod: pod,
	}
}

// Update replaces the pod, whose labels and annotations may be in its volumes, and reports
// whether a refresh would see a difference. The pod must not be changed afterwards.
func (c *Contents) Update(pod *v1.Pod) (changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.pod
	c.pod = pod
	return !maps.Equal(before.Labels, pod.Labels) || !maps.Equal(before.Annotations, pod.Annotations)
}

// SetUpError is the error of a volume that could not be set up.
type SetUpError struct {
	Volume string
	Err    error
}

func (e *SetUpError) Error() string { return fmt.Sprintf("volume %s: %v", e.Volume, e.Err) }

func (e *SetUpError) Unwrap() error { return e.Err }

// Refresh updates all volumes and returns when to refresh again even if no object changes: when a
// token must be renewed. It continues after an error of one volume and returns one or more joined
// [*SetUpError].
func (c *Contents) Refresh(ctx context.Context, now time.Time) (next time.Time, err error) {
	c.refreshing.Lock()
	defer c.refreshing.Unlock()
	c.mu.Lock()
	pod := c.pod
	c.mu.Unlock()
	var problems []error
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		if !HasContents(&volume.VolumeSource) {
			continue
		}
		files, due, err := c.files(ctx, pod, volume, now)
		next = instant.Earlier(next, due)
		if files != nil { // also beside an error: a token that could not be renewed keeps its file
			_, writeErr := write(c.dir(volume.Name), files, c.ownerOf(pod))
			err = errors.Join(err, writeErr)
		}
		if err != nil {
			problems = append(problems, &SetUpError{Volume: volume.Name, Err: err})
		}
	}
	return next, errors.Join(problems...)
}

// files returns the files of one volume. If a source is missing it returns no files; if only the
// renewal of a token failed, it returns the files together with the error.
func (c *Contents) files(ctx context.Context, pod *v1.Pod, volume *v1.Volume, now time.Time) (Files, time.Time, error) {
	all, due, stale := Files{}, time.Time{}, error(nil)
	var problems []error
	for _, source := range sources(&volume.VolumeSource) {
		some, renewAt, err := c.sourceFiles(ctx, pod, source, defaultMode(&volume.VolumeSource), now)
		switch {
		case err != nil && some != nil:
			stale = err
		case err != nil:
			problems = append(problems, err)
		}
		maps.Copy(all, some)
		due = instant.Earlier(due, renewAt)
	}
	if len(problems) > 0 {
		return nil, due, aggregate(problems)
	}
	if err := all.check(); err != nil {
		return nil, due, err
	}
	return all, due, stale
}

// aggregate shows one problem as it is and several in brackets, as the kubelet does.
func aggregate(problems []error) error {
	if len(problems) == 1 {
		return problems[0]
	}
	texts := make([]string, len(problems))
	for i, problem := range problems {
		texts[i] = problem.Error()
	}
	return fmt.Errorf("[%s]", strings.Join(texts, ", "))
}

func (c *Contents) sourceFiles(ctx context.Context, pod *v1.Pod, source v1.VolumeProjection, mode int32, now time.Time) (Files, time.Time, error) {
	var files Files
	var err error
	switch {
	case source.ConfigMap != nil:
		from, optional := source.ConfigMap, isTrue(source.ConfigMap.Optional)
		var object *v1.ConfigMap
		if object, err = GetConfigMap(ctx, c.objects, pod.Namespace, from.Name, optional); err == nil {
			files, err = configMapFiles(object, from.Items, optional, mode)
		}
	case source.Secret != nil:
		from, optional := source.Secret, isTrue(source.Secret.Optional)
		var object *v1.Secret
		if object, err = GetSecret(ctx, c.objects, pod.Namespace, from.Name, optional); err == nil {
			files, err = secretFiles(object, from.Items, optional, mode)
		}
	case source.DownwardAPI != nil:
		files, err = downwardFiles(c.fields(pod), source.DownwardAPI.Items, mode)
	case source.ServiceAccountToken != nil:
		return c.tokenFiles(ctx, pod, source.ServiceAccountToken, mode, now)
	default:
		err = errors.New("this kind of projection is not supported")
	}
	return files, time.Time{}, err
}

func (c *Contents) tokenFiles(ctx context.Context, pod *v1.Pod, source *v1.ServiceAccountTokenProjection, mode int32, now time.Time) (Files, time.Time, error) {
	if c.objects == nil {
		return nil, time.Time{}, errNoObjects
	}
	token, err := c.token(ctx, pod, source, now)
	if token.value == "" {
		return nil, time.Time{}, err
	}
	if c.ownerOf(pod).private {
		mode = 0o600
	}
	return Files{source.Path: {Data: []byte(token.value), Mode: permissions(mode)}}, token.renewAt, err
}

func isTrue(b *bool) bool { return b != nil && *b }

var errNoObjects = errors.New("there is no API server to read it from")

// GetConfigMap reads a config map. A missing config map is empty if it is optional, and otherwise
// an error with the kubelet's message.
func GetConfigMap(ctx context.Context, objects Objects, namespace, name string, optional bool) (*v1.ConfigMap, error) {
	if objects == nil {
		return nil, errNoObjects
	}
	object, err := objects.ConfigMap(ctx, namespace, name)
	switch {
	case errors.Is(err, ErrNotFound) && optional:
		return &v1.ConfigMap{}, nil
	case errors.Is(err, ErrNotFound):
		return nil, fmt.Errorf("configmap %q %w", name, ErrNotFound)
	case err != nil:
		return nil, err
	}
	return object, nil
}

// GetSecret does the same for a secret.
func GetSecret(ctx context.Context, objects Objects, namespace, name string, optional bool) (*v1.Secret, error) {
	if objects == nil {
		return nil, errNoObjects
	}
	object, err := objects.Secret(ctx, namespace, name)
	switch {
	case errors.Is(err, ErrNotFound) && optional:
		return &v1.Secret{}, nil
	case errors.Is(err, ErrNotFound):
		return nil, fmt.Errorf("secret %q %w", name, ErrNotFound)
	case err != nil:
		return nil, err
	}
	return object, nil
}

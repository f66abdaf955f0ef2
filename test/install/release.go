package install

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Architectures are the architectures that a release has programs for.
var Architectures = []string{"amd64", "arm64"}

// Release is what make release builds. The working directory is the checkout.
type Release struct {
	Version string    // with the v, as the tag
	Out     string    // an empty directory, or one that does not exist
	Time    time.Time // of all files: the commit's, so that the same commit gives the same bytes
	// Build builds statusd and statusd-shim of an architecture into a directory.
	Build func(dir, arch string) error
	// Run is the path of a statusd that this machine can run: it writes the completions.
	Run string
}

var isVersion = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)

// Make builds the release and returns the names of its files, which SHA256SUMS lists too.
func (r Release) Make() ([]string, error) {
	if !isVersion.MatchString(r.Version) {
		return nil, fmt.Errorf("VERSION=%s: want a version such as v0.1.0", r.Version)
	}
	if err := os.MkdirAll(r.Out, 0o755); err != nil {
		return nil, err
	}
	if left, err := os.ReadDir(r.Out); err != nil || len(left) > 0 {
		return nil, fmt.Errorf("%s is not empty (%v): remove it", r.Out, err)
	}
	// nfpm reads the time of files from there.
	if err := os.Setenv("SOURCE_DATE_EPOCH", fmt.Sprint(r.Time.Unix())); err != nil {
		return nil, err
	}
	bin, err := os.MkdirTemp("", "statusd-release-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(bin)
	for _, arch := range Architectures {
		if err := r.Build(filepath.Join(bin, arch), arch); err != nil {
			return nil, fmt.Errorf("build for %s: %w", arch, err)
		}
	}
	for _, arch := range Architectures {
		if err := Completions(r.Run, filepath.Join(bin, arch)); err != nil {
			return nil, err
		}
	}
	steps := []func(bin string) error{r.archives, r.packages, r.images, r.chart, r.documents, r.krew}
	for _, step := range steps {
		if err := step(bin); err != nil {
			return nil, err
		}
	}
	return r.checksums()
}

func (r Release) number() string { return strings.TrimPrefix(r.Version, "v") }

// path is the path of a file of the release.
func (r Release) path(format string, args ...any) string {
	return filepath.Join(r.Out, fmt.Sprintf(format, args...))
}

// entry is a file of an archive.
type entry struct {
	name    string
	content []byte
	mode    int64
}

func read(name, path string, mode int64) (entry, error) {
	content, err := os.ReadFile(path)
	return entry{name, content, mode}, err
}

// archive writes a .tar.gz that depends on the entries alone.
func (r Release) archive(path string, entries []entry) error {
	var buffer bytes.Buffer
	zip := gzip.NewWriter(&buffer)
	files := tar.NewWriter(zip)
	for _, e := range entries {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: e.mode, Size: int64(len(e.content)), ModTime: r.Time}
		if err := files.WriteHeader(header); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if _, err := files.Write(e.content); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	if err := files.Close(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := zip.Close(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, buffer.Bytes(), 0o644)
}

// archives are the programs with the license, the manual page and the completions, and the plugin of kubectl alone.
func (r Release) archives(bin string) error {
	license, err := read("LICENSE", "LICENSE", 0o644)
	if err != nil {
		return err
	}
	manual, err := read("statusd.8", "deploy/packaging/statusd.8", 0o644)
	if err != nil {
		return err
	}
	common := []entry{license, manual}
	for _, shell := range shells {
		script, err := read("completions/statusd."+shell, filepath.Join(bin, Architectures[0], "completions", "statusd."+shell), 0o644)
		if err != nil {
			return err
		}
		common = append(common, script)
	}
	for _, arch := range Architectures {
		program, err := read("statusd", filepath.Join(bin, arch, "statusd"), 0o755)
		if err != nil {
			return err
		}
		shim, err := read("statusd-shim", filepath.Join(bin, arch, "statusd-shim"), 0o755)
		if err != nil {
			return err
		}
		if err := r.archive(r.path("statusd_%s_linux_%s.tar.gz", r.number(), arch), append([]entry{program, shim}, common...)); err != nil {
			return err
		}
		plugin := entry{"kubectl-statusd", program.content, 0o755}
		if err := r.archive(r.plugin(arch), []entry{plugin, license}); err != nil {
			return err
		}
	}
	return nil
}

func (r Release) plugin(arch string) string {
	return r.path("kubectl-statusd_%s_linux_%s.tar.gz", r.number(), arch)
}

func (r Release) packages(bin string) error {
	for _, arch := range Architectures {
		for _, product := range []string{"run", "observe"} {
			for _, format := range []string{"deb", "rpm"} {
				if _, err := Package("deploy/packaging/nfpm-"+product+".yaml", filepath.Join(bin, arch), r.Out, r.number(), arch, format); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (r Release) images(bin string) error {
	for _, arch := range Architectures {
		command := exec.Command("go", "run", "./internal/image/build", "-name", imageName+":"+r.number(), "-arch", arch,
			"-program", filepath.Join(bin, arch, "statusd"), "-o", r.path("statusd-image_%s_linux_%s.tar", r.number(), arch))
		if out, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("image for %s: %w\n%s", arch, err, out)
		}
	}
	return nil
}

const imageName = "ghcr.io/statusd/statusd"

// chart packs deploy/chart with the version and the name of the image in it.
func (r Release) chart(string) error {
	const dir = "deploy/chart"
	var names []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	slices.Sort(names)
	var entries []entry
	for _, name := range names {
		rel := strings.TrimPrefix(name, dir+"/")
		e, err := read("statusd/"+rel, name, 0o644)
		if err != nil {
			return err
		}
		switch rel {
		case "Chart.yaml":
			e.content = chartVersion.ReplaceAll(e.content, []byte("version: "+r.number()))
			e.content = chartAppVersion.ReplaceAll(e.content, []byte(`appVersion: "`+r.number()+`"`))
		case "values.yaml":
			e.content = bytes.Replace(e.content, []byte("localhost/statusd:dev"), []byte(imageName+":"+r.number()), 1)
		}
		entries = append(entries, e)
	}
	return r.archive(r.path("statusd-chart-%s.tgz", r.number()), entries)
}

var (
	chartVersion    = regexp.MustCompile(`(?m)^version: .*$`)
	chartAppVersion = regexp.MustCompile(`(?m)^appVersion: .*$`)
)

// documents are the bills of materials and the notes of the release.
func (r Release) documents(bin string) error {
	for _, arch := range Architectures {
		for _, program := range []string{"statusd", "statusd-shim"} {
			bill, err := r.bill(program, filepath.Join(bin, arch, program), arch)
			if err != nil {
				return err
			}
			if err := os.WriteFile(r.path("%s_%s_linux_%s.spdx.json", program, r.number(), arch), bill, 0o644); err != nil {
				return err
			}
		}
	}
	notes, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		return err
	}
	return os.WriteFile(r.path("CHANGELOG.md"), notes, 0o644)
}

// krew writes the manifest by which krew installs the plugin.
func (r Release) krew(string) error {
	var text strings.Builder
	fmt.Fprintf(&text, `apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: statusd
spec:
  version: %s
  homepage: https://github.com/statusd/statusd
  shortDescription: Explain why pods are in their states
  description: |
    Explains why a pod or workload is in its state, since when, and what would change it; with statusd observe on the
    nodes also what happened to a pod, and whether what the API reports is true.
  platforms:
`, r.Version)
	for _, arch := range Architectures {
		sum, err := checksum(r.plugin(arch))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, `  - selector: {matchLabels: {os: linux, arch: %s}}
    uri: https://github.com/statusd/statusd/releases/download/%s/%s
    sha256: %s
    bin: kubectl-statusd
`, arch, r.Version, filepath.Base(r.plugin(arch)), sum)
	}
	return os.WriteFile(r.path("krew.yaml"), []byte(text.String()), 0o644)
}

func checksum(path string) (string, error) {
	content, err := os.ReadFile(path)
	return fmt.Sprintf("%x", sha256.Sum256(content)), err
}

// checksums writes SHA256SUMS, for sha256sum -c.
func (r Release) checksums() ([]string, error) {
	files, err := os.ReadDir(r.Out)
	if err != nil {
		return nil, err
	}
	var names []string
	var sums strings.Builder
	for _, file := range files {
		sum, err := checksum(filepath.Join(r.Out, file.Name()))
		if err != nil {
			return nil, err
		}
		names = append(names, file.Name())
		fmt.Fprintf(&sums, "%s  %s\n", sum, file.Name())
	}
	return names, os.WriteFile(r.path("SHA256SUMS"), []byte(sums.String()), 0o644)
}

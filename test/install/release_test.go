package install

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/chart/loader"
)

// program is the program of package pack, which stands for the programs of a release: the linker records modules in programs, not in tests.
var program = sync.OnceValues(func() (binary []byte, err error) {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "pack")
	if out, err := exec.Command("go", "build", "-C", "test/install", "-o", path, "./pack").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	return os.ReadFile(path)
})

// makeRelease makes a release whose programs are all the same one, in the root of the checkout.
func makeRelease(t *testing.T, version string) (string, []string, error) {
	t.Helper()
	fake := filepath.Join(t.TempDir(), "statusd")
	if err := os.WriteFile(fake, []byte("#!/bin/sh\necho \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	r := Release{Version: version, Out: filepath.Join(t.TempDir(), "out"), Time: time.Unix(1_700_000_000, 0), Run: fake, Build: func(dir, _ string) error {
		binary, err := program()
		return errors.Join(err, os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "statusd"), binary, 0o755), os.WriteFile(filepath.Join(dir, "statusd-shim"), binary, 0o755))
	}}
	names, err := r.Make()
	return r.Out, names, err
}

func sums(t *testing.T, out string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(out, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The same programs give the same files, also in another directory and at another time of day.
func TestRelease_Twice_SameBytes(t *testing.T) {
	t.Chdir(root)
	first, names, err := makeRelease(t, "v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	second, _, err := makeRelease(t, "v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	if a, b := sums(t, first), sums(t, second); a != b || strings.Count(a, "\n") != len(names) {
		t.Errorf("got %d files and the checksums\n%s\nand then\n%s", len(names), a, b)
	}
	check := exec.Command("sha256sum", "-c", "SHA256SUMS")
	check.Dir = first
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for _, want := range []string{
		"statusd_1.2.3_linux_amd64.tar.gz", "statusd_1.2.3_linux_arm64.tar.gz", "kubectl-statusd_1.2.3_linux_arm64.tar.gz", "statusd_1.2.3_amd64.deb",
		"statusd-observe_1.2.3_arm64.deb", "statusd-1.2.3-1.x86_64.rpm", "statusd-observe-1.2.3-1.aarch64.rpm", "statusd-image_1.2.3_linux_arm64.tar",
		"statusd-chart-1.2.3.tgz", "statusd_1.2.3_linux_amd64.spdx.json", "krew.yaml",
	} {
		if !strings.Contains(sums(t, first), "  "+want+"\n") {
			t.Errorf("no %s in\n%s", want, sums(t, first))
		}
	}
	t.Run("archive", func(t *testing.T) {
		hasProgramAndCompletions(t, filepath.Join(first, "statusd_1.2.3_linux_amd64.tar.gz"))
	})
	t.Run("bill of materials", func(t *testing.T) { namesModules(t, filepath.Join(first, "statusd_1.2.3_linux_amd64.spdx.json")) })
	t.Run("chart", func(t *testing.T) { hasVersion(t, filepath.Join(first, "statusd-chart-1.2.3.tgz")) })
	t.Run("krew", func(t *testing.T) {
		manifest, err := os.ReadFile(filepath.Join(first, "krew.yaml"))
		sum, err2 := checksum(filepath.Join(first, "kubectl-statusd_1.2.3_linux_arm64.tar.gz"))
		if err != nil || err2 != nil || !strings.Contains(string(manifest), "sha256: "+sum) || !strings.Contains(string(manifest), "version: v1.2.3") {
			t.Errorf("%v, %v: want the checksum %s in\n%s", err, err2, sum, manifest)
		}
	})
}

func hasProgramAndCompletions(t *testing.T, path string) {
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	zip, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for archive := tar.NewReader(zip); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got[header.Name] = header.Mode
	}
	for name, mode := range map[string]int64{"statusd": 0o755, "statusd-shim": 0o755, "LICENSE": 0o644, "statusd.8": 0o644, "completions/statusd.zsh": 0o644} {
		if got[name] != mode {
			t.Errorf("%s has mode %o, want %o; the archive has %v", name, got[name], mode, got)
		}
	}
}

func namesModules(t *testing.T, path string) {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var bill spdxDocument
	if err := json.Unmarshal(text, &bill); err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, p := range bill.Packages {
		found[p.Name] = p.Version != ""
	}
	if !found["statusd"] || !found["stdlib"] || !found["github.com/goreleaser/nfpm/v2"] || len(bill.Relationships) != len(bill.Packages) {
		t.Errorf("got %d relationships of %v", len(bill.Relationships), found)
	}
}

func hasVersion(t *testing.T, path string) {
	chart, err := loader.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	image, _ := chart.Values["image"].(map[string]any)
	if chart.Metadata.Version != "1.2.3" || chart.Metadata.AppVersion != "1.2.3" || image["name"] != imageName+":1.2.3" {
		t.Errorf("got version %s, appVersion %s, image %v", chart.Metadata.Version, chart.Metadata.AppVersion, image["name"])
	}
}

func TestRelease_WrongVersion_IsRefused(t *testing.T) {
	t.Chdir(root)
	for _, version := range []string{"", "1.2.3", "v1.2", "v1.2.3/../x"} {
		if _, names, err := makeRelease(t, version); err == nil || !strings.Contains(err.Error(), "want a version") {
			t.Errorf("%q: got %v, %v", version, names, err)
		}
	}
}

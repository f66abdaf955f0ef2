package images

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/statusd/statusd/internal/image"
)

// addProgram puts a program of this machine into the image, with its shared libraries.
func addProgram(i *image.Image, s Sources, name, file string) error {
	found, err := s.Find(name)
	if err != nil {
		return fmt.Errorf("a program for image %s: %w", i.Name, err)
	}
	return addFile(i, found, file)
}

// addFile puts the program of a file into the image, with its libraries.
func addFile(i *image.Image, program, file string) error {
	content, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	i.Files[file] = image.File{Content: content, Mode: 0o755}
	return addLibraries(i, program)
}

// addLibraries adds the loader and the libraries of a program, and those of the libraries, at the paths where they are here.
func addLibraries(i *image.Image, program string) error {
	file, err := elf.Open(program)
	if err != nil {
		return err
	}
	defer file.Close()
	var needed []string
	for _, p := range file.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		loader := make([]byte, p.Filesz)
		if _, err := p.ReadAt(loader, 0); err != nil {
			return err
		}
		needed = append(needed, strings.TrimRight(string(loader), "\x00"))
	}
	libraries, err := file.ImportedLibraries()
	if err != nil {
		return err
	}
	for _, library := range libraries {
		path, err := findLibrary(library)
		if err != nil {
			return fmt.Errorf("%s: %w", program, err)
		}
		needed = append(needed, path)
	}
	for _, path := range needed {
		name := strings.TrimPrefix(path, "/")
		if _, ok := i.Files[name]; ok {
			continue
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		i.Files[name] = image.File{Content: content, Mode: 0o755}
		if err := addLibraries(i, path); err != nil {
			return err
		}
	}
	return nil
}

// libraryDirs are where the loader looks: of Debian, and of machines with one architecture.
var libraryDirs = []string{"/lib/*-linux-gnu", "/usr/lib/*-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"}

func findLibrary(name string) (string, error) {
	for _, dir := range libraryDirs {
		if found, _ := filepath.Glob(filepath.Join(dir, name)); len(found) > 0 { // the pattern is right
			return found[0], nil
		}
	}
	return "", fmt.Errorf("library %s is in none of %s", name, strings.Join(libraryDirs, ", "))
}

package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Save writes the results of a run that is not complete.
func (r *Run) Save(path string) error {
	encoded, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if err := os.WriteFile(path, encoded, 0o644); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// Continue takes the results that Save has written, if they are of the same commit, machine and rounds.
func (r *Run) Continue(path string) error {
	encoded, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var before Run
	if err == nil {
		err = json.Unmarshal(encoded, &before)
	}
	if err != nil {
		return fmt.Errorf("report: continue: %w", err)
	}
	before.Machine.Date = r.Machine.Date
	if before.Machine == r.Machine {
		r.Results = before.Results
	}
	return nil
}

// WriteFiles writes the results as JSON, and benchmarks.md with the folder of its charts
// into the directory docs.
func WriteFiles(run *Run, jsonPath, docs string) error {
	encoded, err := json.MarshalIndent(run, "", "  ")
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	files := map[string]string{
		jsonPath:                             string(encoded) + "\n",
		filepath.Join(docs, "benchmarks.md"): Markdown(run),
	}
	for _, c := range charts(run) {
		files[filepath.Join(docs, "benchmarks", c.file)] = c.svg
	}
	for path, content := range files {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("report: %w", err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return fmt.Errorf("report: %w", err)
		}
	}
	return nil
}

package report

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

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

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/statusd/statusd/test/campaign"
)

const (
	document = "docs/reference/compatibility.md"
	results  = "build/compat"
)

var (
	libraryMarks = campaign.Marks{Begin: "<!-- library: written by make compat -->", End: "<!-- end of library -->"}
	serverMarks  = campaign.Marks{Begin: "<!-- servers: written by make compat-servers -->", End: "<!-- end of servers -->"}
)

func main() { campaign.Main("compat", compat) }

func compat(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("compat", flag.ContinueOnError)
	short := flags.Bool("short", false, "servers: without the real tests")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if args = flags.Args(); len(args) < 2 {
		return errors.New("want library or servers, and versions")
	}
	switch what, versions := args[0], args[1:]; what {
	case "library":
		return library(ctx, versions)
	case "servers":
		return servers(ctx, versions, *short)
	default:
		return fmt.Errorf("unknown %q: want library or servers", what)
	}
}

// keep writes the result of a version.
func keep(kind, version string, result any) error {
	text, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(results, 0o755), os.WriteFile(filepath.Join(results, kind+"-"+version+".json"), text, 0o644))
}

// kept reads the results of all versions, the lowest version first.
func kept[T any](kind string) ([]T, error) {
	files, err := filepath.Glob(filepath.Join(results, kind+"-*.json"))
	if err != nil {
		return nil, err
	}
	var all []T
	for _, file := range files { // Glob sorts
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var result T
		if err := json.Unmarshal(text, &result); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, result)
	}
	return all, nil
}

// row is a row of a table in Markdown.
func row(cells ...string) string { return "| " + strings.Join(cells, " | ") + " |\n" }

// names are identifiers in Markdown.
func names(of []string) string {
	if len(of) == 0 {
		return "none"
	}
	return "`" + strings.Join(of, "`, `") + "`"
}

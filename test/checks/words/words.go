// Command words counts sentences whose subject or object is probably a pronoun without its noun, and quaint words (docs/internals/tests.md#words).
// Run at the root of the checkout, the command prints a table; with -list each place too, with -list KIND or -list SOURCE only these places.
package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// source is where a text is read.
type source string

const (
	inStrings   source = "strings of the programs"
	inDocuments source = "documents"
	inComments  source = "comments"
	inTests     source = "comments and messages of tests"
)

var sources = []source{inStrings, inDocuments, inComments, inTests}

// kind is a kind of sentence.
type kind struct {
	name    string
	pattern *regexp.Regexp
}

// A sentence is matched alone, with a space before and after.
var kinds = []kind{
	{"begins with a pronoun", regexp.MustCompile(`^ (?:It|That|Those|One|None|Some|Both|Neither|Another|Others)(?: (?:is|was|are|were|has|had|have|does|do|did|can|may|must|would|will|needs?|takes?|gets?|gives?|comes?|goes|says?|means?|makes?|keeps?|reads?|writes?|returns?|[a-z]+s|of which|that|which|who|whose|without|with)\b|'s\b)`)},
	{"the one that, those that", regexp.MustCompile(`(?i)\b(?:the ones?|those|one|none|the other|others|another one|an other one|an older one|a newer one|that) (?:that|which|who|whose|of which|without which|in which|with which)\b`)},
	{"that of, those of", regexp.MustCompile(`(?i)[ (](?:that|those|the ones?) of (?:the|a|an|its|this|all|each|another|[a-z]+s)\b`)},
	{"is none, is one", regexp.MustCompile(`(?i)\b(?:(?:is|are|was|were|be) (?:none|one|those|that)(?: of (?:them|those))?|has none|have none|had none|with none|without one)[ ]*(?:[.,;:)]|$)`)},
	{"after that, of those", regexp.MustCompile(`(?i)\b(?:of|for|by|with|after|before|from|in|to|at|on|without|about|than) (?:that|those)[ ]*(?:[.,;:)]|$)`)},
	{"quaint words", regexp.MustCompile(`(?i)\b(?:nobody|whoever|whomever|anew|for ever|(?:is|are|was|were|be|been) told|whence|whither|lest|thereof|thereby|therein|whereby|wherein|hitherto|naught|aught|save for|bears? (?:that|it)|in vain|by and by|at first sight|(?:does|do|is|are) not (?:worth|so)|nor (?:is|are|does|do)|as (?:yet|of old)|of old|no sooner|in peace|hears? (?:of|that)|not taken|has news|knows? nothing|what is known)\b`)},
}

// place is a sentence of a kind.
type place struct {
	source   source
	kind     string
	file     string
	line     int
	sentence string
}

func (p place) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", p.file, p.line, p.kind, p.sentence)
}

// count finds the sentences in the files below a directory.
func count(dir string, files []string) ([]place, error) {
	var found []place
	for _, name := range files {
		path := filepath.Join(dir, name)
		switch {
		case strings.Contains(name, "testdata/"), strings.Contains(name, "test/upstream/kubelet/"):
			continue // recorded, or made for another module
		case strings.HasSuffix(name, ".go"):
			more, err := program(name, path)
			if err != nil {
				return nil, err
			}
			found = append(found, more...)
		case strings.HasSuffix(name, ".md"), strings.HasSuffix(name, ".8"), strings.HasSuffix(name, ".html"), strings.HasSuffix(name, "NOTES.txt"):
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			found = append(found, document(name, string(text))...)
		case strings.HasPrefix(name, "deploy/") && strings.HasSuffix(name, ".yaml"):
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			found = append(found, manifest(name, string(text))...)
		}
	}
	return found, nil
}

// program reads comments and strings.
func program(name, path string) ([]place, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	comments, texts := inComments, inStrings
	if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "test/") {
		comments, texts = inTests, inTests
	}
	var found []place
	for _, group := range file.Comments {
		found = append(found, judge(comments, name, files.Position(group.Pos()).Line, group.Text())...)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		literal, ok := n.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		if text, err := strconv.Unquote(literal.Value); err == nil && strings.Contains(text, " ") {
			found = append(found, judge(texts, name, files.Position(literal.Pos()).Line, text)...)
		}
		return true
	})
	return found, nil
}

var (
	tag   = regexp.MustCompile(`(?s)<!--.*?-->|<[^>]*>`)
	fence = "```"
)

// document reads the paragraphs, the items of lists and the cells of tables of a document, and no code.
func document(name, text string) []place {
	var found []place
	var paragraph []string
	begin, code := 1, false
	flush := func() {
		found = append(found, judge(inDocuments, name, begin, tag.ReplaceAllString(strings.Join(paragraph, " "), " "))...)
		paragraph = nil
	}
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(trimmed, fence):
			code = !code
			flush()
			continue
		case code, strings.HasPrefix(line, "    "), strings.HasPrefix(line, ".\\\""):
			flush()
			continue
		case trimmed == "":
			flush()
			continue
		case strings.HasPrefix(trimmed, "#"):
			flush()
		case strings.HasPrefix(trimmed, "|"):
			flush()
			begin = i + 1
			for _, cell := range strings.Split(trimmed, "|") {
				paragraph = []string{cell}
				flush()
			}
			continue
		}
		if bullet := strings.TrimPrefix(strings.TrimPrefix(trimmed, "- "), "* "); bullet != trimmed {
			flush()
			trimmed = bullet
		}
		if len(paragraph) == 0 {
			begin = i + 1
		}
		paragraph = append(paragraph, trimmed)
	}
	flush()
	return found
}

var key = regexp.MustCompile(`^\s*(?:- )?[\w./-]+:\s+["']?|^\s*#+\s?`)

// manifest reads the comments and values of a manifest, each line alone.
func manifest(name, text string) []place {
	var found []place
	for i, line := range strings.Split(text, "\n") {
		found = append(found, judge(inDocuments, name, i+1, key.ReplaceAllString(line, ""))...)
	}
	return found
}

// A clause after a colon or a semicolon belongs to the sentence: its noun may stand before.
var end = regexp.MustCompile(`[.!?][)"”]?\s+|\n\s*\n|\n\s*[-*]\s`)

// judge splits a text into sentences and finds the kinds of each.
func judge(from source, file string, line int, text string) []place {
	var found []place
	at := 0
	for _, cut := range append(end.FindAllStringIndex(text, -1), []int{len(text), len(text)}) {
		sentence := strings.Join(strings.Fields(text[at:cut[1]]), " ")
		for _, k := range kinds {
			if k.pattern.MatchString(" " + sentence + " ") {
				found = append(found, place{from, k.name, file, line + strings.Count(text[:at], "\n"), sentence})
			}
		}
		at = cut[1]
	}
	return found
}

// table counts the places.
func table(found []place) string {
	var text strings.Builder
	text.WriteString("| kind |")
	for _, s := range sources {
		fmt.Fprintf(&text, " %s |", s)
	}
	text.WriteString("\n|---|" + strings.Repeat("--:|", len(sources)) + "\n")
	sums := make([]int, len(sources))
	for _, k := range kinds {
		fmt.Fprintf(&text, "| %s |", k.name)
		for i, s := range sources {
			n := 0
			for _, p := range found {
				if p.source == s && p.kind == k.name {
					n++
				}
			}
			sums[i] += n
			fmt.Fprintf(&text, " %d |", n)
		}
		text.WriteString("\n")
	}
	text.WriteString("| all |")
	for _, sum := range sums {
		fmt.Fprintf(&text, " %d |", sum)
	}
	return text.String() + "\n"
}

// tree lists the files of a checkout, without directories that make writes.
func tree(dir string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || entry.IsDir() {
			if slices.Contains([]string{".git", "bin", "build", "state"}, name) {
				return fs.SkipDir
			}
			return err
		}
		files = append(files, name)
		return nil
	})
	return files, err
}

func main() {
	list := flag.Bool("list", false, "print each place")
	flag.Parse()
	files, err := tree(".")
	var found []place
	if err == nil {
		found, err = count(".", files)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "words:", err)
		os.Exit(1)
	}
	if *list {
		for _, p := range found {
			if args := flag.Args(); len(args) == 0 || slices.Contains(args, p.kind) || slices.Contains(args, string(p.source)) {
				fmt.Println(p)
			}
		}
	}
	fmt.Print(table(found))
}

package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// events are those of go test -json with a test that passes, one that fails in a subtest, one that is skipped, a package that
// does not build and one that crashes.
const events = `{"Action":"start","Package":"github.com/statusd/statusd/a"}
{"Action":"run","Package":"github.com/statusd/statusd/a","Test":"TestGood"}
{"Action":"output","Package":"github.com/statusd/statusd/a","Test":"TestGood","Output":"quiet\n"}
{"Action":"pass","Package":"github.com/statusd/statusd/a","Test":"TestGood","Elapsed":2}
{"Action":"output","Package":"github.com/statusd/statusd/a","Test":"TestBad","Output":"--- FAIL: TestBad\n"}
{"Action":"output","Package":"github.com/statusd/statusd/a","Test":"TestBad/sub","Output":"got 1, want 2\n"}
{"Action":"fail","Package":"github.com/statusd/statusd/a","Test":"TestBad/sub","Elapsed":1}
{"Action":"fail","Package":"github.com/statusd/statusd/a","Test":"TestBad","Elapsed":3}
{"Action":"skip","Package":"github.com/statusd/statusd/a","Test":"TestLater","Elapsed":0}
{"Action":"output","Package":"github.com/statusd/statusd/a","Output":"FAIL\tgithub.com/statusd/statusd/a\t6s\n"}
{"Action":"fail","Package":"github.com/statusd/statusd/a","Elapsed":6}
{"Action":"output","Package":"github.com/statusd/statusd/b","Output":"ok  \tgithub.com/statusd/statusd/b\t1s\n"}
{"Action":"pass","Package":"github.com/statusd/statusd/b","Elapsed":1}
{"ImportPath":"github.com/statusd/statusd/c","Action":"build-output","Output":"c.go:1: undefined: x\n"}
{"Action":"fail","Package":"github.com/statusd/statusd/c","Elapsed":0,"FailedBuild":"github.com/statusd/statusd/c"}
{"Action":"output","Package":"github.com/statusd/statusd/d","Test":"TestCrash","Output":"panic: boom\n"}
{"Action":"fail","Package":"github.com/statusd/statusd/d","Elapsed":1}
a line of go itself
`

func TestReport_ShowsFailuresClosingLinesAndNumbers(t *testing.T) {
	var out strings.Builder
	r := newReport(&out, func(string) {}, 4)
	if err := r.read(strings.NewReader(events)); err != nil {
		t.Fatal(err)
	}
	if r.close() {
		t.Error("tests failed, and all is well")
	}
	for _, want := range []string{
		"--- FAIL: TestBad\n", "got 1, want 2\n", "FAIL\tgithub.com/statusd/statusd/a\t6s\n", "ok  \tgithub.com/statusd/statusd/b\t1s\n",
		"c.go:1: undefined: x\n", "panic: boom\n", "a line of go itself\n",
		"the slowest tests:\n    3.00s a TestBad\n    2.00s a TestGood\n", "  a TestBad\n", "  c (does not build)\n", "  d TestCrash (did not end)\n",
		"1 passed, 2 failed, 1 skipped; 4 of 4 packages",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "quiet") {
		t.Errorf("the output of a test that passed is shown:\n%s", out.String())
	}
}

func TestReport_WithoutFailuresIsWell(t *testing.T) {
	r := newReport(&strings.Builder{}, func(string) {}, 1)
	if err := r.read(strings.NewReader(`{"Action":"pass","Package":"p","Test":"TestX"}` + "\n" + `{"Action":"pass","Package":"p"}`)); err != nil {
		t.Fatal(err)
	}
	if !r.close() {
		t.Error("all tests passed, and not all is well")
	}
}

func TestRealTestsAreThoseOfFilesWithTheTag(t *testing.T) {
	dir := t.TempDir()
	for name, source := range map[string]string{
		"a_test.go": "package a\n\nfunc TestPure(t *testing.T) {}\n",
		"real_a_test.go": "//go:build real\n\npackage a\n\nfunc TestMain(m *testing.M) {}\nfunc TestReal(t *testing.T) {}\n" +
			"func Testimony() {}\nfunc (x) TestMethod() {}\nfunc Example() {}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(source), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p := pkg{Dir: dir, TestGoFiles: []string{"a_test.go", "real_a_test.go"}}
	if got, err := p.testsTagged("real"); err != nil || !slices.Equal(got, []string{"TestReal", "Example"}) {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestSelectedTests(t *testing.T) {
	tests := []string{"TestPowerLoss_AtEachStep", "TestLimit", "TestLimit"}
	for run, want := range map[string]string{"": "^(TestLimit|TestPowerLoss_AtEachStep)$", "Limit/trace": "^(TestLimit)$", "Other": "^()$"} {
		got, err := options{run: run}.selected(slices.Clone(tests))
		if err != nil || exactly(got) != want {
			t.Errorf("-run %q: got %s, %v, want %s", run, exactly(got), err, want)
		}
	}
	if _, err := (options{run: "("}).selected(tests); err == nil {
		t.Error("an expression that is none was taken")
	}
}

func TestLongPackagesComeFirst(t *testing.T) {
	packages := []pkg{{ImportPath: "a", TestGoFiles: []string{"1"}}, {ImportPath: "b"}, {ImportPath: "c", TestGoFiles: []string{"1"}, XTestGoFiles: []string{"2"}}}
	byLength(packages)
	if got := packages[0].ImportPath + packages[1].ImportPath + packages[2].ImportPath; got != "cab" {
		t.Errorf("got %s, want cab", got)
	}
}

func TestGoroutinesAreSeen(t *testing.T) {
	for source, want := range map[string]bool{"go f()": true, "func() { go f() }()": true, "f()": false} {
		file, err := parser.ParseFile(token.NewFileSet(), "a.go", "package a\n\nfunc a() { "+source+" }\n", 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := startsGoroutines(file); got != want {
			t.Errorf("%s: got %t, want %t", source, got, want)
		}
	}
}

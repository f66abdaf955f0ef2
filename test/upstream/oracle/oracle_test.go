package oracle

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statusd/statusd/test/progress"
)

var (
	programsFlag = flag.Uint64("programs", 200, "how many random programs TestOracle runs")
	seedFlag     = flag.Uint64("seed", 1, "the seed of TestOracle's programs; 0 takes one from the clock")
	programFlag  = flag.Int64("program", -1, "run only the program of this number, and print its trace")
	failuresFlag = flag.Int64("failures", 1, "how many programs with an unwanted difference end TestOracle")
	wildFlag     = flag.Bool("wild", false, "what is rare is three times as frequent in TestOracle's programs")
	durationFlag = flag.Duration("duration", 0, "stop TestOracle after this time, whatever -programs says; 0: no limit")
)

// inBubble runs a program in a synctest bubble of its own.
func inBubble(t *testing.T, program Program) (outcome Outcome) {
	synctest.Test(t, func(*testing.T) { outcome = Run(program) })
	return outcome
}

// failWithShortest fails the test with the shortest program that shows the difference of an
// outcome, and with the trace of the run that showed it.
func failWithShortest(t *testing.T, program Program, outcome Outcome) {
	t.Helper()
	short := program
	Shrink(program, func(p Program) bool {
		o := inBubble(t, p)
		if o.Difference == "" {
			return false
		}
		short, outcome = p, o // the newest that fails is the shortest
		return true
	})
	t.Errorf("an unwanted difference. The shortest program that shows it:\n\n%s\nits trace:\n\n%s\n\n%s",
		short, strings.Join(outcome.Trace, "\n"), outcome.Difference)
	if again := inBubble(t, short); again.Difference == "" {
		t.Error("a second run of this program shows no difference: what it does depends on the order of goroutines")
	}
}

// TestKept runs the programs that once found a difference.
func TestKept(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no kept programs in testdata: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			f, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			program, err := ParseProgram(f)
			if err != nil {
				t.Fatal(err)
			}
			if outcome := inBubble(t, program); outcome.Difference != "" {
				failWithShortest(t, program, outcome)
			}
		})
	}
}

// TestOracle runs random programs against both managers.
func TestOracle(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	if *programFlag >= 0 {
		program := Generate(seed, uint64(*programFlag), *wildFlag)
		outcome := inBubble(t, program)
		t.Logf("seed %d, program %d:\n\n%s", seed, *programFlag, strings.Join(outcome.Trace, "\n"))
		if outcome.Difference != "" {
			failWithShortest(t, program, outcome)
		}
		return
	}
	fmt.Printf("oracle: seed %d, %d programs\n", seed, *programsFlag)
	c := campaign{seed: seed, wanted: make(map[string]int), corrected: make(map[string]int), began: time.Now(), line: progress.On(os.Stdout)}
	t.Run("programs", func(t *testing.T) {
		for worker := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint(worker), func(t *testing.T) {
				t.Parallel()
				c.work(t)
			})
		}
	})
	c.line.Close()
	c.summary()
}

// campaign is a run of many programs by several workers.
type campaign struct {
	seed   uint64
	began  time.Time
	next   atomic.Uint64
	failed atomic.Int64

	mu        sync.Mutex
	wanted    map[string]int
	corrected map[string]int
	pods      int
	done      int
	line      *progress.Line
}

// work takes programs until there are no more, time is up, or one fails.
func (c *campaign) work(t *testing.T) {
	for {
		number := c.next.Add(1) - 1
		if number >= *programsFlag || c.failed.Load() >= *failuresFlag {
			return
		}
		if *durationFlag > 0 && time.Since(c.began) > *durationFlag {
			return
		}
		program := Generate(c.seed, number, *wildFlag)
		outcome := inBubble(t, program)
		c.count(outcome)
		if outcome.Difference != "" && c.failed.Add(1) <= *failuresFlag {
			t.Errorf("seed %d, program %d; run it alone with: make oracle SEED=%d PROGRAM=%d WILD=%t", c.seed, number, c.seed, number, *wildFlag)
			failWithShortest(t, program, outcome)
		}
	}
}

func (c *campaign) count(outcome Outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for rule, n := range outcome.Wanted {
		c.wanted[rule] += n
	}
	for correction, n := range outcome.Corrected {
		c.corrected[correction] += n
	}
	c.pods += outcome.Pods
	c.done++
	c.line.Set("oracle: %d of at most %d programs, %.0f s", c.done, *programsFlag, time.Since(c.began).Seconds())
}

// summary prints how often each correction was made and each wanted difference met.
func (c *campaign) summary() {
	fmt.Printf("oracle: %d programs of seed %d with %d pods in %.0f s; wanted differences met:\n", c.done, c.seed, c.pods, time.Since(c.began).Seconds())
	for _, rule := range Wanted {
		fmt.Printf("  %6d  %s\n", c.wanted[rule.Name], rule.Name)
	}
	fmt.Println("corrections of the kubelet's side:")
	for _, correction := range Corrections {
		fmt.Printf("  %6d  %s\n", c.corrected[correction.Name], correction.Name)
	}
}

// TestGeneratedProgramsCanBeKept checks that a program survives being written and read.
func TestGeneratedProgramsCanBeKept(t *testing.T) {
	for number := range uint64(100) {
		program := Generate(7, number, false)
		read, err := ParseProgram(strings.NewReader(program.String()))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.EqualFunc(program, read, func(a, b Step) bool { return a.String() == b.String() && a.Pod == b.Pod }) {
			t.Fatalf("program %d reads back as\n%s\nwant\n%s", number, read, program)
		}
	}
}

// TestReadmeListsTheDifferences keeps the tables in test/upstream/README.md true.
func TestReadmeListsTheDifferences(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var corrections, wanted strings.Builder
	for _, c := range Corrections {
		fmt.Fprintf(&corrections, "| %s | %s |\n", c.Name, c.Why)
	}
	for _, rule := range Wanted {
		fmt.Fprintf(&wanted, "| %s | %s |\n", rule.Name, rule.Why)
	}
	for what, table := range map[string]string{"corrections.go": corrections.String(), "wanted.go": wanted.String()} {
		if !strings.Contains(string(readme), "|---|---|\n"+table+"\n") {
			t.Errorf("a table in test/upstream/README.md is not that of %s, which would be\n%s", what, table)
		}
	}
}

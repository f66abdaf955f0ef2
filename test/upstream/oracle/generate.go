package oracle

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// Generate returns the program of a seed. Seeds are written as SEED/NUMBER, with the number of the
// program in a run. In a wild program, rare steps are three times as frequent, so that several of
// them coincide sooner.
func Generate(seed, number uint64, wild bool) Program {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, number)), wild: wild}
	lives := make([][]Step, 1+g.IntN(2))
	for i := range lives {
		lives[i] = g.life(string(rune('a' + i)))
	}
	return g.interleave(lives)
}

// generator draws programs: lives of pods as they happen on a node, shuffled together,
// with steps left out and others put in at random.
type generator struct {
	*rand.Rand
	wild bool
}

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

// rarely is chance for what is rare, unless the program is a wild one.
func (g *generator) rarely(percent int) bool {
	if g.wild {
		percent *= 3
	}
	return g.chance(percent)
}

func pick[T any](g *generator, values ...T) T { return values[g.IntN(len(values))] }

// interleave merges the lives, keeping the order within each.
func (g *generator) interleave(lives [][]Step) Program {
	var program Program
	for len(lives) > 0 {
		i := g.IntN(len(lives))
		program = append(program, lives[i][0])
		if lives[i] = lives[i][1:]; len(lives[i]) == 0 {
			lives = slices.Delete(lives, i, i+1)
		}
	}
	return program
}

// life is one pod from its creation to its end, or to somewhere before.
func (g *generator) life(name string) []Step {
	l := &life{generator: g, name: name}
	l.create()
	l.start()
	for range g.IntN(4) {
		l.incident()
	}
	if g.chance(65) {
		l.end()
	}
	if g.rarely(15) {
		l.after()
	}
	return l.steps
}

// life collects the steps of one pod.
type life struct {
	*generator
	name                   string
	steps                  []Step
	init, sidecar, regular []string
	static                 bool
}

// add appends a step, and at times something unexpected before it.
func (l *life) add(op string, args ...string) {
	if l.rarely(12) {
		l.surprise()
	}
	if l.chance(4) {
		return // it never comes
	}
	l.put(op, args...)
}

func (l *life) put(op string, args ...string) {
	step := Step{Op: op, Args: args}
	if !slices.Contains(podless, op) {
		step.Pod = l.name
	}
	l.steps = append(l.steps, step)
}

func (l *life) all() []string { return slices.Concat(l.init, l.sidecar, l.regular) }

// anyContainer names one of the containers.
func (l *life) anyContainer() string { return pick(l.generator, l.all()...) }

func (l *life) create() {
	words := []string{pick(l.generator, "always", "onfailure", "never", "never")}
	for i := range l.IntN(3) {
		if l.chance(50) {
			words = append(words, "init")
			l.init = append(l.init, fmt.Sprintf("i%d", i))
		} else {
			words = append(words, "sidecar")
			l.sidecar = append(l.sidecar, fmt.Sprintf("s%d", i))
		}
	}
	for i := range 1 + l.IntN(2) {
		words = append(words, "app")
		l.regular = append(l.regular, fmt.Sprintf("c%d", i))
	}
	for _, extra := range []struct {
		word    string
		percent int
	}{{"debug", 10}, {"rule", 15}, {"restart-all", 10}, {"own-never", 8}, {"gate", 20}, {"gen=3", 10}} {
		if l.rarely(extra.percent) {
			words = append(words, extra.word)
		}
	}
	if l.rarely(20) {
		l.static = true
		words = append(words, "static")
		if l.chance(30) {
			words = append(words, "unmirrored")
		}
	}
	l.put("pod", words...)
}

// start brings the containers up, one group after the other.
func (l *life) start() {
	l.report()
	for _, c := range l.init {
		l.add("run", c)
		if l.chance(30) {
			l.report()
		}
		l.add("exit", c, pick(l.generator, "0", "0", "0", "1"))
	}
	for _, c := range l.sidecar {
		l.add("run", l.runWords(c)...)
	}
	if len(l.init)+len(l.sidecar) > 0 && l.chance(50) {
		l.report()
	}
	for _, c := range l.regular {
		l.add("run", l.runWords(c)...)
	}
	l.report()
	l.maybeSettle(40)
}

func (l *life) runWords(container string) []string {
	words := []string{container}
	for _, odd := range []string{"unready", "unstarted", "silent"} {
		if l.chance(15) {
			words = append(words, odd)
		}
	}
	return words
}

func (l *life) maybeSettle(percent int) {
	if l.chance(percent) {
		l.put("settle")
	}
}

// report reports, mostly as usual.
func (l *life) report() {
	var words []string
	for l.rarely(15) {
		words = append(words, pick(l.generator, oddWords...))
	}
	if l.rarely(3) {
		words = append(words, "phase="+pick(l.generator, "Pending", "Running", "Succeeded", "Failed", "Unknown"))
	}
	if l.rarely(3) {
		words = append(words, "drop="+pick(l.generator, "Ready", "PodScheduled", "Initialized", "ContainersReady"))
	}
	l.add("report", words...)
}

var (
	oddWords    = slices.Sorted(maps.Keys(oddities))
	writerWords = slices.Sorted(maps.Keys(secondWriters))
)

// incident is something that happens to a running pod.
func (l *life) incident() {
	switch l.IntN(7) {
	case 0: // a container ends and comes back
		c := l.anyContainer()
		l.add("exit", c, pick(l.generator, "0", "1", "42", "43"), "message="+l.message())
		l.report()
		if l.chance(50) {
			l.add("wait", c)
			l.report()
		}
		l.add("run", l.runWords(c)...)
		l.report()
	case 1: // probes
		for range 1 + l.IntN(3) {
			l.probe()
		}
	case 2: // another writer
		l.add("write", l.late(pick(l.generator, writerWords...))...)
		if l.chance(50) {
			l.report()
		}
	case 3: // an outage
		l.add("down")
		l.report()
		l.probe()
		l.add("up")
	case 4: // a resize
		l.add("write", "generation")
		l.add("resize", pick(l.generator, "pending", "progress"), pick(l.generator, "Deferred", "Infeasible", "Other"), "2")
		l.report()
		l.add("resize", pick(l.generator, "no-pending", "no-progress", "backfill", "pending", "progress"))
		l.report()
	case 5: // the mirror goes, or comes again
		if l.static {
			l.add(pick(l.generator, "mirror", "vanish", "mirror"), l.late()...)
			l.report()
		} else {
			l.probe()
		}
	case 6:
		l.surprise()
		l.report()
	}
	l.maybeSettle(30)
}

// message is the kind of a termination message, seldom a long one: those cost the most time.
func (l *life) message() string {
	if l.chance(20) {
		return pick(l.generator, "long", "rune", "snow", "stray")
	}
	return pick(l.generator, "short", "")
}

func (l *life) probe() {
	words := []string{l.anyContainer(), pick(l.generator, "true", "false")}
	if l.chance(8) {
		words = append(words, "old")
	}
	l.add(pick(l.generator, "ready", "ready", "started"), words...)
}

// late adds to the words, at times, that the watch shows it later.
func (l *life) late(words ...string) []string {
	if l.chance(35) {
		words = append(words, "late")
	}
	return words
}

// end takes the pod to its end: by itself, by a deletion, or by an eviction.
func (l *life) end() {
	deleted := l.chance(60)
	if deleted {
		l.add("delete", l.late()...)
	}
	if l.chance(70) {
		for _, c := range slices.Concat(l.regular, l.sidecar) {
			l.add("exit", c, pick(l.generator, "0", "0", "1", "137"), "message="+l.message())
		}
	}
	if l.chance(60) {
		words := []string{}
		if !deleted && l.chance(40) {
			words = append(words, "evicted", "disruption", "phase=Failed")
		}
		if l.rarely(15) {
			words = append(words, "ready") // not noticed yet
		}
		l.add("report", words...)
		l.maybeSettle(25)
	}
	if l.chance(85) {
		l.add("stop")
	}
	if l.chance(50) {
		l.report()
	}
	if l.chance(85) {
		l.add("terminate")
	}
	if l.rarely(20) {
		l.report() // of a worker that is late
	}
	if !deleted && l.chance(40) {
		l.maybeSettle(40)
		l.add("delete", l.late()...)
	}
	l.maybeSettle(50)
}

// after is what may still happen when the pod has ended.
func (l *life) after() {
	switch l.IntN(4) {
	case 0:
		l.add("orphans", l.name)
		l.report()
	case 1:
		l.add("vanish", l.late()...)
		l.add("orphans")
	case 2:
		l.add("recreate", l.late()...)
		l.report()
	case 3:
		l.add("forget")
		l.add("orphans")
	}
	l.maybeSettle(50)
}

// surprise is something that may come at any time.
func (l *life) surprise() {
	switch l.IntN(10) {
	case 0:
		l.put("orphans")
	case 1:
		l.put("orphans", l.name)
	case 2:
		l.put("write", l.late(pick(l.generator, writerWords...))...)
	case 3:
		l.put("sleep", pick(l.generator, "1", "5", "12"))
	case 4:
		l.put("watch")
	case 5:
		l.put("lose")
	case 6:
		l.put("settle")
	case 7:
		l.put(pick(l.generator, "down", "up"))
	case 8:
		l.put(pick(l.generator, "vanish", "recreate", "delete", "mirror", "forget"), l.late()...)
	case 9:
		l.put("resize", strings.Fields(pick(l.generator, "pending Deferred 1", "progress Other 2", "no-pending", "no-progress", "backfill", "progress"))...)
	}
}

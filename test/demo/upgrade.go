package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/statusd/statusd/internal/alert/alertsetup"
	"github.com/statusd/statusd/internal/alert/endpoint"
	"github.com/statusd/statusd/internal/run"
	"github.com/statusd/statusd/runtime/process/shim"
	"github.com/statusd/statusd/test/campaign"
)

const (
	// Each replacement has jobs that end and pods that come and go.
	upgradeJobs   = 12
	upgradeGuests = 4
	// upgradeWithin is how soon the API and the receivers of alerts must be right again, creationWithin how soon at the beginning.
	upgradeWithin  = 2 * time.Minute
	creationWithin = 15 * time.Minute
	// upgradeFlap is how often the readiness of a pod changes.
	upgradeFlap = 250 * time.Millisecond
)

// The rules of the upgrade: an alert for each pod that runs, and one for each pod that runs without being ready.
const upgradeRules = `apiVersion: statusd/v1alpha1
kind: Rules
groups:
  - name: upgrade
    rules:
      - {name: Runs, expr: pod.phase == "Running", severity: info}
      - {name: Unready, expr: pod.phase == "Running" && pod.ready < pod.containers, severity: warning}
`

// upgradeOptions configure an upgrade.
type upgradeOptions struct {
	previous, next string // directories with statusd and statusd-shim
	pods, times    int
	seed           uint64
}

// upgradeRun is a node whose statusd is replaced.
type upgradeRun struct {
	*crowd
	options   upgradeOptions
	random    *rand.Rand
	installed string // directory
	pods      *upgradePods
	watch     *upgradeWatch
	book      *alertBook
}

// upgrade replaces the programs of statusd under running pods as a package does: the files first, then the process. It goes to another version
// and back, while pods end, come, go and lose readiness, and alerts fire. upgrade fails if a container was restarted, a status or an alert was lost, or
// an alert came twice.
func (d *demo) upgrade(ctx context.Context, o upgradeOptions) (err error) {
	if least := 2 * (upgradeJobs + upgradeGuests); o.pods < least {
		return fmt.Errorf("want at least %d pods", least)
	}
	dir, err := os.MkdirTemp("", "statusd-upgrade-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o711); err != nil {
		return err
	}
	u := &upgradeRun{options: o, random: rand.New(rand.NewPCG(o.seed, 0)), installed: filepath.Join(dir, "bin"), book: newAlertBook()}
	if err := errors.Join(os.Mkdir(u.installed, 0o755), u.install(o.previous)); err != nil {
		return err
	}
	receiver := httptest.NewServer(u.book)
	defer closeAll(receiver)
	mine := *d
	mine.statusd = filepath.Join(u.installed, "statusd")
	configure := func(config *run.Config) error {
		rules := filepath.Join(dir, "rules.yaml")
		config.Node.MaxPods = 2 * o.pods
		config.Rules.Files = []string{rules}
		config.Outputs.Webhooks = []alertsetup.Webhook{{Name: "book", Options: endpoint.Options{URL: receiver.URL + bookWebhook}}}
		config.Outputs.Alertmanagers = []endpoint.Options{{URL: receiver.URL}}
		return os.WriteFile(rules, []byte(upgradeRules), 0o644)
	}
	return mine.withNode(ctx, withoutControllers, configure, func(c *crowd) (err error) {
		u.crowd, u.pods = c, newUpgradePods(c.admin, dir)
		if u.watch, err = watchUpgrade(ctx, c.admin); err != nil {
			return err
		}
		defer u.watch.stop()
		return u.replaceAll(ctx)
	})
}

// install replaces the programs as dpkg does: a file that runs is not written, its name gets another file.
func (u *upgradeRun) install(from string) error {
	for _, program := range []string{"statusd", shim.Program} {
		content, err := os.ReadFile(filepath.Join(from, program))
		if err != nil {
			return fmt.Errorf("%w; make upgrade builds it", err)
		}
		to := filepath.Join(u.installed, program)
		if err := errors.Join(os.WriteFile(to+".new", content, 0o755), os.Rename(to+".new", to)); err != nil {
			return err
		}
	}
	return nil
}

// replaceAll makes the pods and replaces statusd again and again.
func (u *upgradeRun) replaceAll(ctx context.Context) error {
	steady := u.options.pods - upgradeJobs - upgradeGuests
	for i := range steady {
		kind := idle
		if i%10 == 9 {
			kind = flapping
		}
		if err := u.pods.add(ctx, kind); err != nil {
			return err
		}
	}
	if err := u.pods.addAll(ctx, guest, upgradeGuests); err != nil {
		return err
	}
	u.say("| replacement | SIGTERM to exit, s | ends that statusd did not see: reported, s after its start | all right, s after its start | writes to pods without a change | alerts that came twice |")
	u.say("|---|--:|--:|--:|--:|--:|")
	versions := []string{u.options.previous, u.options.next}
	for i := range u.options.times {
		if err := u.replace(ctx, versions[(i+1)%2], []string{"forward", "back"}[i%2]); err != nil {
			return fmt.Errorf("replacement %d: %w", i+1, err)
		}
	}
	return u.judge()
}

// replace replaces statusd once. Something happens before, while the new files are there and the old process runs, while no statusd runs, and
// after the start.
func (u *upgradeRun) replace(ctx context.Context, with, direction string) error {
	if err := u.pods.addAll(ctx, job, upgradeJobs); err != nil {
		return err
	}
	if err := u.awaitRight(ctx, creationWithin); err != nil {
		return fmt.Errorf("before it: %w", err)
	}
	jobs, old := u.pods.named(job), u.pods.named(guest)
	third := len(jobs) / 3
	before, twice := u.watch.writes(u.pods.named(idle)), len(u.book.violations())
	flaps := u.flap(ctx)
	defer flaps()
	if err := u.end(ctx, jobs[:third]); err != nil {
		return err
	}
	if err := u.install(with); err != nil {
		return err
	}
	if err := u.pods.addAll(ctx, guest, upgradeGuests/2); err != nil { // the old statusd runs them with the new shim, or does not come to it
		return err
	}
	stopping := time.Now()
	if err := u.daemon.stop(ctx); err != nil {
		return err
	}
	stopped := time.Since(stopping)
	missed := jobs[third : 2*third]
	if err := u.end(ctx, missed); err != nil {
		return err
	}
	if err := errors.Join(u.pods.remove(ctx, old[:len(old)-1]...), u.pods.addAll(ctx, guest, upgradeGuests/2)); err != nil {
		return err
	}
	started := time.Now()
	if err := u.start(); err != nil {
		return err
	}
	for _, name := range jobs[2*third:] {
		if err := campaign.Pause(ctx, time.Duration(u.random.Int64N(int64(200*time.Millisecond)))); err != nil {
			return err
		}
		if err := u.end(ctx, []string{name}); err != nil {
			return err
		}
	}
	if err := u.pods.remove(ctx, old[len(old)-1]); err != nil {
		return err
	}
	flaps()
	if err := u.awaitRight(ctx, upgradeWithin); err != nil {
		return err
	}
	right := time.Since(started)
	writes := u.watch.writes(u.pods.named(idle)) - before
	u.say("| %s, to %s | %.2f | %.2f | %.2f | %d | %d |", direction, version(filepath.Join(u.installed, "statusd")), stopped.Seconds(), u.watch.lastEnd(missed).Sub(started).Seconds(),
		right.Seconds(), writes, len(u.book.violations())-twice)
	return u.pods.remove(ctx, jobs...)
}

// start starts the installed statusd with the config of the last one.
func (u *upgradeRun) start() error {
	quiet := *u.demo
	quiet.out = io.Discard
	next, err := quiet.startStatusd(u.daemon.config)
	if err == nil {
		u.daemon = next
	}
	return err
}

// end lets jobs end.
func (u *upgradeRun) end(ctx context.Context, names []string) error {
	for _, name := range names {
		if err := u.pods.end(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// flap changes the readiness of pods until the returned function is called, which may be called twice.
func (u *upgradeRun) flap(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	random := rand.New(rand.NewPCG(u.options.seed, u.random.Uint64()))
	names := u.pods.named(flapping)
	go func() {
		defer close(done)
		ticker := time.NewTicker(upgradeFlap)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				u.pods.flip(names[random.IntN(len(names))])
			}
		}
	}()
	return func() { cancel(); <-done }
}

// awaitRight waits until the API and the receivers of alerts have what is true of the pods.
func (u *upgradeRun) awaitRight(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return u.daemon.await(ctx, func() error {
		wrong := u.watch.compare(u.pods)
		wrong = append(wrong, u.book.compare(u.watch.all())...)
		if len(wrong) == 0 {
			return nil
		}
		return fmt.Errorf("%d differences: %s", len(wrong), strings.Join(wrong[:min(len(wrong), 10)], "; "))
	})
}

// judge says what must never have happened.
func (u *upgradeRun) judge() error {
	wrong := append(u.watch.violations(), u.book.violations()...)
	fired, resolved := u.book.count()
	u.say("\n%d times replaced under %d pods; %d containers ended as told, none was restarted; %d alerts fired and %d were resolved",
		u.options.times, u.options.pods, u.pods.ended, fired, resolved)
	if len(wrong) > 0 {
		return fmt.Errorf("what must not happen: %s", strings.Join(wrong, "; "))
	}
	return nil
}

// version is what a statusd says that it is.
func version(program string) string {
	out, err := exec.Command(program, "version").Output()
	if fields := strings.Fields(string(out)); err == nil && len(fields) > 1 {
		return fields[1]
	}
	return "unknown"
}

# statusd: `make help` lists the targets.

GO          ?= go
FUZZTIME    ?= 60s
STATICCHECK := $(GO) tool -modfile=$(CURDIR)/tools/go.mod staticcheck

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z][a-z-]*:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/statusd and bin/statusd-shim
	@test -e bin/statusd || echo "building bin/statusd: the first time takes a minute or two on 2 cores, because it compiles client-go and the types of the API"
	$(GO) build -o bin/statusd ./cmd/statusd
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o bin/statusd-shim ./cmd/statusd-shim

.PHONY: controlplane
controlplane: ## Build bin/controlplane; the first time takes 7 to 8 minutes on 2 cores: it compiles kube-apiserver, etcd, scheduler and controllers
	$(GO) run ./internal/controlplane/build

.PHONY: kubelet
kubelet: ## Build build/kubelet-1.36.3, the stock kubelet for tests and demonstrations; the first time takes some minutes
	rival/kubernetes.sh kubelet build/kubelet-1.36.3

.PHONY: packages
packages:
	@.ci/packages

.PHONY: axe
axe: packages
	@web/fetch-axe

.PHONY: test
test: packages controlplane kubelet axe ## Run all tests under the race detector; installs the packages that they need, as root on Debian
	$(GO) test -race -timeout 20m ./...
	cd controlplane && $(GO) test -race ./accounts ./datadir ./nodecerts ./pki

.PHONY: lint
lint: controlplane ## gofmt, go vet, staticcheck
	@unformatted=$$(git ls-files -co --exclude-standard '*.go' | xargs -r gofmt -l); \
	if [ -n "$$unformatted" ]; then echo "not gofmt-ed (run gofmt -w on them):"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(STATICCHECK) ./...
	cd controlplane && $(GO) vet ./...
	cd controlplane && $(STATICCHECK) ./accounts ./datadir ./nodecerts ./pki # the rest would make it analyze all of Kubernetes

.PHONY: fuzz
fuzz: ## Fuzz each target for FUZZTIME (60s)
	@set -e; for package in podstatus api rules rules/endpoint rules/webhook guard/monitor; do for target in $$(cd $$package && grep -ho 'func Fuzz[A-Za-z]*' *_test.go | cut -d' ' -f2); do \
		echo "== $$target"; $(GO) test ./$$package -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x; done; done

.PHONY: bench
bench: controlplane ## Benchmarks: statusd and the kubelet's manager in one run of about 35 minutes; writes build/bench.json and docs/benchmarks.md
	$(GO) test ./podstatus ./status ./journal ./rules -run '^$$' -bench . -benchmem
	cd rival && $(GO) run ./bench $(BENCHFLAGS)

SEED     ?= 1
RUNS     ?= 3
PROGRAMS ?= 20000
PROGRAM  ?= -1
WILD     ?= false

# Unless SEED is given, CI tries the programs of a seed of its own for each commit.
COMMIT_SEED = $(if $(filter file,$(origin SEED)),$(shell printf '%d' 0x$$(git rev-parse HEAD 2>/dev/null | cut -c1-8 | grep . || echo 1)),$(SEED))

.PHONY: oracle
oracle: ## The kubelet's manager and statusd's in 20,000 random programs: SEED, PROGRAMS, PROGRAM (one, with its trace), WILD
	cd rival && $(GO) test ./oracle -count=1 -run 'TestKept|TestFunctions'
	cd rival && $(GO) test ./oracle -count=1 -v -timeout 0 -run '^TestOracle$$' -args -seed $(SEED) -programs $(PROGRAMS) -program $(PROGRAM) -wild=$(WILD)

.PHONY: oracle-short
oracle-short: ## The same for at most 2 minutes, and the other tests of the rival module, for CI; the seed is taken from the commit unless SEED is given
	cd rival && $(GO) vet ./...
	cd rival && $(GO) test ./bench/... ./lives/... ./oracle/mutants
	@echo "oracle: seed $(COMMIT_SEED); the same programs again: make oracle SEED=$(COMMIT_SEED)"
	cd rival && $(GO) test ./oracle -count=1 -timeout 10m -args -seed $(COMMIT_SEED) -programs $(PROGRAMS) -duration 100s

.PHONY: oracle-mutants
oracle-mutants: ## Break a rule of statusd, one at a time, and see a random program find it: SEED; about 8 minutes
	cd rival && $(GO) run ./oracle/mutants -seed $(SEED)

.PHONY: lives
lives: build controlplane kubelet ## Pods' lives on a node of the kubelet and on one of statusd, for docs/kubelet-comparison.md: LIVES (names), RUNS; root, containerd, runc; about 50 minutes
	cd rival && $(GO) build -o ../bin/lives ./lives
	cd rival/lives && ../../bin/lives record -agent kubelet -runs $(RUNS) $(LIVES)
	cd rival/lives && ../../bin/lives record -agent statusd -runs $(RUNS) $(LIVES)
	cd rival/lives && ../../bin/lives compare

.PHONY: doors
doors: build controlplane kubelet ## The answers of a stock kubelet to each kind of credentials on each path, for server/testdata/doors.txt; root, containerd, runc; about a minute
	cd rival && $(GO) build -o ../bin/doors ./doors
	cd rival/doors && ../../bin/doors

.PHONY: mutants
mutants: ## Take the guard of each invariant out, one at a time, and see a test fail; about 3 minutes
	$(GO) run ./internal/mutants

.PHONY: cover
cover: ## Statement coverage of the rules, as text and build/cover.html
	@mkdir -p build
	$(GO) test -coverprofile=build/cover.out ./podstatus
	@$(GO) tool cover -func=build/cover.out | tail -1
	@$(GO) tool cover -html=build/cover.out -o build/cover.html

.PHONY: demo
demo: build
	@$(GO) build -o bin/demo ./internal/demo
	@$(GO) build -o bin/example-server ./examples/webserver

.PHONY: run
run: demo ## Start a control plane and statusd with example pods; the first time builds for minutes and says why
	@bin/demo

.PHONY: run-standalone
run-standalone: demo ## Start statusd with example pods and without a control plane
	@bin/demo --standalone

.PHONY: kubectl
kubectl: ## Build bin/kubectl, for machines that have none; the first time takes some minutes
	rival/kubernetes.sh kubectl bin/kubectl

.PHONY: metrics-server
metrics-server: ## Build bin/metrics-server, for kubectl top; the first time takes a minute
	rival/kubernetes.sh metrics-server bin/metrics-server

.PHONY: kubectl-session
kubectl-session: demo kubectl metrics-server ## Run examples/kubectl.sh, kubectl's daily verbs, on a node of its own; root; about 2 minutes
	@state=$$(mktemp -d) && trap 'rm -rf "$$state"' EXIT && chmod 755 "$$state" && bin/demo --state "$$state" with examples/kubectl.sh

.PHONY: footprint
footprint: demo ## Measure the CPU and memory of statusd with 100 idle pods, what its guard adds, and what serving the stream costs; about 10 minutes
	@bin/demo footprint
	@bin/demo guard-cost
	@bin/demo serving
	@if [ "$$(id -u)" = 0 ] && command -v containerd runc >/dev/null; then $(MAKE) --no-print-directory observe-footprint; \
	else echo "no observe part: it needs root, containerd and runc"; fi

.PHONY: observe-footprint
observe-footprint: scenes ## Measure what statusd observe costs beside a stock kubelet with 100 idle pods: CPU, memory, requests; root, containerd, runc; about 6 minutes
	@bin/scenes cost

.PHONY: serving
serving: demo ## Measure how far a client of the stream lags with 500 pods and 20 changes a second, and what serving costs; 2 minutes
	@bin/demo serving

.PHONY: alerting
alerting: packages demo ## Measure the time from a change to Alertmanager with 500 pods and 20 changes a second, beside Prometheus with the same rule; a minute
	@bin/demo alerting

KILLS ?= 100

.PHONY: alerting-kills
alerting-kills: demo ## Kill statusd with SIGKILL while alerts fire and end, and look whether one is lost: KILLS, SEED; about 3 minutes
	@state=$$(mktemp -d) && trap 'rm -rf "$$state"' EXIT && bin/demo --state "$$state" --kills $(KILLS) --seed $(SEED) alerting-kills

.PHONY: scale
scale: demo ## Start, run and delete 500 pods on one node and look for what is left
	@bin/demo scale

.PHONY: clients
clients: demo ## 200 clients follow a log and 50 run commands for a minute; look for goroutines, descriptors and processes that are left
	@bin/demo clients

.PHONY: unreachable
unreachable: demo ## Stop statusd for 60 s on a cluster with controllers, and measure how soon 100 pods are ready again; about 2 minutes
	@bin/demo unreachable

FAULTS ?= 200
PODS   ?= 30

.PHONY: faults
faults: demo ## Break disk, clock, boot, address and records under a running node and compare its statuses with its processes: FAULTS, PODS, SEED; root; about 15 minutes
	@bin/demo --faults $(FAULTS) --pods $(PODS) --seed $(SEED) faults

.PHONY: guard-demo
guard-demo: build controlplane ## The guard beside a stock kubelet: killed, ended, frozen, in maintenance, runtime and API server down; what is said and done after how many seconds; root, containerd, runc; about 2 minutes
	@$(GO) run ./internal/guarddemo

.PHONY: guard-flood
guard-flood: ## A log of 100 MB/s, read by the monitor of logs: its CPU, its memory, what it finds and what it does not read; beside expressions on each line; 2 minutes
	@mkdir -p build && $(GO) build -o build/guardflood ./internal/guardflood && build/guardflood

.PHONY: guard-systemd
guard-systemd: ## The guard under a systemd, a journald and a logind of their own, which power off at the end, in a container that debootstrap makes: root; a minute the first time; not part of CI
	@guard/service/systemd-container guard/service guard/monitor guard/nodedown

.PHONY: deb
deb: build ## Build build/statusd_VERSION_ARCH.deb: VERSION; needs dpkg-deb and no network
	@packaging/deb/build

MINUTES ?= 10

.PHONY: scenes
scenes: build controlplane kubelet
	@$(GO) build -o bin/scenes ./internal/scenes/play

.PHONY: observe-demo
observe-demo: scenes ## statusd observe beside a stock kubelet: a container is killed and the kubelet frozen, the page and statusd audit say so; root, containerd, runc; Ctrl-C cleans up
	@bin/scenes -stay demo

.PHONY: observe-scenes
observe-scenes: scenes ## What goes wrong on a node and what statusd observe says, for docs/observe.md: MINUTES (of churn); root, containerd, runc; about 20 minutes
	@bin/scenes -minutes $(MINUTES) -doc docs/observe.md scenes

.PHONY: observe-churn
observe-churn: scenes ## 30 pods come and go on a stock node for MINUTES (10): statusd observe must not raise an alarm, and its guard must not find the kubelet anything but healthy; root, containerd, runc
	@bin/scenes -minutes $(MINUTES) churn

IMAGE ?= localhost/statusd:dev

.PHONY: image
image: ## Build build/statusd-image.tar, a container image for deploy/observe, without a container engine: IMAGE (its name)
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o bin/static/statusd ./cmd/statusd
	@mkdir -p build
	$(GO) run ./internal/image/build -name $(IMAGE) -program bin/static/statusd -o build/statusd-image.tar

.PHONY: clean
clean: ## Remove what the build made
	rm -rf bin build

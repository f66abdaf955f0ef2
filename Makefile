# statusd: `make help` lists the targets that most need, `make help-all` all of them.

GO          ?= go
FUZZTIME    ?= 60s
STATICCHECK := $(GO) tool -modfile=$(CURDIR)/test/tools/go.mod staticcheck

.DEFAULT_GOAL := help

# What ### describes is for everybody, what ## describes for those who ask for all.
.PHONY: help
help:
	@awk 'BEGIN {FS = ":.*### "} /^[a-z][a-z0-9-]*:.*### / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "  help-all         All other targets: measurements, demonstrations, comparisons with the kubelet"

.PHONY: help-all
help-all: help
	@awk 'BEGIN {FS = ":.*[^#]## "} /^[a-z][a-z0-9-]*:.*[^#]## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ### Build bin/statusd and bin/statusd-shim; the first time takes a minute or two on 2 cores
	@$(GO) run ./test/build programs statusd statusd-shim

.PHONY: controlplane
controlplane: ## Build bin/controlplane; the first time takes 7 to 8 minutes on 2 cores: it compiles kube-apiserver, etcd, scheduler and controllers
	@$(GO) run ./test/build controlplane

.PHONY: kubelet
kubelet: ## Build build/kubelet-1.36.3, the stock kubelet for tests and demonstrations; the first time takes some minutes
	test/upstream/kubernetes.sh kubelet build/kubelet-1.36.3

.PHONY: kubelet-statusd
kubelet-statusd: ## Build build/kubelet-statusd-1.36.3, the kubelet with statusd's manager in the place of its own; the first time takes some minutes
	test/upstream/kubelet/build.sh kubelet build/kubelet-statusd-1.36.3

.PHONY: kubelet-unit
kubelet-unit: ## Run the kubelet's own unit tests of the packages that use a status manager against statusd's; the first time takes some minutes
	test/upstream/kubelet/build.sh tree
	cd test/upstream && $(GO) build -o ../../bin/kubelet-unit ./kubelet/unit
	bin/kubelet-unit $(KUBELET_UNIT)

COMPARE ?= starts

.PHONY: kubelet-compare
kubelet-compare: controlplane kubelet kubelet-statusd ## The stock kubelet and the one with statusd's manager with real containers: COMPARE=starts (30, 60, 100 pods), ends (API server down, kubelet killed), turns (one node, both in turn, odd journals) or twins (two nodes of one name); root, containerd, runc
	cd test/upstream && $(GO) build -o ../../bin/kubelet-compare ./kubelet/compare
	bin/kubelet-compare $(COMPARE)

DENSITY ?= -pods 100,1000,5000 -limits default,none

.PHONY: kubelet-density
kubelet-density: controlplane ## 100, 1,000 and 5,000 pods on both kubelets without containers (kubemark), for docs/evidence/kubelet.md: DENSITY (flags); root, for a network namespace
	test/upstream/kubernetes.sh kubemark build/kubemark-1.36.3
	test/upstream/kubelet/build.sh kubemark build/kubemark-statusd-1.36.3
	cd test/upstream && $(GO) build -o ../../bin/kubelet-compare ./kubelet/compare
	unshare --net sh -c 'ip link set lo up && exec bin/kubelet-compare density $(DENSITY)'

.PHONY: kubelet-lives
kubelet-lives: controlplane kubelet kubelet-statusd ## Pods' lives on both kubelets, for docs/evidence/kubelet.md: LIVES (names), RUNS; root, containerd, runc; about 50 minutes
	cd test/upstream && $(GO) build -o ../../bin/lives ./lives
	cd test/upstream/lives && ../../../bin/lives record -agent kubelet -runs $(RUNS) $(LIVES)
	cd test/upstream/lives && ../../../bin/lives record -agent kubelet-statusd -runs $(RUNS) $(LIVES)
	cd test/upstream/lives && ../../../bin/lives compare -with kubelet-statusd -doc ../../../docs/evidence/kubelet.md

.PHONY: packages
packages:
	@.ci/packages

.PHONY: axe
axe: packages
	@internal/web/fetch-axe

# Flags of the tiers, such as -run or -p, and packages: make test TIER='-run TestX ./status'
TIER ?=

.PHONY: test
test: ### Run the tests that need only Go, with the race detector where there are goroutines
	@$(GO) run ./test/tier fast $(TIER)

.PHONY: test-real
test-real: packages controlplane kubelet kubectl axe ### Run the tests with a real API server, kubelet, browser and more, which it installs as root on Debian
	@$(GO) run ./test/tier real $(TIER)
	cd test/controlplane/server && $(GO) test ./accounts ./datadir ./nodecerts ./pki

# The tag real adds files and leaves out only the TestMain of some packages.
.PHONY: lint
lint: controlplane platforms ### gofmt, go vet, staticcheck, builds for other platforms
	@unformatted=$$(git ls-files -co --exclude-standard '*.go' | xargs -r gofmt -l); \
	if [ -n "$$unformatted" ]; then echo "not gofmt-ed (run gofmt -w on them):"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./... && $(GO) vet -tags real ./... # neither sees all tests
	$(STATICCHECK) -tags real ./...
	cd test/controlplane/server && $(GO) vet ./...
	cd test/controlplane/server && $(STATICCHECK) ./accounts ./datadir ./nodecerts ./pki # the rest would make it analyze all of Kubernetes

# Packages that authors use on other systems. The tests of the last three need processes of Linux.
LIBRARY := ./podstatus ./status ./journal/... ./statustest ./runtime ./runtime/function ./node ./node/fleet ./virtualkubelet ./explain
KIT     := $(LIBRARY) ./runtime/runtimetest ./agent ./kubeletapi ./examples/node ./examples/provider ./examples/batch

.PHONY: platforms
platforms: ## Build the library and the kit for macOS and Windows and vet their tests there; build the programs for Linux on arm64
	GOOS=darwin CGO_ENABLED=0 $(GO) vet $(LIBRARY) && GOOS=darwin CGO_ENABLED=0 $(GO) build $(KIT)
	GOOS=windows CGO_ENABLED=0 $(GO) vet $(LIBRARY) && GOOS=windows CGO_ENABLED=0 $(GO) build $(KIT)
	GOARCH=arm64 CGO_ENABLED=0 $(GO) build ./cmd/... ./examples/...

PUBLIC := ./podstatus ./status ./journal ./statustest ./runtime ./runtime/function ./runtime/runtimetest ./agent ./node ./node/fleet ./virtualkubelet ./kubeletapi ./explain
BASE   ?= $(shell git describe --tags --abbrev=0 2>/dev/null)

.PHONY: apidiff
apidiff: ## What differs in the Go API from BASE (the last tag); fails if something that was there is gone or different
	@if [ -z "$(BASE)" ]; then echo "no tag to compare with: make apidiff BASE=REV compares with a commit"; exit 0; fi; test/tools/apidiff $(BASE) $(PUBLIC)

K8SIO ?= 0.35.4 0.36.3 0.37.2

.PHONY: compat
compat: ## Build and test the library with the versions K8SIO (0.35.4 0.36.3 0.37.2) of k8s.io/*, for docs/reference/compatibility.md; some minutes each
	@$(GO) run ./test/compat library $(K8SIO)

SERVERS ?= 1.34.4 1.35.4 1.36.3

.PHONY: compat-servers
compat-servers: packages kubelet kubectl axe ## Run the library, the kits and both daemons on API servers of the versions SERVERS (1.34.4 1.35.4 1.36.3), for docs/reference/compatibility.md; each is built first, 8 minutes each; root
	@$(GO) run ./test/compat servers $(SERVERS)

.PHONY: fuzz
fuzz: ## Fuzz each target for FUZZTIME (60s); one that fails keeps no other from being tried
	@failed=; for package in podstatus journal internal/history internal/node/manifest internal/node/probe internal/cri internal/run internal/observer internal/queryapi internal/alert/expr internal/alert/engine internal/alert/ruletest internal/alert/endpoint internal/alert/webhook internal/machine/logs internal/audit internal/audit/kubeletside internal/audit/machineside internal/guard runtime/process/internal/record; do for target in $$(cd $$package && grep -ho 'func Fuzz[A-Za-z]*' *_test.go | cut -d' ' -f2); do \
		echo "== $$target"; $(GO) test ./$$package -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x || failed="$$failed $$target"; done; done; \
	if [ -n "$$failed" ]; then echo "failed:$$failed"; exit 1; fi

VULNDB ?= https://vuln.go.dev

.PHONY: vuln
vuln: ## Known vulnerabilities that the programs and libraries call: VULNDB (a URL, or file:// and a copy of it, which needs no network)
	cd test/vuln && $(GO) build -o ../../bin/govulncheck golang.org/x/vuln/cmd/govulncheck
	bin/govulncheck -db $(VULNDB) ./...

.PHONY: bench
bench: controlplane ## Benchmarks: statusd and the kubelet's manager in one run of about 35 minutes; writes build/bench.json and docs/evidence/benchmarks.md
	$(GO) test ./podstatus ./status ./journal ./internal/alert/engine -run '^$$' -bench . -benchmem
	cd test/upstream && $(GO) run ./bench $(BENCHFLAGS)

SEED     ?= 1
RUNS     ?= 3
PROGRAMS ?= 20000
PROGRAM  ?= -1
WILD     ?= false

# Unless SEED is given, CI tries the programs of a seed of its own for each commit.
COMMIT_SEED = $(if $(filter file,$(origin SEED)),$(shell printf '%d' 0x$$(git rev-parse HEAD 2>/dev/null | cut -c1-8 | grep . || echo 1)),$(SEED))

.PHONY: oracle
oracle: ## The kubelet's manager and statusd's in 20,000 random programs: SEED, PROGRAMS, PROGRAM (one, with its trace), WILD
	@$(GO) run ./test/build in test/upstream test/upstream
	cd test/upstream/oracle && $(GO) test -count=1 -run 'TestKept|TestFunctions'
	cd test/upstream/oracle && $(GO) test -count=1 -timeout 0 -run '^TestOracle$$' -args -seed $(SEED) -programs $(PROGRAMS) -program $(PROGRAM) -wild=$(WILD)

.PHONY: oracle-short
oracle-short: ## The same for at most 2 minutes, and the other tests of the module test/upstream, for CI; the seed is taken from the commit unless SEED is given
	@$(GO) run ./test/build in test/upstream test/upstream
	cd test/upstream && $(GO) vet ./...
	cd test/upstream && $(GO) test ./bench/... ./kubelet/... ./lives/... ./oracle/mutants
	@echo "oracle: seed $(COMMIT_SEED); the same programs again: make oracle SEED=$(COMMIT_SEED)"
	cd test/upstream/oracle && $(GO) test -count=1 -timeout 10m -args -seed $(COMMIT_SEED) -programs $(PROGRAMS) -duration 100s

.PHONY: oracle-mutants
oracle-mutants: ## Break a rule of statusd, one at a time, and see a random program find it: SEED; about 8 minutes
	cd test/upstream && $(GO) run ./oracle/mutants -seed $(SEED)

.PHONY: lives
lives: build controlplane kubelet ## Pods' lives on a node of the kubelet and on one of statusd, for docs/evidence/podlives.md: LIVES (names), RUNS; root, containerd, runc; about 50 minutes
	cd test/upstream && $(GO) build -o ../../bin/lives ./lives
	cd test/upstream/lives && ../../../bin/lives record -agent kubelet -runs $(RUNS) $(LIVES)
	cd test/upstream/lives && ../../../bin/lives record -agent statusd -runs $(RUNS) $(LIVES)
	cd test/upstream/lives && ../../../bin/lives compare

.PHONY: lives-containers
lives-containers: build controlplane kubelet ## Pods' lives on a node of the kubelet and on one of statusd with runtime cri, both on containerd, for docs/evidence/podlives.md: LIVES (names), RUNS; root, containerd, runc; about 50 minutes
	cd test/upstream && $(GO) build -o ../../bin/lives ./lives
	cd test/upstream/lives && ../../../bin/lives record -agent kubelet -runs $(RUNS) $(LIVES)
	cd test/upstream/lives && ../../../bin/lives record -agent statusd-cri -runs $(RUNS) $(LIVES)
	cd test/upstream/lives && ../../../bin/lives compare -with statusd-cri -block containers

.PHONY: doors
doors: build controlplane kubelet ## The answers of a stock kubelet to each kind of credentials on each path, for kubeletapi/testdata/doors.txt; root, containerd, runc; about a minute
	cd test/upstream && $(GO) build -o ../../bin/doors ./doors
	cd test/upstream/doors && ../../../bin/doors

.PHONY: storm
storm: controlplane kubelet ## Deploy what a node cannot run, 24 kinds (examples/storm), on statusd and on a stock kubelet, and count the pods that are made for each, for docs/evidence/storm.md; root, containerd, runc; about 12 minutes
	$(GO) test -tags real -count 1 -timeout 30m -v -run TestDeploymentsThatCannotRun_MakeNoStorm ./cmd/statusd -args -storm 10m -storm-beside $(CURDIR)/docs/evidence/storm.md

EVENTS ?= 100

.PHONY: sessions
sessions: controlplane ## Follow kubectl exec, logs -f, attach and port-forward through reloads, renewed certificates and stops: EVENTS; about 6 minutes
	$(GO) test -tags real -count 1 -timeout 60m -v -run TestSessionsOfKubectl_ThroughReloadsRenewalsAndStops ./cmd/statusd -args -events $(EVENTS)

.PHONY: core-bars
core-bars: controlplane ## A webhook, flaps and a busy annotator on a real API server: how long the API is wrong after each; 22 minutes
	$(GO) test -tags real -count 1 -timeout 40m -run TestRealServer_NeverStopsTrying ./status -args -bars

BROKEN ?= 2m

.PHONY: broken
broken: controlplane ## Run the broken workloads of examples/broken, judge what is said about each, and write docs/evidence/broken-pods.md: BROKEN (how long to look); root; about 5 minutes
	$(GO) test -tags real -count 1 -timeout 30m -v -run TestCorpus_IsExplained ./cmd/statusd -args -corpus $(BROKEN)

FLEET ?=

.PHONY: fleet
fleet: controlplane ## Many nodes in one process on a real API server, beside KWOK with the same nodes and pods, for docs/evidence/fleet.md: FLEET='-nodes 1000 -pods 20 -idle 2m'; about 15 minutes on 2 cores
	cd test/fleet/kwok && $(GO) build -o ../../../bin/kwok sigs.k8s.io/kwok/cmd/kwok
	$(GO) build -o bin/fleet ./test/fleet
	bin/fleet -stages "$$(cd test/fleet/kwok && $(GO) list -m -f '{{.Dir}}' sigs.k8s.io/kwok)/kustomize/stage" $(FLEET)

.PHONY: mutants
mutants: packages ## Take the guard of each invariant out, one at a time, and see a test fail; about 5 minutes
	$(GO) run ./test/mutants

.PHONY: cover
cover: ## Statement coverage of the rules, as text and build/cover.html
	@mkdir -p build
	$(GO) test -coverprofile=build/cover.out ./podstatus
	@$(GO) tool cover -func=build/cover.out | tail -1
	@$(GO) tool cover -html=build/cover.out -o build/cover.html

.PHONY: demo
demo:
	@$(GO) run ./test/build programs statusd-shim statusd demo example-server

.PHONY: run
run: demo ### Start statusd with example pods and a page; builds a control plane meanwhile, and joins it
	@bin/demo

.PHONY: run-standalone
run-standalone: demo ### Start statusd with example pods and without a control plane
	@bin/demo --standalone

.PHONY: kubectl
kubectl: ## Build bin/kubectl, for machines that have none; the first time takes some minutes
	test/upstream/kubernetes.sh kubectl bin/kubectl

.PHONY: metrics-server
metrics-server: ## Build bin/metrics-server, for kubectl top; the first time takes a minute
	test/upstream/kubernetes.sh metrics-server bin/metrics-server

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

BEFORE ?=

.PHONY: speed
speed: demo ## How soon 1, 50 and 200 pods are Ready and deleted, and the cost of 200 idle ones, beside the statusd BEFORE (a path) in one run; 8 minutes
	@bin/demo --beside "$(BEFORE)" speed

.PHONY: scale
scale: demo ## Start, run and delete 500 pods on one node and look for what is left
	@bin/demo scale

.PHONY: clients
clients: demo ## 200 clients follow a log and 50 run commands for a minute; look for goroutines, descriptors and processes that are left
	@bin/demo clients

.PHONY: unreachable
unreachable: demo ## Stop statusd for 60 s on a cluster with controllers, and measure how soon 100 pods are ready again; about 2 minutes
	@bin/demo unreachable

PREVIOUS ?= $(BASE)
TIMES    ?= 6

.PHONY: upgrade
upgrade: demo controlplane ## Replace statusd of the commit PREVIOUS (the last tag) by this one and back under 200 pods, TIMES (6), and look for restarts, lost statuses, and alerts that were lost or came twice; about 5 minutes
	test/tools/version $(PREVIOUS) build/previous
	test/tools/version HEAD build/next
	@state=$$(mktemp -d) && trap 'rm -rf "$$state"' EXIT && bin/demo --state "$$state" --times $(TIMES) --seed $(SEED) upgrade

FAULTS ?= 200
PODS   ?= 30

.PHONY: faults
faults: demo ## Break disk, clock, boot, address and records under a running node and compare its statuses with its processes: FAULTS, PODS, SEED; root; about 15 minutes
	@bin/demo --faults $(FAULTS) --pods $(PODS) --seed $(SEED) faults

.PHONY: guard-demo
guard-demo: scenes ## The guard beside a stock kubelet: killed, ended, frozen, in maintenance, runtime and API server down; what is said and done after how many seconds; root, containerd, runc; about 2 minutes
	@bin/scenes guard

.PHONY: guard-flood
guard-flood: ## A log of 100 MB/s, read by the monitor of logs: its CPU, its memory, what it finds and what it does not read; beside expressions on each line; 2 minutes
	@mkdir -p build && $(GO) build -o build/guardflood ./test/guardflood && build/guardflood

PHASE ?= 10m

.PHONY: guard-fleet
guard-fleet: controlplane ## 50 guarded nodes on a real API server that refuses writes, is frozen, and gets bad kubelets: restarts by the guards with and without the bound of the cluster: PHASE (of each trouble); about an hour, without much CPU
	@$(GO) build -o bin/guardfleet ./test/guardfleet && bin/guardfleet -phase $(PHASE)

.PHONY: guard-systemd
guard-systemd: ## The guard under a systemd, a journald and a logind of their own, which power off at the end, in a container that debootstrap makes: root; a minute the first time; not part of CI
	@internal/guard/service/systemd-container internal/guard/service internal/machine/logs internal/guard/nodedown

.PHONY: deb
deb: build ## Build build/statusd_VERSION_ARCH.deb: VERSION; needs dpkg-deb and no network
	@deploy/packaging/deb/build

.PHONY: packages-observe
packages-observe: build ## Build build/statusd-observe_*.deb and build/statusd-observe-*.rpm, for those who guard a kubelet from outside: VERSION
	cd test/install && $(GO) run ./pack observe $(or $(VERSION),0.0.0)

.PHONY: packages-run
packages-run: build ## Build build/statusd_*.deb and build/statusd-*.rpm of statusd run: VERSION
	cd test/install && $(GO) run ./pack run $(or $(VERSION),0.0.0)

.PHONY: release
release: ## Build the files of a release into build/release: VERSION (v0.1.0); AGAIN=1 builds them twice and compares the bytes; some minutes
	rm -rf build/release
	cd test/install && $(GO) run ./release $(if $(AGAIN),-again) $(VERSION) build/release

.PHONY: install-checks
install-checks: controlplane ## Compare the Helm chart with the kustomize overlays, install it on a real API server, and read the deb and rpm packages; needs dpkg-deb and rpm (Debian: rpm)
	cd test/install && $(GO) vet ./... && $(GO) test -count=1 ./...

.PHONY: install-systemd
install-systemd: packages-observe packages-run ## Install, upgrade and remove the debs of statusd observe and statusd run under a systemd of its own: root; run make guard-systemd first, which makes the machine; 3 minutes
	@test/install/systemd-session build/statusd-observe_$(or $(VERSION),0.0.0)_$(shell dpkg --print-architecture).deb build/statusd_$(or $(VERSION),0.0.0)_$(shell dpkg --print-architecture).deb

MINUTES ?= 10

.PHONY: scenes
scenes: build controlplane kubelet
	@$(GO) run ./test/build go scenes -o bin/scenes ./test/scenes/play

.PHONY: observe-demo
observe-demo: scenes ## statusd observe beside a stock kubelet: a container is killed and the kubelet frozen, the page and statusd audit say so; root, containerd, runc; Ctrl-C cleans up
	@bin/scenes -stay demo

.PHONY: observe-scenes
observe-scenes: scenes ## What goes wrong on a node and what statusd observe says, for docs/evidence/scenes-and-cost.md: MINUTES (of churn); root, containerd, runc; about 20 minutes
	@bin/scenes -minutes $(MINUTES) -doc docs/evidence/scenes-and-cost.md scenes

.PHONY: observe-lies
observe-lies: scenes ## Lies and faults beside the scenes, and what statusd observe and its guard say of each, for docs/evidence/lies.md; root, containerd, runc; about 20 minutes
	@bin/scenes -doc docs/evidence/lies.md lies

.PHONY: observe-repair
observe-repair: scenes ## Repairs on a stock node whose kubelet is dead: a status that is behind and a container without a pod; root, containerd, runc; about 7 minutes
	@bin/scenes repair

KUBELETS ?= 1.34.4 1.35.4 1.36.3

.PHONY: observe-matrix
observe-matrix: scenes ## A few scenes with each of the KUBELETS (1.34.4 1.35.4 1.36.3), built from the module proxy, some minutes each: CONTAINERD (a directory with another containerd and its shim); root, containerd, runc
	@set -e; for version in $(KUBELETS); do \
		test/upstream/kubernetes.sh kubelet build/kubelet-$$version v$$version; \
		PATH="$(if $(CONTAINERD),$(CONTAINERD):)$$PATH" bin/scenes -kubelet build/kubelet-$$version short; done

.PHONY: observe-churn
observe-churn: scenes ## 30 pods come and go on a stock node for MINUTES (10): statusd observe must not raise an alarm, and its guard must not find the kubelet anything but healthy; root, containerd, runc
	@bin/scenes -minutes $(MINUTES) churn

AGENT ?= stock
FOCUS ?= \[NodeConformance\]
SKIP  ?= \[Serial\]|\[Disruptive\]|\[Slow\]
PROCS ?= 10

.PHONY: e2e-packages
e2e-packages:
	@.ci/packages e2e

# The kubelet with statusd's manager has a target of its own; the other agents need no more than the rest.
.PHONY: e2e
e2e: e2e-packages controlplane $(if $(filter kubelet,$(AGENT)),kubelet-statusd) ## Kubernetes' end-to-end specs on a node of AGENT (stock, kubelet, statusd), in namespaces of its own, for docs/evidence/kubelet.md: FOCUS, SKIP (regular expressions), PROCS; root; 10 minutes to build the first time, then 15
	@$(GO) build -o bin/e2e ./test/e2e
	@bin/e2e run -agent $(AGENT) -focus '$(FOCUS)' -skip '$(SKIP)' -procs $(PROCS)

AGENTS ?= stock kubelet

.PHONY: run-containers
run-containers: e2e-packages controlplane ## A node of statusd on a containerd of its own, with images made by hand; root; Ctrl-C ends it, ONCE=1 ends it by itself
	@$(GO) run ./test/containers

FAULTS ?= 200

.PHONY: container-faults
container-faults: e2e-packages controlplane ## Break a node of statusd on containerd by seed, and see its statuses true after each fault: FAULTS, SEED; root; 200 faults take about 45 minutes
	$(GO) build -o bin/containerfaults ./test/containerfaults
	bin/containerfaults -faults $(FAULTS) -seed $(SEED)

.PHONY: e2e-compare
e2e-compare: ## Compare the last runs of make e2e of two agents, spec by spec: AGENTS (stock kubelet)
	@$(GO) build -o bin/e2e ./test/e2e
	@bin/e2e compare $(AGENTS)

DURATION ?= 5m

.PHONY: robustness
robustness: controlplane ## Break network, server, disk and agent under a manager on a real API server, and judge the history: DURATION, SEED, ROBUSTNESS='-pods 100 -rate 50'; a report in build/robustness
	cd test/robustness/toxiproxy && $(GO) build -o ../../../bin/toxiproxy github.com/Shopify/toxiproxy/v2/cmd/server
	$(GO) build -o bin/robustness ./test/robustness
	bin/robustness -duration $(DURATION) -seed $(SEED) $(ROBUSTNESS)

# Rounds in place of a duration, one seed and ten times the patience: a machine that is slow takes longer, and fails no more often.
.PHONY: robustness-short
robustness-short: controlplane ## Some rounds of make robustness, always the same and with patience, for CI; about 5 minutes
	cd test/robustness/toxiproxy && $(GO) build -o ../../../bin/toxiproxy github.com/Shopify/toxiproxy/v2/cmd/server
	$(GO) build -o bin/robustness ./test/robustness
	bin/robustness -rounds 10 -patience 10 -seed $(SEED) -state build/robustness-short

.PHONY: robustness-kubelet
robustness-kubelet: ## The kubelet's manager in the same storm as make robustness
	cd test/upstream && $(GO) build -o ../../bin/robustness-kubelet ./storm
	@$(MAKE) --no-print-directory robustness ROBUSTNESS='-agent bin/robustness-kubelet -state build/robustness-kubelet $(ROBUSTNESS)'

.PHONY: robustness-observe
robustness-observe: scenes ## Lies and faults on a stock node by seed, and what statusd observe and its guard make of them: MINUTES, SEED; root, containerd, runc
	@bin/scenes -minutes $(MINUTES) -seed $(SEED) storm

TEETH ?= .

.PHONY: robustness-teeth
robustness-teeth: controlplane ## Break the manager in one place at a time, and see the campaign find it within 5 minutes each: TEETH (which, an expression), SEED; half an hour
	cd test/robustness/toxiproxy && $(GO) build -o ../../../bin/toxiproxy github.com/Shopify/toxiproxy/v2/cmd/server
	$(GO) run ./test/robustness/teeth -only '$(TEETH)' -seed $(SEED)

IMAGE ?= localhost/statusd:dev

.PHONY: image
image: ## Build build/statusd-image.tar, a container image for deploy/observe, without a container engine: IMAGE (its name)
	CGO_ENABLED=0 $(GO) build -tags grpcnotrace -trimpath -ldflags '-s -w' -o bin/static/statusd ./cmd/statusd
	@mkdir -p build
	$(GO) run ./internal/image/build -name $(IMAGE) -program bin/static/statusd -o build/statusd-image.tar

.PHONY: clean
clean: ## Remove what the build made
	rm -rf bin build

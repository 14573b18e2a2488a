# Everything here works on a machine with Go, make and git. Tools and the local control plane are built once, into CACHE.
SHELL        := /bin/bash
.SHELLFLAGS  := -eu -o pipefail -c
CACHE        ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/espalier
TOOLS        := $(CACHE)/tools
# The version of executables, images and charts. Kubernetes' libraries end a process at once whose version does not begin with vX.Y.Z; Helm
# wants what follows to be no number with zeros before it, as the name of a commit may be.
VERSION      ?= $(shell git describe --tags --match 'v[0-9]*.[0-9]*.[0-9]*' --dirty 2>/dev/null || echo v0.0.0-g$$(git describe --always --exclude '*' --dirty 2>/dev/null || echo unknown))
LDFLAGS      := -s -w -X k8s.io/component-base/version.gitVersion=$(VERSION) -X k8s.io/component-base/version.gitCommit=$(shell git rev-parse HEAD 2>/dev/null)
# One set of flags for all that is built here: executables, control plane and tests share one compilation, in every clone.
export GOFLAGS     := $(strip $(GOFLAGS) $(if $(findstring -trimpath,$(GOFLAGS)),,-trimpath))
export CGO_ENABLED := 0
# Without DWARF a test links in three quarters of the time.
GOFLAGS_TEST ?= -ldflags=-w -timeout 20m
# The race detector runs where goroutines share memory. It needs a C compiler; where there is none the tests run without it.
RACE         := $(if $(shell command -v gcc || command -v clang),CGO_ENABLED=1 go test -race,go test) $(GOFLAGS_TEST)
RACED        := $(addprefix ./internal/,$(addprefix managedresource/,apply controller engine health objects prune source steps target) endpoint/... reflector/... cluster process graph ratelimit selectors marked controller/kit/... seedauthorizer/garden nodeagentauthorizer/tenants nodeagentauthorizer/view)
COMMANDS     := $(notdir $(wildcard cmd/*))
# The client, and the name by which kubectl asks it to complete the arguments of kubectl espalier.
CLIENT       := internal/client/kubectl-espalier
COMPLETER    := kubectl_complete-espalier
# What images are made for, and the client.
ARCHITECTURES ?= amd64 arm64
PLATFORMS    ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
RELEASE      := go run -C internal/tools/release .
CONTENT       = -architectures '$(ARCHITECTURES)' $(if $(PROFILE),-profile $(PROFILE)) $(if $(DEFAULTS),-defaults $(abspath $(DEFAULTS)))
STAMP         = -version '$(VERSION)' -commit "$$(git rev-parse HEAD)" -time "$$(git log -1 --format=%ct)"
DATE         := $(shell date -u +%Y%m%d)

.DEFAULT_GOAL := help

.PHONY: help
help: ## Explain the targets.
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: up
up: ## Start a local garden, seed and shoot, run the executables there, and show what they do; ONCE=1 exits afterwards.
	@echo "$(if $(wildcard $(CACHE)/controlplane/*/kube-controller-manager),about a minute,the first time on this machine: about 15 minutes on two cores, less if the control plane can be downloaded)"
	@SECONDS=0; go run -C test/env/controlplane ./build -meanwhile '$(MAKE) --no-print-directory -C $(CURDIR) build TOUR=./test/env/local' >/dev/null; \
	bin/local -bin bin -before "build $$SECONDS" $(if $(filter 1,$(ONCE)),-once)

.PHONY: firstday
firstday: build controlplane ## Follow docs/quickstart.md on a cluster of its own, and print what its commands print and how long they take: an installation, a fault, its cause and its correction.
	@go test ./test/env/quickstart -run '^TestQuickstart$$' -count=1 -v -timeout 10m

.PHONY: cluster
cluster: controlplane ## Start an empty API server on this machine, with a Node that runs the executables of bin/, for docs/quickstart.md and docs/walkthrough.md, until Ctrl-C.
	@go run ./test/env/quickstart

.PHONY: check
check: $(TOOLS)/.stamp ## Run what belongs before every commit, in three minutes: lint of what changed, unit and property tests, 300 seeds of the simulation, defects in changed lines; SINCE (default: the merge base with the upstream branch) is the revision to compare with.
	@TOOLS=$(TOOLS) bash .ci/check

.PHONY: test
test: controlplane ## Run all tests: unit, property, integration and process tests, with the race detector where goroutines share memory.
	@bash .ci/test

.PHONY: test-unit
test-unit: ## Run the tests that need no control plane.
	$(RACE) -parallel 8 $(RACED)
	go test $(GOFLAGS_TEST) -parallel 8 $(filter-out $(shell go list $(RACED)),$(shell go list ./api/... ./cmd/... ./internal/...))

# The suites whose results depend on the version of the API server.
VERSIONED := ./test/dropin ./test/integration ./test/e2e/garden
.PHONY: versions
versions: ## Run the drop-in, integration and webhook suites against control planes of Kubernetes K8S (default "1.32 1.37"), which are built first.
	@for version in $(or $(K8S),1.32 1.37); do assets=$$(go run -C test/env/controlplane ./build -kubernetes $$version); \
		"$$assets/kube-apiserver" --version; KUBEBUILDER_ASSETS=$$assets go test -count=1 -timeout 30m $(VERSIONED) || exit 1; done

.PHONY: fuzz
fuzz: ## Fuzz decoders and handlers, FUZZTIME (default 1m) for each target.
	@for t in $$(grep -roE --include='*_test.go' '^func Fuzz[A-Za-z0-9]+' internal | sed -E 's#^internal/(.*)/[^/]*:func #\1:#' | grep -v '^tools/' | sort); do \
		go test ./internal/$${t%%:*} -run '^$$' -fuzz "^$${t##*:}$$" -fuzztime $(or $(FUZZTIME),1m); done

.PHONY: properties
properties: ## Check the properties of the graph with CHECKS (default 20000) sequences of events each, and those of decisions on TIMES (default 50) times as many gardens.
	go test ./internal/graph ./internal/seedauthorizer/relation ./internal/managedresource/lifecycle ./internal/ratelimit ./internal/controller/networkpolicy/desired ./internal/controller/istioclusterconfiguration/envoyfilter -run Property -count=1 -timeout 60m -rapid.checks=$(or $(CHECKS),20000)
	go test ./internal/seedauthorizer/rules -run Property -count=1 -timeout 60m -property-times=$(or $(TIMES),50)

SIMULATED := $(if $(filter 1,$(CONTROLLERS)),TestController,Test)
HELD := $(if $(filter 1,$(HOLDS)),Hold)$(if $(filter 1,$(STORE)),StoreFault)
.PHONY: simulate
simulate: ## Run the engine, with HOLDS=1 in scenarios with holds, with STORE=1 in those with faults of the store, or with CONTROLLERS=1 the other controllers, in a simulated world RUNS (default 2000) times, from seed FIRST (default 1); MINUTES searches for so long on all processors, from the date's seeds; SEED tells the run of one seed.
	@go run ./test/simulation/repeatable -o $(CACHE)/simulation.test
	@export GOMAXPROCS=1 GODEBUG=asyncpreemptoff=1; if [ -n "$(SEED)" ]; then $(CACHE)/simulation.test -test.v -test.run '$(SIMULATED)Seed$$' -simulate.seed=$(SEED); \
	elif [ -n "$(MINUTES)" ]; then running=(); for i in $$(seq $$(nproc)); do \
		$(CACHE)/simulation.test -test.v -test.timeout 0 -test.run 'TestSearch$$' -simulate.minutes=$(MINUTES) -simulate.first=$(or $(FIRST),$(DATE))$${i}00000 & running+=($$!); done; \
		found=0; for p in "$${running[@]}"; do wait $$p || found=1; done; exit $$found; \
	else $(CACHE)/simulation.test -test.v -test.timeout 0 -test.run '$(SIMULATED)$(HELD)Seeds$$' -simulate.runs=$(or $(RUNS),2000) -simulate.first=$(or $(FIRST),1); fi

.PHONY: search
search: ## Search for defects with the date's seeds, MINUTES (default 10) in all: property tests for a third of it, then the simulation.
	@echo "property tests, with seed $(DATE), for $$(( $(or $(MINUTES),10) * 20 )) s at most"
	@ended() { code=$$?; if [ $$code = 124 ]; then echo "the time for these tests is up"; else exit $$code; fi; }; \
	timeout $$(( $(or $(MINUTES),10) * 10 )) go test ./internal/graph ./internal/seedauthorizer/relation ./internal/managedresource/lifecycle ./internal/ratelimit ./internal/controller/networkpolicy/desired ./internal/controller/istioclusterconfiguration/envoyfilter -run Property -count=1 -timeout 60m -rapid.seed=$(DATE) -rapid.checks=2000 -rapid.nofailfile || ended; \
	timeout $$(( $(or $(MINUTES),10) * 10 )) go test ./internal/seedauthorizer/rules -run Property -count=1 -timeout 60m -property-first=$(DATE)000 -property-times=5 || ended
	@$(MAKE) --no-print-directory simulate MINUTES=$$(( $(or $(MINUTES),10) * 2 / 3 ))

.PHONY: repeatable
repeatable: ## Check that a seed of the simulation is the same run whenever it is run.
	@go run ./test/simulation/repeatable -o $(CACHE)/simulation.test
	@cd test/simulation && GOMAXPROCS=1 GODEBUG=asyncpreemptoff=1 $(CACHE)/simulation.test -test.v -test.run OneSeedIsOneRun

ENGINE_PACKAGES := $(addprefix ./internal/managedresource/,apply controller engine lifecycle meta objects prune source steps target)
MUTATED = $(or $(PKG),$(if $(filter 1,$(ENGINE)),$(ENGINE_PACKAGES)),$(if $(filter 1,$(ALL)),./internal/...))
.PHONY: mutate
mutate: ## Put small defects into packages PKG, or into the functions, with LINES=1 the lines, that changed SINCE a revision (default HEAD~1), and print those that no test notices; with MOST, fail if more percent survive; LIMIT ends it, SAMPLE draws some; ENGINE=1 has the simulation alone judge the engine; ALL=1 judges every package, each for the time EACH, and writes the table of docs/internals/mutation.md, as UPDATE=1 does for the rows of PKG.
	@go build -C internal/tools -o $(CACHE)/mutate ./mutate
	@$(CACHE)/mutate $(if $(filter 1,$(ENGINE)),-tests ./test/simulation -run '^Test(Hold)?Seeds$$' -arguments '-simulate.runs=150 -simulate.until -simulate.first=$(or $(FIRST),1)') $(if $(MUTATED),,-since $(or $(SINCE),HEAD~1)) $(if $(filter 1,$(ALL)),-each $(or $(EACH),1m) -page docs/internals/mutation.md) $(if $(filter 1,$(UPDATE)),-page docs/internals/mutation.md) $(if $(LIMIT),-limit $(LIMIT)) $(if $(SAMPLE),-sample $(SAMPLE)) $(if $(MOST),-most $(MOST)) $(if $(filter 1,$(LINES)),-lines) . $(MUTATED)

.PHONY: bench
bench: build controlplane ## Run the benchmarks and print tables; ONLY selects scenarios; REF_RM and REF_AC are executables of the reference, with which ours take turns against Kubernetes 1.36; RESULTS=<folder> keeps the figures of each turn, so that LIMIT=10m runs a piece; UPDATE=1 writes the tables of the pages.
	@export KUBEBUILDER_ASSETS="$(if $(REF_RM),$$(go run -C test/env/controlplane ./build -kubernetes 1.36),$${KUBEBUILDER_ASSETS:-})"; \
	go run ./test/bench -bin bin -only '$(ONLY)' -ref-rm='$(REF_RM)' -ref-ac='$(REF_AC)' $(if $(TURNS),-turns=$(TURNS)) $(if $(RESULTS),-results=$(RESULTS)) $(if $(LIMIT),-limit=$(LIMIT)) $(if $(filter 1,$(UPDATE)),-update)

.PHONY: handover
handover: build controlplane ## Have the reference's resource-manager REF_RM and ours take TURNS (default 100) turns under gardenlet's manifests, drawn from DRAW (default any), with ALWAYS_UPDATE (default true).
	@go test ./test/dropin -run='^TestHandOver$$' -count=1 -v -timeout=6h -args -own-rm='$(CURDIR)/bin/resource-manager' \
		-reference-rm='$(abspath $(or $(REF_RM),$(error want REF_RM=<gardener-resource-manager>)))' -turns=$(or $(TURNS),100) -draw=$(or $(DRAW),0) -always-update=$(or $(ALWAYS_UPDATE),true)

.PHONY: follow
follow: ## List what changed in the reference, by a clone of it (REF), each with its answer in docs/internals/reference-log.md; fails on a change without one.
	@go run -C internal/tools ./follow ../.. '$(abspath $(or $(REF),$(error want REF=<clone of the reference>)))'

.PHONY: exhaust
exhaust: ## Ask everything in all small worlds: whether the rules decide as the second reading of the contract, and whether each fault in a rule or an edge shows.
	go test ./internal/seedauthorizer/rules -run 'Small|Mutants' -count=1 -timeout 30m -v -exhaust

.PHONY: lint
lint: $(TOOLS)/.stamp ## Run the linters, and check the layers of packages and the documents.
	$(TOOLS)/golangci-lint run ./...
	@for m in internal/tools internal/tools/release internal/tools/site test/env/controlplane; do echo "$$m:"; (cd $$m && $(TOOLS)/golangci-lint run ./...) || exit 1; done
	@for m in $$(git ls-files '*go.mod'); do (cd "$$(dirname "$$m")" && go mod tidy -diff) || exit 1; done
	@go run -C internal/tools ./layers ../..
	@go run -C internal/tools ./docscheck ../..
	@go run -C internal/tools ./shape -words ../..
	@go run -C internal/tools ./shape -budget shape/budget.txt ../..

.PHONY: budgets
budgets: ## Lower the budgets of lines to 5 % more than there is, as at a release.
	@go run -C internal/tools ./shape -budget shape/budget.txt -lower ../..

.PHONY: generate
generate: $(TOOLS)/.stamp ## Generate deep copies, the CRD, roles, what charts have from the code, the reference pages and the pictures.
	$(TOOLS)/controller-gen object paths=./api/...
	$(TOOLS)/controller-gen object paths=./internal/externalapi/...
	$(TOOLS)/controller-gen crd paths=./api/resources/... output:crd:dir=deploy/crds
	@for c in shared resourcemanager admissioncontroller nodeagentauthorizer; do go run ./internal/gen/docs fields api/config/$$c/v1alpha1; done
	@go run ./internal/gen/charts deploy
	@for p in graph seed-authorizer-rules shoot-authorizer-rules node-agent-rules resource-manager-features admission-controller-features node-agent-authorizer-features metrics profiles resource-manager-configuration admission-controller-configuration node-agent-authorizer-configuration shared-configuration $(COMMANDS:%=%-command-line) kubectl-espalier-command-line; do go run ./internal/gen/docs $$p > docs/reference/$$p.md; done
	@go run ./test/env/quickstart -garden-api > docs/examples/garden/api.yaml
	@go run -C internal/tools ./recording ../..
	@mkdir -p deploy/rbac && rm -f deploy/rbac/*.yaml && go run ./internal/gen/docs rbac deploy/rbac
	@comment="$$(go run ./internal/gen/docs relation-doc)" && echo "$$comment" > internal/seedauthorizer/relation/doc.go

.PHONY: docs
docs: $(TOOLS)/hugo ## Build the documents as static pages with a search into bin/site, and check their links; open bin/site/index.html.
	@HUGO_PARAMS_ROOT=$(CURDIR) $(TOOLS)/hugo --source internal/tools/site --destination $(CURDIR)/bin/site --cacheDir $(CURDIR)/.local/hugo --cleanDestinationDir --noBuildLock --quiet
	@go run -C internal/tools/site ./check $(CURDIR)/bin/site

$(TOOLS)/hugo: internal/tools/site/go.mod
	@echo "building Hugo into $(TOOLS) (some minutes, once)"
	@mkdir -p $(TOOLS)
	@go build -C internal/tools/site -o $@ github.com/gohugoio/hugo

.PHONY: build
build: ## Build the executables and the client into bin/.
	@mkdir -p bin
	@echo "building $(COMMANDS:%=bin/%) bin/kubectl-espalier"
	@if [ -L bin/kubectl-espalier ]; then rm bin/kubectl-espalier; fi
	@GOGC=200 go build -ldflags '$(LDFLAGS)' -o bin/ ./cmd/... ./$(CLIENT) $(TOUR)
	@ln -sf kubectl-espalier bin/$(COMPLETER)

.PHONY: clients
clients: bin/oras ## Build kubectl, Helm and oras into bin/.
	@mkdir -p bin
	@cp "$$(go run -C test/env/controlplane ./build kubectl)/kubectl" bin/
	@go build -C internal/tools/charts -o $(CURDIR)/bin/helm helm.sh/helm/v4/cmd/helm

.PHONY: images
images: ## Build an OCI image of each executable for ARCHITECTURES (default amd64 and arm64) into bin/images, with a list of its parts; PROFILE (default gardener) or DEFAULTS=FILE are its defaults.
	@for a in $(ARCHITECTURES); do for c in $(COMMANDS); do echo "building bin/linux-$$a/$$c"; CGO_ENABLED=0 GOOS=linux GOARCH=$$a go build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o bin/linux-$$a/$$c ./cmd/$$c; done; done
	@$(RELEASE) images $(STAMP) $(CONTENT) -binaries $(CURDIR)/bin -out $(CURDIR)/bin/images $(COMMANDS)

.PHONY: client
client: ## Pack kubectl-espalier for PLATFORMS (default linux, darwin and windows on amd64 and arm64) with man pages and completions into bin/client, with checksums; BASE_URL=https://… of the archives, in which {version} stands for the version, adds a manifest for krew.
	@rm -rf bin/clients && go build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o bin/clients/here/ ./$(CLIENT)
	@for p in $(PLATFORMS); do echo "building bin/clients/$${p/\//-}/kubectl-espalier"; GOOS=$${p%/*} GOARCH=$${p#*/} go build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o bin/clients/$${p/\//-}/ ./$(CLIENT); done
	@$(RELEASE) client $(STAMP) -platforms '$(PLATFORMS)' -binaries $(CURDIR)/bin/clients -runs $(CURDIR)/bin/clients/here/kubectl-espalier -license $(CURDIR)/LICENSE -base-url '$(BASE_URL)' -out $(CURDIR)/bin/client

.PHONY: charts
charts: ## Pack the Helm chart of each executable, with the version of the images, into bin/charts: as an archive and as an OCI layout.
	@$(RELEASE) charts $(STAMP) -charts $(CURDIR)/deploy/charts -out $(CURDIR)/bin/charts $(COMMANDS)

.PHONY: release
release: ## Make images, charts and the client of VERSION=vX.Y.Z from a commit, with provenance and checksums, signed if there is KEY=<private key of cosign or openssl>.
	@[ -n "$(filter command environment,$(firstword $(origin VERSION)))" ] || { echo "make release VERSION=vX.Y.Z [KEY=<file>]" >&2; exit 1; }
	@[ -z "$$(git status --porcelain)" ] || { echo "make release: the work tree has changes that are in no commit" >&2; exit 1; }
	@$(MAKE) --no-print-directory images charts client
	@$(RELEASE) seal $(STAMP) $(CONTENT) $(if $(KEY),-key $(abspath $(KEY))) -out $(CURDIR)/bin

.PHONY: push
push: bin/oras ## Copy what images, charts and release made to a registry: images to REGISTRY/<executable>, charts to REGISTRY/charts/<executable>; print an image vector overwrite for Gardener.
	@[ -n "$(REGISTRY)" ] || { echo "make push REGISTRY=<host>/<path>" >&2; exit 1; }
	@for kind in images charts; do for layout in bin/$$kind/*/; do name=$$(basename $$layout); \
		for tag in $$(bin/oras repo tags --oci-layout $${layout%/}); do \
			bin/oras cp --recursive --from-oci-layout $${layout%/}:$$tag $(REGISTRY)/$$([ $$kind = images ] || echo $$kind/)$$name:$$tag; \
		done; done; done
	@$(RELEASE) overwrite $(STAMP) -registry $(REGISTRY) -out $(CURDIR)/bin

bin/oras: internal/tools/release/go.mod
	@go build -C internal/tools/release -o $(CURDIR)/bin/oras oras.land/oras/cmd/oras

.PHONY: controlplane
controlplane: ## Download or build etcd, kube-apiserver and kube-controller-manager into the cache, once (some minutes if built).
	@go run -C test/env/controlplane ./build >/dev/null

.PHONY: clean
clean: ## Remove what was built here; the cache stays.
	rm -rf bin .local

$(TOOLS)/.stamp: internal/tools/go.mod internal/tools/go.sum
	@echo "building the linter and the generators into $(TOOLS) (some minutes, once)"
	@mkdir -p $(TOOLS)
	cd internal/tools && go build -o $(TOOLS)/ tool
	@touch $@

# k8s-runner: make demo shows it, make test tests it.

SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c

TOOL        := go tool -modfile=tools/go.mod
BUF         := cd proto && go tool -modfile=../tools/buf/go.mod buf
CLUSTER     := cd devcluster && go run .
# Always the devcluster's: the tests cordon nodes, so a KUBECONFIG that happens
# to be in the environment is not taken. make demo KUBECONFIG=FILE is.
DEVCLUSTER  = $$($(CLUSTER) kubeconfig)
AUDIT_LOG   = $$(dirname $$($(CLUSTER) kubeconfig))/log/audit.log
FUZZTIME    ?= 60s
VERSION     ?= $(shell sed -n 's/^appVersion: *"\(.*\)"/\1/p' charts/k8s-runner/Chart.yaml)
IMAGE       := bin/k8s-runner-$(VERSION).tar
IMAGE_NAME  := ghcr.io/agynio/k8s-runner:$(VERSION)

.PHONY: help
help: ## Show the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

##

.PHONY: demo
ifeq ($(origin KUBECONFIG),command line)
demo: build ## Start, show and stop a workload on the devcluster, or on KUBECONFIG=FILE
	@./hack/demo.sh --kubeconfig "$(KUBECONFIG)"
else
demo: build cluster-up
	@./hack/demo.sh --kubeconfig "$(DEVCLUSTER)"
endif

.PHONY: test
test: unit cluster-up engine-image e2e-image e2e ## Run every test: unit, golden, then e2e on the devcluster

.PHONY: unit
unit: ## Run the tests that need no cluster, golden cases among them
	go vet ./... && go vet -tags e2e ./e2e
	go test -race -timeout 20m ./...
	cd devcluster && go test -race .
	cd image && go test .

.PHONY: e2e
e2e: ## Run the tests on the cluster that is up
	KUBECONFIG="$(DEVCLUSTER)" go test -tags e2e -count 1 -timeout 45m ./e2e -audit-log "$(AUDIT_LOG)" -image "$(IMAGE_NAME)"

# Its registry stands in for every public one, so that the chart's own image is found.
.PHONY: e2e-image
e2e-image: image ## Give the devcluster the runner's image, to test the chart with
	cd image && go build -o ../bin/image .
	@$(CLUSTER) netns -- "$(CURDIR)/bin/image" push -insecure "$(CURDIR)/$(IMAGE)" "127.0.0.1:5001/agynio/k8s-runner:$(VERSION)"

.PHONY: e2e-chart
e2e-chart: e2e-image ## Run the tests on the cluster that is up, against the installed chart
	KUBECONFIG="$(DEVCLUSTER)" go test -tags e2e -count 1 -timeout 60m ./e2e -chart -audit-log "$(AUDIT_LOG)" -image "$(IMAGE_NAME)"

# Made of Debian's packages, which not every machine can get.
.PHONY: engine-image
engine-image: ## Give the devcluster the image of a Docker engine, once
	@$(CLUSTER) image dind || echo "There is no image of a Docker engine. The tests that need it skip, and say so."

.PHONY: bench
bench: cluster-up ## Measure speed, as a ratio to bare client-go where there is one
	go test -run '^$$' -bench . ./render
	KUBECONFIG="$(DEVCLUSTER)" go test -tags e2e -count 1 -timeout 30m -run '^$$' -bench Reads -benchtime 3000x ./e2e
	KUBECONFIG="$(DEVCLUSTER)" go test -tags e2e -count 1 -timeout 30m -run '^$$' -bench Start -benchtime 1x ./e2e
	KUBECONFIG="$(DEVCLUSTER)" go test -tags e2e -count 1 -timeout 30m -run '^$$' -bench 'Exec|Logs' -benchtime 1x ./e2e
	KUBECONFIG="$(DEVCLUSTER)" go test -tags e2e -count 1 -timeout 30m -run '^$$' -bench ManyWorkloads -benchtime 1x ./e2e
	KUBECONFIG="$(DEVCLUSTER)" go test -tags e2e -count 1 -timeout 30m -run '^$$' -bench Reports -benchtime 1x ./e2e

.PHONY: fuzz
fuzz: ## Fuzz each target for FUZZTIME
	@for target in $$(grep -rhoE '^func Fuzz[A-Za-z]+' --include=*_test.go archive catalog cluster engine request render | sed 's/func //'); do \
		package=$$(grep -rlE "^func $$target\(" --include=*_test.go archive catalog cluster engine request render | xargs dirname); \
		echo "$$package $$target"; go test ./$$package -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x; \
	done

##

.PHONY: build
build: ## Build bin/k8s-runner
	go build -o bin/k8s-runner ./cmd/k8s-runner

.PHONY: image
image: ## Make bin/k8s-runner-VERSION.tar: an OCI image for amd64 and arm64, without a Docker engine
	@mkdir -p bin
	cd image && SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) go run . build -version "$(VERSION)" -o "../$(IMAGE)"

.PHONY: image-push
image-push: image ## Push it: make image-push TO=registry.example.com/k8s-runner:1
	cd image && go run . push "../$(IMAGE)" "$(TO)"

.PHONY: golden
golden: ## Write what the golden cases render to
	go test ./render/golden -run TestCases -count 1 -update
	@git status --short testdata

.PHONY: golden-check
golden-check: ## Compare the golden cases with what they render to
	go test ./render/golden -run TestCases -count 1

.PHONY: chart-golden
chart-golden: ## Write what the chart's golden cases render to
	go test ./charts -run TestCases -count 1 -update
	@git status --short testdata/chart

.PHONY: chart-check
chart-check: ## Lint the chart, compare its golden cases, check its values and their schema
	go test ./charts -count 1

.PHONY: proto
proto: ## Generate the Go code of the contract
	$(BUF) lint
	$(BUF) generate

.PHONY: proto-check
proto-check: proto ## Check that generating changes nothing
	git diff --exit-code -- proto
	@test -z "$$(git status --porcelain -- proto)"

.PHONY: lint
lint: ## Check style, and which package may import which
	$(TOOL) golangci-lint run ./...
	$(TOOL) golangci-lint run --build-tags e2e ./e2e/...
	@test -z "$$(gofmt -l $$(git ls-files '*.go' ':!proto'))" || { gofmt -l $$(git ls-files '*.go' ':!proto'); exit 1; }
	go mod tidy -diff
	cd devcluster && go mod tidy -diff
	cd image && go mod tidy -diff

.PHONY: check
check: lint proto-check golden-check chart-check ## Everything that needs no cluster and no test

##

.PHONY: cluster-up
cluster-up: ## Bring up the devcluster: a real Kubernetes of one node
	@$(CLUSTER) up

.PHONY: cluster-down
cluster-down: ## Take the devcluster down
	@$(CLUSTER) down

.PHONY: cluster-status
cluster-status: ## Show what of the devcluster runs
	@$(CLUSTER) status

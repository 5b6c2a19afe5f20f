# `make` or `make help` lists what can be made.

SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
GO          ?= go
FUZZTIME    ?= 30s
IMAGE       ?= semserver
VERSION     ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
TOOL        := $(GO) tool -modfile=tools/go.mod
LDFLAGS     := -s -w -X github.com/semserver/semserver/internal/version.release=$(VERSION)

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/semserver and bin/semctl
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/semserver ./cmd/semctl

.PHONY: run
run: ## Run a node with its defaults (ARGS='--flag …' adds flags)
	$(GO) run ./cmd/semserver $(ARGS)

.PHONY: test
test: redis terminal ## Run every test, with the race detector
	$(GO) test -race -timeout 10m ./...
	$(GO) -C examples/fencing test -race -timeout 10m ./...

.PHONY: faults
faults: ## Kill a node under load, ROUNDS (200) times
	SEMSERVER_CRASH_ROUNDS=$(or $(ROUNDS),200) $(GO) test -race -timeout 60m -count=1 -v -run NothingAcknowledgedIsLostByKill ./tests

.PHONY: chaos
chaos: ## Break clusters for FOR (10m), with NODES (3, or 5) nodes and from SEED
	$(GO) test -count=1 ./cluster -run PromisesHoldUnderFaults -fault-seeds=100 -timeout 60m
	SEMSERVER_CHAOS_TIME=$(or $(FOR),10m) SEMSERVER_CHAOS_NODES=$(or $(NODES),3) SEMSERVER_CHAOS_SEED=$(SEED) \
	  $(GO) test -count=1 -timeout 0 -v -run PromisesHoldInTheLongRun ./tests/chaos

.PHONY: accept
accept: redis terminal ## Check the built programs from outside, over the wire
	$(GO) test -count=1 ./tests ./tests/semctl ./tests/redismode

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME (30s)
	@for package in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
	    echo "== $$package $$target"; \
	    $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$package; \
	  done; \
	done

.PHONY: bench
bench: redis etcd ## Measure against Redis on this machine (ARGS='-h' lists options)
	$(GO) run ./tests/bench $(ARGS)

.PHONY: lint
lint: ## Check format, vet, golangci-lint (which runs staticcheck), go.mod
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then echo "gofmt wants to change:"; echo "$$files"; exit 1; fi
	$(GO) vet ./...
	$(GO) -C examples/fencing vet ./...
	$(GO) -C tests/bench/etcd vet ./...
	$(TOOL) golangci-lint run ./...
	$(GO) mod verify
	$(GO) mod tidy -diff

.PHONY: redis
redis: # The tests compare with a real Redis and use its tools
	@tools/install redis-server redis-cli

.PHONY: etcd
etcd: # The measurements compare with one
	@tools/install etcd

.PHONY: terminal
terminal: # The tests look at what semctl draws
	@tools/install tmux

.PHONY: image
image: ## Build the container image
	docker build --build-arg VERSION=$(VERSION) -t $(IMAGE):$(VERSION) .

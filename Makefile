# Targets for people and for .ci/run. Building and testing need Go alone; the targets below the line need what they name.
SHELL      := /bin/bash
export CGO_ENABLED ?= 0
GO         ?= go
BIN        := bin/lakesql
VERSION    ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS    := -s -w -X main.version=$(VERSION)
PKGS       := ./...
FUZZTIME   ?= 5s
TAGS       := shared interop clients stores soak

.PHONY: build release demo test lint test-shared test-race fuzz interop clients stores bench soak clean

build: ## the static binary
	$(GO) build -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/lakesql

release: ## the same without this machine's paths in it
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/lakesql

demo: build ## make the demo lake, print statements to try, serve it
	$(BIN) demo

test: ## everything that a bare clone can test
	$(GO) test -count=1 -tags invariants $(PKGS)

lint: ## formatting, vet, staticcheck, the import table
	@out=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$out" ]; then echo "not formatted:"; echo "$$out"; exit 1; fi
	$(GO) vet $(PKGS)
	$(GO) vet -tags '$(TAGS)' $(PKGS)
	$(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2 -tags '$(TAGS)' $(PKGS)
	$(GO) test -count=1 ./internal/lint

# ---- these need more than Go

test-shared: ## tests over the folder "shared" beside the repository
	$(GO) test -count=1 -tags shared -run 'Shared' $(PKGS)

test-race: ## needs a C compiler; leaves out what only calls cloud clients, and the suites whose bounds of time and memory the detector breaks
	CGO_ENABLED=1 $(GO) test -race -count=1 -short $$($(GO) list $(PKGS) | grep -v -e /cmd/ -e /object/cloud -e /storage/pb/ -e /internal/lint -e /test/memory -e /test/sql -e /test/lakes)

fuzz: ## every fuzz target for FUZZTIME
	@set -e; for pkg in $$($(GO) list $(PKGS)); do \
	  for f in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "== $$pkg $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 5x $$pkg; \
	  done; done

interop: ## needs Python 3 and Node.js; test/interop/setup installs the engines
	test/interop/setup
	$(GO) test -count=1 -timeout 20m -tags interop ./test/interop/...

clients: build ## needs Python 3, Node.js, Maven and a MariaDB client; test/clients/setup installs the drivers
	test/clients/setup
	$(GO) test -count=1 -tags clients ./test/clients/...

stores: ## test/stores/setup builds an S3 server
	test/stores/setup
	$(GO) test -count=1 -tags stores ./test/stores/...

bench: build ## the suite beside the peers: see bench/README.md
	bench/run

soak: ## long runs; needs what interop needs
	test/interop/setup
	$(GO) test -count=1 -timeout 2h -tags soak ./test/... ./write
	$(GO) test -count=1 -timeout 2h -tags 'soak interop' -run Soak ./test/interop

clean:
	rm -rf bin .cache

# Everything a contributor needs. `make` alone lists it.
.DEFAULT_GOAL := help

GO          ?= go
# The same flags everywhere, so that everything shares one build cache.
TESTFLAGS   ?= -race -timeout=10m
# Of torture.
DURATION    ?= 60s
QUEUE       ?= native
EMULATOR    ?= front
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## 1,000 orders granted exactly once, under faults; takes a minute
	$(GO) run ./examples/points

.PHONY: test
test: ## what must always pass: format, vet, and every test under the race detector
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "not gofmt'ed:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) test $(TESTFLAGS) ./...

.PHONY: test-long
test-long: ## the tests of make test and those that take minutes
	SPANQUEUE_LONG=1 $(GO) test $(TESTFLAGS:10m=60m) -skip '^TestEmulatorManyInFlight$$' ./...
	@# with its figures, and alone, since it measures
	SPANQUEUE_LONG=1 $(GO) test $(TESTFLAGS) -v -run '^TestEmulatorManyInFlight$$' ./lease

.PHONY: torture
torture: ## workers killed, frozen, cut off: 0 lost, 0 twice (DURATION=60s QUEUE=native|table EMULATOR=front|bare)
	$(GO) run ./torture -duration $(DURATION) -queue '$(QUEUE)' -emulator '$(EMULATOR)'

.PHONY: test-node
test-node: ## Google's Node client on the emulator with queues; needs Node 20 and npm
	$(GO) build -o bin/spanqueue ./cmd/spanqueue
	cd emulator/nodetest && npm install && SPANQUEUE=$(CURDIR)/bin/spanqueue npm test

.PHONY: bench
bench: ## the figures of the README, each against the obvious way, in one run
	$(GO) test -run '^$$' -bench 'Transactions|Processor|Claims' -benchtime 1x ./emulator/front ./processor ./internal/table
	$(GO) test -run '^$$' -bench Pickup -benchtime 300x ./emulator/front
	$(GO) test -run '^$$' -bench Pickup -benchtime 1x ./internal/table

.PHONY: lint
lint: ## gofmt, vet and staticcheck
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "not gofmt'ed:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...

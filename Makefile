SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS += --no-builtin-rules --no-print-directory
.DEFAULT_GOAL := help

with_postgres := scripts/with-postgres.sh
golangci := go tool -modfile=tools/go.mod golangci-lint
example := examples/transfer
module := github.com/norn-go/norn
compat_packages := schema deadline lease poller outbox saga saga/sagatest examples/transfer/bank examples/transfer/transfer
bench ?= .
count ?= 1

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: toolchain ## run the transfer example on 1,000 transfers, in SQLite
	@directory=$$(mktemp -d); trap 'rm -rf "$$directory"' EXIT
	go run ./$(example) run --input $(example)/testdata/transfers-1000.jsonl \
		--database "sqlite://$$directory/transfers.db" --timeout 2s

# An external database is no input that go test could see change, so results are never taken from the cache.
.PHONY: test
test: toolchain ## run all tests, on SQLite and on a Postgres of their own
	@$(with_postgres) go test -timeout 5m -count=1 ./...
	echo "make test: everything passed, on SQLite and on Postgres"

.PHONY: race
race: toolchain ## run all tests with the race detector
	@$(with_postgres) go test -timeout 8m -race -count=1 ./...
	echo "make race: everything passed under the race detector, on SQLite and on Postgres"

.PHONY: compat
compat: toolchain ## run the tests on other drivers, pgx and modernc.org/sqlite
	@cd compat
	../$(with_postgres) go test -timeout 5m -count=1 -tags compat -overlay overlay.json $(addprefix $(module)/,$(compat_packages))
	CGO_ENABLED=0 ../$(with_postgres) go test -timeout 2m -count=1 -tags compat -overlay overlay.json .
	echo "make compat: everything passed, on pgx and on modernc.org/sqlite"

.PHONY: mutants
mutants: toolchain ## break norn on purpose and see that tests notice (mutants="token lease" chooses)
	@$(with_postgres) go run ./mutants $(mutants)

.PHONY: lint
lint: toolchain ## run the linters (the first run builds them, which takes minutes)
	@$(golangci) run ./...

.PHONY: fmt
fmt: toolchain ## format the code
	@$(golangci) fmt ./...

.PHONY: bench
bench: toolchain ## run the benchmarks (bench=REGEXP chooses, count=N repeats for benchstat)
	@$(with_postgres) go test -run '^$$' -bench '$(bench)' -benchmem -count '$(count)' ./...

# Tests that own golden files say so by their names and write them instead of comparing.
owns_golden := Golden|Documented|Refused|Missing|Mistake|Error

.PHONY: golden
golden: toolchain ## write generated and golden files anew
	@go generate ./...
	NORN_UPDATE_GOLDEN=1 $(with_postgres) go test -count=1 -run '$(owns_golden)' ./... | sed '/\[no test/d'

.PHONY: check-golden
check-golden: toolchain ## fail if a generated or golden file is not current
	@scripts/check-golden.sh

.PHONY: tidy-check
tidy-check: toolchain ## fail if a go.mod or go.sum is not tidy
	@go mod tidy -diff
	cd compat
	go mod tidy -diff

.PHONY: clean
clean: ## remove what builds and test runs left in the tree
	@rm -rf bin norn transfer
	find . -name '*.test' -type f -not -path '*/testdata/*' -delete
	find . \( -name '*.prof' -o -name '*.out' \) -type f -not -path '*/testdata/*' -delete

.PHONY: toolchain
toolchain:
	@command -v go >/dev/null || { echo "make: Go is missing: install it from https://go.dev/dl (which version: see go.mod)" >&2; exit 1; }
	compiler=$$(go env CC)
	command -v $${compiler%% *} >/dev/null || { echo "make: a C compiler is missing, which the SQLite driver needs: install gcc (Debian: apt-get install gcc libc6-dev)" >&2; exit 1; }
	[ "$$(go env CGO_ENABLED)" = 1 ] || { echo "make: CGO_ENABLED is 0, and the SQLite driver needs cgo: unset it or set it to 1" >&2; exit 1; }

.ONESHELL:

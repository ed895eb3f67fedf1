# The index of what can be done here. The work itself is done by cargo and `cargo xtask`.

# A rustup installation that the shell does not know of yet.
export PATH := $(HOME)/.cargo/bin:$(PATH)

# Seconds for which `make test` runs each fuzz target.
FUZZ_SECS ?= 40
# What `make run` passes on to `keyway up`: make run ARGS="--nodes 8 --replicas 3"
ARGS ?=
# Which worlds of each profile `make worlds` plays.
SEEDS ?= 1..5000

.DEFAULT_GOAL := help
.PHONY: help run test worlds bench prerequisites prerequisites-bench prerequisites-test

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-6s  %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: prerequisites ## Build Keyway and start a cluster on this machine (ARGS="..." for `keyway up`)
	cargo run --release --locked --bin keyway -- up $(ARGS)

test: prerequisites-test ## Run every check and test (FUZZ_SECS=40 for each fuzz target)
	cargo xtask test --fuzz-secs $(FUZZ_SECS)

worlds: prerequisites ## Play worlds of every profile in the simulator, an hour (SEEDS=1..5000)
	cargo run --profile worlds --locked --bin keyway -- sim --seeds $(SEEDS)

bench: prerequisites-bench ## Measure; docs/performance.md says what the figures mean
	cargo bench --locked -p keyway-switch --bench pipeline
	cargo bench --locked -p keyway-xdp --bench program
	cargo bench --locked -p keyway-node --bench engine
	cargo bench --locked -p keyway-net --bench bundles
	cargo bench --locked -p keyway --bench coordination
	cargo bench --locked -p keyway --bench stores
	cargo bench --locked -p keyway --bench rack

prerequisites:
	@sh tools/prerequisites.sh cc bpf network

prerequisites-bench:
	@sh tools/prerequisites.sh cc bpf network

prerequisites-test:
	@sh tools/prerequisites.sh cc bpf c++ network stores captures routers clients

# Two commands are enough: `make study` measures, `make test` checks everything.
# Both say what they install before they do it, and go on without what cannot be installed.

.DEFAULT_GOAL := help
.PHONY: help linux study test soak audit build web bench clean
.DELETE_ON_ERROR:

WEB_SOURCES := $(wildcard web/*.json web/*.ts web/*.html) $(shell find web/src -type f)
NODE_MODULES := web/node_modules/.package-lock.json

help: ## list these targets
	@sed -n 's/^\([a-z]*\):.*## /  make \1  \t/p' $(MAKEFILE_LIST)

# What cannot work on another system says so before anything is fetched or built.
linux:
	@scripts/linux

study: linux ## files, Redis and MySQL as session stores, measured in about two minutes
	@MAKE='$(MAKE)' scripts/study

test: linux ## everything that is checked: style, rules, tests with real servers, the page in a browser
	@MAKE='$(MAKE)' scripts/test

soak: linux web ## what takes minutes: commands killed at random moments, hostile records, a long search
	@scripts/soak

audit: ## licences, sources and known faults of dependencies
	@scripts/audit

build: linux web ## the program, with the page built in: target/release/cachedyno
	cargo build --release --package cachedyno

web: web/dist/page.html ## the pages that are built in: of reports, and of runs under way

web/dist/page.html: $(NODE_MODULES) $(WEB_SOURCES)
	npm --prefix web run --silent build
	@touch web/dist/live.html $@

$(NODE_MODULES): web/package.json web/package-lock.json
	npm --prefix web ci --no-audit --no-fund --fetch-timeout=60000
	@touch $@

bench: linux ## how fast the parts of the generator are
	cargo bench --package cachedyno-lab

clean: ## remove what was built; records stay
	cargo clean
	rm -rf web/dist web/node_modules

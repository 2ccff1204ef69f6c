# Two commands are enough: `make study` measures, `make test` checks everything.
# Both print what they will install, and continue without programs that cannot be installed.

.DEFAULT_GOAL := help
.PHONY: help linux study test soak audit build web bench clean
.DELETE_ON_ERROR:

WEB_SOURCES := $(wildcard web/*.json web/*.ts web/*.html) $(shell find web/src -type f)
NODE_MODULES := web/node_modules/.package-lock.json

help: ## list these targets
	@sed -n 's/^\([a-z]*\):.*## /  make \1  \t/p' $(MAKEFILE_LIST)

# On other systems, fail before anything is fetched or built.
linux:
	@scripts/linux

study: linux ## measure files, Redis and MySQL as session stores in about two minutes
	@MAKE='$(MAKE)' scripts/study

test: linux ## run all checks: style, rules, tests with real servers, the page in a browser
	@MAKE='$(MAKE)' scripts/test

soak: linux web ## run the long tests: commands killed at random, hostile records, a long search
	@scripts/soak

audit: ## check licences, sources and known vulnerabilities of dependencies
	@scripts/audit

build: linux web ## build the program with the page embedded: target/release/cachedyno
	cargo build --release --package cachedyno

web: web/dist/page.html ## build the embedded pages: report and live page

web/dist/page.html: $(NODE_MODULES) $(WEB_SOURCES)
	npm --prefix web run --silent build
	@touch web/dist/live.html $@

$(NODE_MODULES): web/package.json web/package-lock.json
	npm --prefix web ci --no-audit --no-fund --fetch-timeout=60000
	@touch $@

bench: linux ## benchmark the parts of the generator
	cargo bench --package cachedyno-lab

clean: ## remove build output; keep records
	cargo clean
	rm -rf web/dist web/node_modules

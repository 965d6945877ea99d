# make demo   installs what is missing, builds, and runs the five tutorials end to end
# make test   installs what is missing, and runs every test
SWIFT ?= swift
CONFIGURATION ?= debug
FORMATTED = Package.swift Shared Backend Client ConformanceTests

.PHONY: demo test build release format lint imports packages bench sanitize peers

demo: packages
	$(SWIFT) build -c $(CONFIGURATION) --product tidings-demo
	"$$($(SWIFT) build -c $(CONFIGURATION) --show-bin-path)/tidings-demo" $(ARGS)

test: packages
	$(SWIFT) test $(ARGS)

build: packages
	$(SWIFT) build

release: packages
	$(SWIFT) build -c release --static-swift-stdlib --product tidings
	$(SWIFT) build -c release --static-swift-stdlib --product tidings-device

format:
	$(SWIFT) format --in-place --recursive --parallel $(FORMATTED)

lint: imports
	$(SWIFT) format lint --strict --recursive --parallel $(FORMATTED)

imports:
	scripts/check-imports

bench: packages
	@scripts/install-packages nginx-light wrk
	$(SWIFT) build -c release --product tidings
	$(SWIFT) build -c release --product tidings-benchmarks
	"$$($(SWIFT) build -c release --show-bin-path)/tidings-benchmarks" $(ARGS)

# The address sanitizer ends XCTest's runtime, and reads past a buffer in Foundation's Process (findMaximumOpenFromProcSelfFD of Swift 6.2):
# hence no XCTest, and without the one test that starts a program.
sanitize: packages
	TSAN_OPTIONS="suppressions=$(CURDIR)/scripts/thread-sanitizer.supp" \
		$(SWIFT) test --disable-xctest --sanitize=thread --scratch-path .build/thread-sanitizer
	$(SWIFT) test --disable-xctest --skip eachItsOwn --sanitize=address --scratch-path .build/address-sanitizer

peers: packages
	scripts/test-peers

packages:
	@scripts/install-packages

# make demo   installs what is missing, builds, and runs the five tutorials end to end
# make test   installs what is missing, and runs every test
SWIFT ?= swift
CONFIGURATION ?= debug
FORMATTED = Package.swift Shared Backend Client ConformanceTests

.PHONY: demo test build release format lint imports packages bench sanitize test-peers crash soak faults hostile fuzz install

demo: packages
	$(SWIFT) build -c $(CONFIGURATION) --product tidings-demo
	$(SWIFT) build -c $(CONFIGURATION) --product tidings
	$(SWIFT) build -c $(CONFIGURATION) --product tidings-device
	"$$($(SWIFT) build -c $(CONFIGURATION) --show-bin-path)/tidings-demo" $(ARGS)

test: packages
	$(SWIFT) test $(ARGS)

build: packages
	$(SWIFT) build

release: packages
	$(SWIFT) build -c release --static-swift-stdlib --product tidings
	$(SWIFT) build -c release --static-swift-stdlib --product tidings-device

# Programs to PREFIX/bin, units to PREFIX/lib/systemd/system; run `make release` before, as yourself.
PREFIX ?= /usr/local
BINARIES = .build/release
install:
	install -D -m 755 $(BINARIES)/tidings $(DESTDIR)$(PREFIX)/bin/tidings
	install -D -m 755 $(BINARIES)/tidings-device $(DESTDIR)$(PREFIX)/bin/tidings-device
	install -d $(DESTDIR)$(PREFIX)/lib/systemd/system
	for unit in Backend/Deployment/tidings.service Client/Deployment/tidings-device.service; do \
		sed 's|/usr/local/bin|$(PREFIX)/bin|' $$unit > $(DESTDIR)$(PREFIX)/lib/systemd/system/$$(basename $$unit); done

format:
	$(SWIFT) format --in-place --recursive --parallel $(FORMATTED)

lint: imports
	$(SWIFT) format lint --strict --recursive --parallel $(FORMATTED)

imports:
	scripts/check-imports

bench: packages
	@scripts/install-packages nginx-light wrk postgresql nghttp2-client openssl
	@scripts/python-environment aioapns pywebpush || echo "The benchmarks run without aioapns and pywebpush."
	$(SWIFT) build -c release --product tidings
	$(SWIFT) build -c release --product tidings-benchmarks
	"$$($(SWIFT) build -c release --show-bin-path)/tidings-benchmarks" $(ARGS)

# The thread sanitizer does not see Swift's Mutex without help: scripts/thread-sanitizer-mutex.c.
# The address sanitizer ends XCTest's runtime: hence no XCTest. One test after another: side by side they are too slow for their deadlines.
THREADS = --sanitize=thread --scratch-path .build/thread-sanitizer
sanitize: packages
	$(SWIFT) build --build-tests $(THREADS)
	clang -O1 -shared -fPIC -o .build/thread-sanitizer/mutex.so scripts/thread-sanitizer-mutex.c
	LD_PRELOAD=$(CURDIR)/.build/thread-sanitizer/mutex.so $(SWIFT) test --skip-build --disable-xctest --no-parallel $(THREADS)
	LSAN_OPTIONS="suppressions=$(CURDIR)/scripts/leak-sanitizer.supp" \
		$(SWIFT) test --disable-xctest --no-parallel --sanitize=address --scratch-path .build/address-sanitizer

# Scenario 09: kill -9 in the middle of broadcasts, 20 times each; about seven minutes.
crash: packages
	$(SWIFT) build --product tidings-crash-test
	"$$($(SWIFT) build --show-bin-path)/tidings-crash-test" $(ARGS)

# What forbidden HTTP and WebSocket input gets from a running gateway, as tables.
hostile: packages
	$(SWIFT) build --product tidings-demo
	"$$($(SWIFT) build --show-bin-path)/tidings-demo" --hostile

# Mixed load for an hour: memory, descriptors, losses. ARGS='--seconds 600' for less.
soak: packages
	$(SWIFT) build -c release --product tidings
	$(SWIFT) build -c release --product tidings-soak-test
	"$$($(SWIFT) build -c release --show-bin-path)/tidings-soak-test" $(ARGS)

# 100,000 pushes through a gateway that sends GOAWAY, 410, fewer streams, and nothing at all.
faults: packages
	$(SWIFT) build -c release --product tidings
	$(SWIFT) build -c release --product tidings-soak-test
	"$$($(SWIFT) build -c release --show-bin-path)/tidings-soak-test" --faults 100000 $(ARGS)

# libFuzzer over each reader of foreign bytes, TIME seconds each; READERS="json url" for some. Findings belong into Backend/Fuzz/Corpora.
TIME ?= 600
fuzz: packages
	TIDINGS_FUZZ=1 $(SWIFT) build -c release --sanitize=fuzzer --scratch-path .build/fuzz --product tidings-fuzz
	scripts/fuzz .build/fuzz/release/tidings-fuzz $(TIME) $(READERS)

# Third-party clients from PyPI, at pinned versions, in a virtual environment of the project. TIDINGS_REQUIRE_PEERS=1 makes a client that cannot
# be had a failure.
test-peers: packages
	scripts/test-peers

packages:
	@scripts/install-packages

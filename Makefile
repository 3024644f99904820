# Dragoman is built with GNU make and pkg-config; see CONTRIBUTING.md for the targets.
#
#   make            build/dragoman, build/dragoman-sim   make test      everything, as ./test does
#   make check      formatting, static analysis, include direction
#   make check-postgres   the schema and all statements on PostgreSQL
#   make sanitize   the tests under ASan and UBSan, the store under TSan
#   make fuzz       each fuzzer for FUZZ_SECONDS      make fault     the long fault run
#   make hostile    the attack corpus, long
#   make bench      the benchmarks                    make install   into PREFIX

VERSION     := 0.1.0
PREFIX      ?= /usr/local
BUILD       ?= build
CC          ?= gcc
PKGS        := libuv libcurl libmicrohttpd jansson sqlite3 md4c openssl libedit libpcre2-8 zlib libzstd
FUZZ_SECONDS ?= 60

# A different set of flags never shares objects: each VARIANT builds in its own folder.
#   plain (default), asan (also for fuzzers), tsan, fault
VARIANT     ?= plain
O           := $(if $(filter plain,$(VARIANT)),$(BUILD),$(BUILD)/$(VARIANT))

WARNINGS    := -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wformat=2 \
               -Wundef -Wwrite-strings -Wno-missing-field-initializers -Werror=implicit-function-declaration
HARDENING   := -fstack-protector-strong -fPIE
DEFINES     := -D_GNU_SOURCE -DDRAGOMAN_VERSION='"$(VERSION)"'
OPT_plain   := -O2 -g -D_FORTIFY_SOURCE=2 -fstack-clash-protection -fcf-protection
OPT_fault   := -O1 -g -DDRAGOMAN_FAULTS
OPT_asan    := -O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -DDRAGOMAN_FAULTS
OPT_tsan    := -O1 -g -fsanitize=thread
LINK_asan   := -fsanitize=address,undefined -fuse-ld=lld
LINK_tsan   := -fsanitize=thread
# Objects for the sanitizers are clang's, so that fuzzers share them; lld links the hundreds of test programs twice as fast.
ifeq ($(VARIANT),asan)
override CC := clang
endif

PKG_CFLAGS  := $(shell pkg-config --cflags $(PKGS))
# Debian's wslay has no pkg-config file
PKG_LIBS    := $(shell pkg-config --libs $(PKGS)) -lwslay -lpthread -lm
# Reproducible: no build path and no time in the objects.
CFLAGS_ALL  := -std=gnu17 $(OPT_$(VARIANT)) $(HARDENING) $(WARNINGS) $(DEFINES) -Isrc $(PKG_CFLAGS) \
               -ffile-prefix-map=$(CURDIR)/= $(CFLAGS)
LDFLAGS_ALL := -pie -Wl,-z,relro,-z,now -Wl,--as-needed $(LINK_$(VARIANT)) $(LDFLAGS)

# Rooms, from the one that knows everybody to the one that knows nobody. A room may use those after it.
ROOMS       := cli api config remote schedule agent platform dispatch road bus rows store net base
room_srcs    = $(sort $(wildcard src/$(1)/*.c src/$(1)/*/*.c))
LIBS        := $(ROOMS:%=$(O)/lib%.a)
MAIN_SRCS   := $(sort $(wildcard src/*.c))
ALL_SRCS    := $(foreach r,$(ROOMS),$(call room_srcs,$(r))) $(MAIN_SRCS)

.PHONY: all
all: $(O)/dragoman $(O)/dragoman-sim

$(O)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

define room_lib
$(O)/lib$(1).a: $$(patsubst %.c,$(O)/%.o,$$(call room_srcs,$(1)))
	@rm -f $$@
	ar rcsD $$@ $$^
endef
$(foreach r,$(ROOMS),$(eval $(call room_lib,$(r))))

# src/box is the small static program inside and around sandboxes; the agents' library carries it.
# Its flags are its own: it starts ten times faster than a program with our libraries.
BOX_SRCS    := $(sort $(wildcard src/box/*.c))
$(O)/box/dragoman-box: $(BOX_SRCS) $(wildcard src/box/*.h)
	@mkdir -p $(@D)
	$(CC) -std=gnu17 -O2 $(HARDENING) $(WARNINGS) -D_GNU_SOURCE -Isrc -ffile-prefix-map=$(CURDIR)/= -static -s \
		-Wl,--gc-sections -o $@ $(BOX_SRCS)
$(O)/src/agent/sandbox/box_image.o: $(O)/box/dragoman-box
$(O)/src/agent/sandbox/box_image.o: CFLAGS_ALL += -DBOX_IMAGE='"$(O)/box/dragoman-box"'

$(O)/dragoman: $(MAIN_SRCS:%.c=$(O)/%.o) $(LIBS)
	$(CC) $(LDFLAGS_ALL) -o $@ $(filter %.o,$^) $(LIBS) $(PKG_LIBS)

# Its text becomes part of the object.
$(O)/src/agent/custom/module.o: src/agent/custom/node_host.mjs

# sim/ is a program of its own, which may use the two lowest rooms; its includes are written from here.
SIM_SRCS    := $(filter-out sim/main.c,$(sort $(wildcard sim/*.c sim/*/*.c)))
SIM_LIBS    := $(O)/libsim.a $(O)/libnet.a $(O)/libbase.a
$(O)/sim/%.o $(O)/tests/sim/%.o $(O)/tests/lib/sim_%.o $(O)/fuzz/fuzz_sim_%.o: CFLAGS_ALL += -I.
$(O)/libsim.a: $(SIM_SRCS:%.c=$(O)/%.o)
	@rm -f $@
	ar rcsD $@ $^
$(O)/dragoman-sim: $(O)/sim/main.o $(SIM_LIBS)
	$(CC) $(LDFLAGS_ALL) -o $@ $< $(SIM_LIBS) $(PKG_LIBS)

# tests/<room>/test_<subject>.c is one cmocka program, linked with its room and those it may use.
TEST_SRCS   := $(sort $(wildcard tests/*/test_*.c))
TEST_BINS   := $(TEST_SRCS:%.c=$(O)/%)
# An archive: a test of a low room does not pull in helpers that need higher ones.
TEST_SHARED := $(O)/libtestlib.a
$(TEST_SHARED): $(patsubst %.c,$(O)/%.o,$(sort $(wildcard tests/lib/*.c)))
	@mkdir -p $(@D)
	@rm -f $@
	ar rcsD $@ $^
rooms_from   = $(if $(filter sim,$(1)),sim net base,$(if $(filter $(1),$(ROOMS)),$(shell echo '$(ROOMS)' | sed 's/.*\b$(1)\b/$(1)/'),$(ROOMS)))

# -u: libraries find our fsync, see tests/lib/no_sync.c.
define test_bin
$(O)/$(1:%.c=%): $(O)/$(1:%.c=%.o) $(TEST_SHARED) $(addsuffix .a,$(addprefix $(O)/lib,$(call rooms_from,$(word 2,$(subst /, ,$(1))))))
	$(CC) $$(LDFLAGS_ALL) -Wl,-u,fsync -o $$@ $$< $(TEST_SHARED) $$(filter %/libsim.a,$$^) $$(filter-out %/libsim.a $(TEST_SHARED),$$(filter %.a,$$^)) -lcmocka $(PKG_LIBS)
endef
$(foreach t,$(TEST_SRCS),$(eval $(call test_bin,$(t))))
# The turn_* functions of tests/agent/fake_turn.h take the place of the road's.
$(O)/tests/agent/%: LDFLAGS_ALL += -Wl,-z,muldefs
# The sl_api_* functions of tests/platform/fake_slack_api.h take the place of the platform's.
$(O)/tests/platform/test_slack_cache $(O)/tests/platform/test_slack_intake: LDFLAGS_ALL += -Wl,-z,muldefs
# The wires of the agent meet the simulated services.
$(O)/tests/agent/test_model_services $(O)/tests/agent/test_model_sim: $(O)/libsim.a
$(O)/tests/agent/test_model_services.o $(O)/tests/agent/test_model_sim.o: CFLAGS_ALL += -I.

# The statements of src/rows, which a test prepares.
$(O)/tests/rows/statements.inc: tools/statements $(sort $(wildcard src/rows/*.[ch]))
	@mkdir -p $(@D)
	tools/statements >$@ || { rm -f $@; exit 1; }
$(O)/tests/rows/test_statements.o: $(O)/tests/rows/statements.inc
$(O)/tests/rows/test_statements.o: CFLAGS_ALL += -I$(O)/tests/rows

.PHONY: test-bins
test-bins: $(TEST_BINS)

# fuzz/fuzz_<subject>.c is one libFuzzer program (VARIANT=asan).
FUZZ_BINS   := $(patsubst %.c,$(O)/%,$(sort $(wildcard fuzz/fuzz_*.c)))
$(O)/fuzz/%: LDFLAGS_ALL += -fsanitize=fuzzer
$(O)/fuzz/fuzz_sim_%: $(O)/fuzz/fuzz_sim_%.o $(SIM_LIBS)
	$(CC) $(LDFLAGS_ALL) -o $@ $< $(SIM_LIBS) $(PKG_LIBS)
$(O)/fuzz/fuzz_%: $(O)/fuzz/fuzz_%.o $(LIBS)
	$(CC) $(LDFLAGS_ALL) -o $@ $< $(LIBS) $(PKG_LIBS)
# It plays the road: its turn_* functions take the place of the real ones.
$(O)/fuzz/fuzz_acp: LDFLAGS_ALL += -Wl,-z,muldefs
.PHONY: fuzz-bins
fuzz-bins: $(FUZZ_BINS)

# bench/bench_<subject>.c is one program that prints a table.
BENCH_BINS  := $(patsubst %.c,$(O)/%,$(sort $(wildcard bench/bench_*.c)))
$(O)/bench/bench_%: $(O)/bench/bench_%.o $(LIBS)
	$(CC) $(LDFLAGS_ALL) -o $@ $< $(LIBS) $(PKG_LIBS)
.PHONY: bench-bins
bench-bins: $(BENCH_BINS)

.PHONY: test check check-postgres sanitize fuzz fault hostile bench install clean
test:
	./test
check:
	tools/check
check-postgres:
	tools/check-postgres
sanitize:
	tools/sanitize
fuzz:
	FUZZ_SECONDS=$(FUZZ_SECONDS) tools/fuzz
fault:
	$(MAKE) VARIANT=fault all
	DRAGOMAN=$(BUILD)/fault/dragoman tests/fault/run --full
hostile:
	$(MAKE) VARIANT=asan all
	DRAGOMAN=$(BUILD)/asan/dragoman tests/hostile/run --full
bench:
	bench/run
install: $(O)/dragoman $(O)/dragoman-sim
	install -D -m 755 $(O)/dragoman $(DESTDIR)$(PREFIX)/bin/dragoman
	install -D -m 755 $(O)/dragoman-sim $(DESTDIR)$(PREFIX)/bin/dragoman-sim
	install -D -m 644 docs/dragoman.1 $(DESTDIR)$(PREFIX)/share/man/man1/dragoman.1
	install -D -m 644 packaging/dragoman.service $(DESTDIR)$(PREFIX)/lib/systemd/system/dragoman.service
clean:
	rm -rf $(BUILD)

-include $(shell test -d $(O) && find $(O) -name '*.d')

# The man pages, made from what the programs say of themselves (scripts/manual). None is
# in the tree. MANUAL_DATE is that of the version.
MANUAL_DATE ?= 2026-11-30
MANUALS     := $(addprefix $(B)/man/,aprof.1 aprof-run.1 libaprof.7)

.PHONY: manual
manual: $(MANUALS)
all: manual

$(B)/man/%: $(B)/aprof $(B)/aprof-settings scripts/manual scripts/aprof-run Makefile scripts/manual.rules.mk
	@mkdir -p $(@D)
	$(Q)scripts/manual $(@F) $(B) $(VERSION) $(MANUAL_DATE) > $@.tmp
	$(Q)mv $@.tmp $@

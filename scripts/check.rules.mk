# make check: everything that must hold. One step after the other, also with -j:
# what setup installs is needed to build.
#
# check-build: what the parts of scripts/check need beside `all`; each file of rules names its
# own. It is built ahead, on all cores. Where that fails the part that needs it says so.
.PHONY: check-build
check-build: all
CHECK_JOBS = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))
check:
	$(Q)$(MAKE) --no-print-directory setup
	$(Q)$(MAKE) --no-print-directory $(CHECK_JOBS) all
	$(Q)$(MAKE) --no-print-directory $(CHECK_JOBS) -k check-build || true
	$(Q)scripts/forky || true
	$(Q)scripts/check

# make check: everything that must hold. One step after the other, also with -j:
# what setup installs is needed to build.
check:
	$(Q)$(MAKE) --no-print-directory setup
	$(Q)$(MAKE) --no-print-directory all
	$(Q)scripts/forky || true
	$(Q)scripts/check

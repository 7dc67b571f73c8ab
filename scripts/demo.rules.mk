# make demo: profiles a real service under load and prints what is slow.
demo:
	$(Q)$(MAKE) --no-print-directory setup
	$(Q)$(MAKE) --no-print-directory all
	$(Q)scripts/demo

# What `aprof convert` and `aprof merge` write, and the programs that it is for reading it.
.PHONY: check-convert
check-convert: all
	$(Q)tests/convert/run --aprof $(B)/aprof

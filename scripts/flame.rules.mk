# The page of `aprof flame`: output/flame/ and d3-flame-graph, of which 4.1.3 is the
# last version that brings the parts of d3 that it uses with it. It is not in the tree:
# npm takes it from the registry that it is set up for, the sum says that it is the one
# we mean. Where that fails `make` says so, goes on without, and tries again next time.
FLAME_PACKAGE := d3-flame-graph@4.1.3
FLAME_SHA512  := 3628ee849661693330a1b560c0643aef1f4fa2fa8c3075c16ecd0530710626fb16646b8be0ceceb01d37bfc9877725721e19d0606b189dbe70d36d5ef7e47e45
FLAME_FOLDER  := build/flame/d3-flame-graph-4.1.3
FLAME_MISSING := $(if $(wildcard $(FLAME_FOLDER)),,flame-package)

.PHONY: flame-package
flame-package:
	$(Q)scripts/npm-package $(FLAME_PACKAGE) $(FLAME_SHA512) $(FLAME_FOLDER) 'aprof flame is left out' || true

build/flame/template.html: output/flame/page.html output/flame/page.css output/flame/page.js LICENSE.others.md \
                           scripts/flame-template scripts/flame.rules.mk $(FLAME_MISSING)
	$(Q)scripts/flame-template $(FLAME_FOLDER) $@

# The symbols are named for the file as ld is given it.
$(B)/tool/output/template.o: build/flame/template.html
	@mkdir -p $(@D)
	$(Q)object=$$(realpath $(@D))/template.o && cd $(<D) && $(LD) -r -b binary -z noexecstack -o "$$object" $(<F)

# The page in headless Chromium.
.PHONY: check-flame
check-flame: all
	$(Q)tests/flame/run

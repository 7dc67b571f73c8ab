# The reader programs' tests: unit tests and golden spools, whatever the variant.
.PHONY: check-tool check-tool-valgrind
TOOL_CHECK_OBJ := $(B)/tool/tests/tool/check_reader.o
$(B)/check-reader: $(TOOL_CHECK_OBJ) $(filter-out $(B)/tool/output/aprof.o,$(TOOL_OBJ))
	@echo "  LINK  $@"
	$(Q)$(CC) $(SANITIZE) -o $@ $^ $(TOOL_LIBS) $(shell pkg-config --libs check)

$(B)/hasty_clock.so: tests/tool/hasty_clock.c
	$(Q)$(CC) $(CPPFLAGS) -O2 -std=gnu11 $(WARNINGS) -Wno-missing-prototypes -shared -fPIC -o $@ $<

check-build: $(B)/check-reader $(B)/hasty_clock.so

# Each part prints "N passed, M failed"; the last line sums them up.
check-tool: $(B)/aprof $(B)/check-reader $(B)/hasty_clock.so manual
	$(Q){ $(B)/check-reader || echo "check-reader failed"; \
	    tests/golden/run.sh $(B)/aprof || echo "golden failed"; \
	    tests/tool/terminal.py $(B)/aprof $(B)/hasty_clock.so || echo "terminal failed"; \
	    tests/tool/commands.py $(B)/aprof || echo "commands failed"; \
	    tests/tool/crowds.py $(B)/aprof || echo "crowds failed"; \
	    tests/tool/manual.py $(B) || echo "manual failed"; } | tee $(B)/tool.log
	$(Q)awk '/[0-9]+ passed, [0-9]+ failed/ { sub(/^check-reader: /, ""); passed += $$1; failed += $$3; skipped += $$5; ran++ } \
	    / failed$$/ && !/passed/ { bad = 1 } \
	    END { print passed + 0 " passed, " failed + 0 " failed" (skipped ? ", " skipped " skipped" : ""); exit bad || failed || ran != 6 }' $(B)/tool.log

# A reader meets files that someone else cut or overwrote: not one byte beyond.
check-tool-valgrind: $(B)/aprof $(B)/check-reader
	$(Q)CK_FORK=no valgrind -q --error-exitcode=9 --leak-check=full $(B)/check-reader
	$(Q)for case in service broken metrics tasks; do \
	    valgrind -q --error-exitcode=9 --leak-check=full $(B)/aprof report --top 0 tests/golden/$$case/spool >/dev/null && \
	    valgrind -q --error-exitcode=9 --leak-check=full $(B)/aprof report --by stack --width 60 tests/golden/$$case/spool >/dev/null && \
	    valgrind -q --error-exitcode=9 --leak-check=full $(B)/aprof report --only 'json.*' --only '*.py' --hide dumps tests/golden/$$case/spool >/dev/null && \
	    valgrind -q --error-exitcode=9 --leak-check=full $(B)/aprof report --json tests/golden/$$case/spool >/dev/null && \
	    { [ ! -s build/flame/template.html ] || valgrind -q --error-exitcode=9 --leak-check=full $(B)/aprof flame tests/golden/$$case/spool >/dev/null; } || exit 1; \
	done
	$(Q)for show in --width=60 --json --markdown; do \
	    valgrind -q --error-exitcode=9 --leak-check=full $(B)/aprof diff --metric all $$show tests/golden/compared/spool/base tests/golden/compared/spool/new >/dev/null || exit 1; \
	done
	$(Q)for case in converted metrics broken service; do \
	    for format in $(if $(PPROF_HERE),pprof) speedscope firefox collapsed; do \
	        valgrind -q --error-exitcode=9 --leak-check=full $(B)/aprof convert -f $$format tests/golden/$$case/spool >/dev/null || exit 1; \
	    done && \
	    rm -rf $(B)/merged && valgrind -q --error-exitcode=9 --leak-check=full $(B)/aprof merge -o $(B)/merged tests/golden/$$case/spool && \
	    valgrind -q --error-exitcode=9 --leak-check=full $(B)/aprof report --json $(B)/merged >/dev/null || exit 1; \
	done; rm -rf $(B)/merged

-include $(TOOL_CHECK_OBJ:.o=.d)

/* SPDX-License-Identifier: MIT
 *
 * Runs every suite of one binary; SUITES names them (scripts/unit.rules.mk).
 * With arguments only the suites named: check_unit guard mem.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define X(name) Suite *suite_##name(void);
SUITES(X)
#undef X

static const struct {
    const char *name;
    Suite *(*make)(void);
} suites[] = {
#define X(suite) {#suite, suite_##suite},
    SUITES(X)
#undef X
};

static int is_wanted(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return 1;
    return argc < 2;
}

int main(int argc, char **argv)
{
    SRunner *runner = srunner_create(NULL);
    for (size_t i = 0; i < sizeof suites / sizeof suites[0]; i++)
        if (is_wanted(suites[i].name, argc, argv))
            srunner_add_suite(runner, suites[i].make());
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner), passed = srunner_ntests_run(runner) - failed;
    printf("%d passed, %d failed\n", passed, failed);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* SPDX-License-Identifier: MIT
 *
 * answer: requests for a dump, honest and hostile, and what is written to them; read
 * back by the reader's half.
 */
#include "tests/unit/spool_fixture.h"

#include "output/answer.h"
#include "output/dumped.h"
#include "output/evict.h"

static struct place place;
static struct answer answer;
static struct buffer buffer;

static bool never(void)
{
    return false;
}

static void begin(void)
{
    ck_assert(place_init(&place, directory, "test.host", 42, START));
    ck_assert_int_eq(place_open(&place), 0);
    ck_assert(buffer_init(&buffer));
    memset(&answer, 0, sizeof answer);
}

static void end(void)
{
    place_free(&place);
    buffer_free(&buffer);
}

static const char *dump_name(enum spool_dump which)
{
    static char name[SPOOL_NAME_MAX + 1];
    ck_assert_uint_gt(spool_dump_format(&place.owner, which, name, sizeof name), 0);
    return path_of(name);
}

static void ask(void)
{
    int fd = open(dump_name(SPOOL_DUMP_ASK), O_WRONLY | O_CREAT | O_EXCL, 0600);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

/* Seen so often, and refused so often. */
static void ck_looks(int asked, int refused)
{
    int seen = 0, said = 0;
    for (int i = 0; i < 3; i++) {
        bool no;
        seen += answer_is_asked(&answer, &place, &no);
        said += no;
    }
    ck_assert_int_eq(seen, asked);
    ck_assert_int_eq(said, refused);
}

static struct dumped read_back(void)
{
    struct dumped dumped;
    size_t size;
    char *text = content(dump_name(SPOOL_DUMP_ANSWER), &size);
    ck_assert(dumped_parse(&dumped, text, size));
    return dumped;
}

START_TEST(names)
{
    static const char *const good[] = {"aprof.host.42.1700000000000000.ask", "aprof.a_b-9.1.1.dump", "aprof.a_b-9.1.1.dump.tmp"};
    static const char *const bad[] = {"aprof.host.42.ask", "aprof.host.42.17.000000.json", ".ask", "ask", "aprof..42.17.ask", "aprof.host.x.17.ask",
                                      "aprof.host.42.17.dump.tmp.tmp", "xprof.host.42.17.ask", "aprof.ho/st.42.17.ask", ""};
    for (int i = 0; i < 3; i++) {
        struct spool_name name;
        enum spool_dump which;
        char text[SPOOL_NAME_MAX + 1];
        ck_assert(spool_dump_parse(good[i], &name, &which));
        ck_assert_int_eq(which, i);
        ck_assert_uint_eq(name.seq, UINT64_MAX);
        spool_dump_format(&name, which, text, sizeof text);
        ck_assert_str_eq(text, good[i]);
        ck_assert(!spool_name_parse(good[i], &name)); /* no reader of windows takes it for one */
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(!spool_dump_parse(bad[i], &(struct spool_name){0}, &(enum spool_dump){0}), "%s", bad[i]);
}
END_TEST

START_TEST(a_request_is_answered_once)
{
    struct dump dump;
    begin();
    ck_looks(0, 0);
    ask();
    ck_looks(3, 0);
    dump_begin(&dump, 1234, never);
    dump.tasks_known = true;
    struct dump_thread thread = {.tid = 7, .state = DUMP_WAITING, .how = DUMP_STOOD, .age_ns = 5000, .stack = stack_of("a (p:1);b (p:2)"),
                                 .name = dump_keep(&dump, "main thread", 11)};
    dump_add_thread(&dump, &thread);
    thread = (struct dump_thread){.tid = 6, .state = DUMP_RUNNING, .how = DUMP_UNKNOWN, .age_ns = DUMP_NO_AGE};
    dump_add_thread(&dump, &thread);
    profile_stack stacks[] = {stack_of("a (p:1);t (p:3)"), stack_of("a (p:1);b (p:2)")};
    struct dump_task task = {.state = DUMP_AWAITS, .how = DUMP_READ, .tid = 7, .waits_ns = 9000, .name = dump_keep(&dump, "Task-1", 6)};
    dump_add_task(&dump, &task, stacks, 2);
    ck_assert_int_eq(answer_write(&answer, &place, &buffer, &dump, profile), 0);
    ck_assert(!exists(dump_name(SPOOL_DUMP_ASK)));
    ck_assert(!exists(dump_name(SPOOL_DUMP_TEMPORARY)));
    ck_assert_uint_eq(mode_of(dump_name(SPOOL_DUMP_ANSWER)), 0600);
    ck_looks(0, 0);

    struct dumped dumped = read_back();
    char request[64];
    snprintf(request, sizeof request, "%lu.%lu", (unsigned long)answer.inode, (unsigned long)answer.changed_ns);
    ck_assert_str_eq(dumped.request, request);
    ck_assert_uint_eq(dumped.at_us, 1234);
    ck_assert(!dumped.tasks_off);
    ck_assert_uint_eq(dumped.threads_count, 2);
    ck_assert_uint_eq(dumped.threads[0].tid, 6);
    ck_assert_str_eq(dumped.threads[0].state, "running");
    ck_assert_uint_eq(dumped.threads[0].stack, DUMPED_NO_STACK);
    ck_assert_uint_eq(dumped.threads[0].age_us, DUMPED_NO_AGE);
    ck_assert_str_eq(dumped.threads[0].name, "");
    ck_assert_str_eq(dumped.threads[1].how, "stood");
    ck_assert_uint_eq(dumped.threads[1].age_us, 5);
    ck_assert_str_eq(dumped.threads[1].name, "main thread");
    ck_assert_str_eq(dumped.stacks[dumped.threads[1].stack].text, "a (p:1);b (p:2)");
    ck_assert_uint_eq(dumped.tasks_count, 1);
    ck_assert_str_eq(dumped.tasks[0].state, "awaits");
    ck_assert_uint_eq(dumped.tasks[0].age_us, 9);
    ck_assert_uint_eq(dumped.tasks[0].stacks, 2);
    ck_assert_str_eq(dumped.stacks[dumped.stack_of_task[0]].text, "a (p:1);t (p:3)");
    ck_assert_str_eq(dumped.stacks[dumped.stack_of_task[1]].text, "a (p:1);b (p:2)");
    ck_assert_uint_eq(dumped.stacks_count, 2); /* each once */
    dumped_free(&dumped);
    dump_free(&dump);
    end();
}
END_TEST

static void answer_nothing(void)
{
    struct dump dump;
    dump_begin(&dump, 1, never);
    ck_assert_int_eq(answer_write(&answer, &place, &buffer, &dump, profile), 0);
    dump_free(&dump);
}

START_TEST(requests_that_nobody_may_make)
{
    begin();
    char victim[96];
    snprintf(victim, sizeof victim, "%s/victim", top);
    close(open(victim, O_WRONLY | O_CREAT, 0600));
    ck_assert_int_eq(symlink(victim, dump_name(SPOOL_DUMP_ASK)), 0);
    ck_looks(0, 1);
    unlink(dump_name(SPOOL_DUMP_ASK));
    ck_assert_int_eq(mkfifo(dump_name(SPOOL_DUMP_ASK), 0600), 0);
    ck_looks(0, 1);
    unlink(dump_name(SPOOL_DUMP_ASK));
    ck_assert_int_eq(mkdir(dump_name(SPOOL_DUMP_ASK), 0700), 0);
    ck_looks(0, 1);
    ck_assert_int_eq(rmdir(dump_name(SPOOL_DUMP_ASK)), 0);
    ask();
    ck_assert_int_eq(truncate(dump_name(SPOOL_DUMP_ASK), (off_t)1 << 40), 0);
    ck_looks(0, 1);
    unlink(dump_name(SPOOL_DUMP_ASK));
    ck_assert_int_eq(link(victim, dump_name(SPOOL_DUMP_ASK)), 0);
    ck_looks(0, 1);
    ck_assert(exists(victim));
    unlink(dump_name(SPOOL_DUMP_ASK));
    ask(); /* an honest one after all of them */
    ck_looks(3, 0);
    answer_nothing();
    ck_assert(exists(dump_name(SPOOL_DUMP_ANSWER)));
    end();
}
END_TEST

START_TEST(requests_of_other_users)
{
    if (geteuid() != 0) {
        printf("answer: requests of other users not run: not root\n");
        return;
    }
    begin();
    ask();
    ck_assert_int_eq(chown(dump_name(SPOOL_DUMP_ASK), NOBODY, NOBODY), 0);
    ck_looks(0, 1);
    pid_t child = fork();
    if (child == 0) { /* its own, and root's */
        bool no;
        if (setresuid(NOBODY, NOBODY, NOBODY) != 0)
            _exit(1);
        memset(&answer, 0, sizeof answer);
        _exit(answer_is_asked(&answer, &place, &no) ? 0 : 2);
    }
    int status;
    waitpid(child, &status, 0);
    ck_assert_int_eq(status, 0);
    end();
}
END_TEST

/* Root's, in a directory like a mail spool: it stays there, and is answered once. */
START_TEST(a_request_that_cannot_be_taken_away)
{
    if (geteuid() != 0) {
        printf("answer: sticky directories not run: not root\n");
        return;
    }
    ck_assert_int_eq(chmod(top, 0755), 0);
    begin();
    ck_assert_uint_eq(mode_of(directory), 01733);
    ask();
    pid_t child = fork();
    if (child == 0) {
        struct dump dump;
        bool no;
        if (setresuid(NOBODY, NOBODY, NOBODY) != 0 || !answer_is_asked(&answer, &place, &no))
            _exit(1);
        dump_begin(&dump, 1, never);
        if (answer_write(&answer, &place, &buffer, &dump, profile) != 0)
            _exit(2);
        _exit(answer_is_asked(&answer, &place, &no) ? 3 : 0);
    }
    int status;
    waitpid(child, &status, 0);
    ck_assert_int_eq(status, 0);
    ck_assert(exists(dump_name(SPOOL_DUMP_ASK)));
    struct stat written;
    ck_assert_int_eq(lstat(dump_name(SPOOL_DUMP_ANSWER), &written), 0);
    ck_assert_uint_eq(written.st_uid, NOBODY);
    ck_assert_uint_eq(written.st_mode & 07777, 0600);
    end();
}
END_TEST

START_TEST(planted_answers_are_not_followed)
{
    size_t size;
    char victim[96];
    begin();
    snprintf(victim, sizeof victim, "%s/victim", top);
    FILE *file = fopen(victim, "w");
    fputs("precious\n", file);
    fclose(file);
    ck_assert_int_eq(symlink(victim, dump_name(SPOOL_DUMP_TEMPORARY)), 0);
    ck_assert_int_eq(symlink(victim, dump_name(SPOOL_DUMP_ANSWER)), 0);
    ask();
    ck_looks(3, 0);
    answer_nothing();
    struct dumped dumped = read_back();
    dumped_free(&dumped);
    struct stat status;
    ck_assert_int_eq(lstat(dump_name(SPOOL_DUMP_ANSWER), &status), 0);
    ck_assert(S_ISREG(status.st_mode));
    char *text = content(victim, &size);
    ck_assert_str_eq(text, "precious\n");
    free(text);
    unlink(dump_name(SPOOL_DUMP_ANSWER));
    ck_assert_int_eq(mkdir(dump_name(SPOOL_DUMP_ANSWER), 0700), 0); /* which a file does not replace */
    ask();
    ck_looks(3, 0);
    struct dump dump;
    dump_begin(&dump, 1, never);
    ck_assert_int_lt(answer_write(&answer, &place, &buffer, &dump, profile), 0);
    dump_free(&dump);
    ck_assert(!exists(dump_name(SPOOL_DUMP_TEMPORARY)));
    ck_looks(0, 0); /* not tried each second */
    end();
}
END_TEST

/* More than an answer may hold: whole lines, an end, and how many are not there. */
START_TEST(a_large_one_is_cut)
{
    struct dump dump;
    char text[4096];
    enum { TASKS = 4000 };
    begin();
    ask();
    ck_looks(3, 0);
    dump_begin(&dump, 1, never);
    for (int i = 0; i < TASKS; i++) {
        memset(text, 'f', sizeof text - 32);
        snprintf(text + sizeof text - 32, 32, "%d (p:1)", i);
        profile_stack stack = stack_of(text);
        dump_add_task(&dump, &(struct dump_task){.state = DUMP_WAITING, .how = DUMP_READ, .tid = 7}, &stack, 1);
    }
    ck_assert_int_eq(answer_write(&answer, &place, &buffer, &dump, profile), 0);
    struct stat status;
    ck_assert_int_eq(stat(dump_name(SPOOL_DUMP_ANSWER), &status), 0);
    ck_assert_int_le(status.st_size, ANSWER_MOST);
    ck_assert_int_ge(status.st_size, ANSWER_MOST / 10 * 9);
    struct dumped dumped = read_back();
    ck_assert_uint_gt(dumped.tasks_left, 0);
    ck_assert_uint_eq(dumped.tasks_count + dumped.tasks_left, TASKS);
    for (size_t i = 0; i < dumped.tasks_count; i++)
        ck_assert_uint_eq(dumped.tasks[i].stacks, 1);
    dumped_free(&dumped);
    dump_free(&dump);
    end();
}
END_TEST

/* A reader believes no more than the form of what it is given. */
START_TEST(answers_that_are_none)
{
    static const char *const texts[] = {
        "", "\n", "aprof-dump\t1\n", "aprof-dump\t2\nend\n", "aprof-dump\nend\n", "end\n", "aprof-dump\t1\nthread\nend",
    };
    static const char odd[] = "aprof-dump\t1\nthread\t1\ntask\n\t\t\t\nstack\t1\nstack\tx\ty\ntask\ta\tb\t-1\t-\t1,,9999999999999999999999,2\tn\textra\n"
                              "thread\t5\ts\th\tage\t77\tname\nleft\t1\nend\nmore\n";
    struct dumped dumped;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        ck_assert_msg(!dumped_parse(&dumped, strdup(texts[i]), strlen(texts[i])), "%s", texts[i]);
        dumped_free(&dumped);
    }
    ck_assert(dumped_parse(&dumped, strdup(odd), strlen(odd)));
    ck_assert_uint_eq(dumped.tasks_count, 1);
    ck_assert_uint_eq(dumped.tasks[0].stacks, 0);
    ck_assert_uint_eq(dumped.threads_count, 1);
    ck_assert_uint_eq(dumped.threads[0].stack, DUMPED_NO_STACK);
    dumped_free(&dumped);
}
END_TEST

/* ---- in the spool ---- */

START_TEST(a_spool_is_asked_while_it_is_healthy)
{
    struct spool *spool = spool_with(42, MIB, true);
    struct dump dump;
    begin();
    ask();
    ck_assert(!spool_is_asked(spool)); /* no window is open */
    add("a;b", METRIC_CPU, 5);
    ck_assert_int_eq(flush(spool), 0);
    ck_assert(spool_is_asked(spool));
    struct metadata metadata = metadata_of(0);
    ck_assert_int_eq(spool_pause(spool, &metadata), 0);
    ck_assert(!spool_is_asked(spool));
    ck_assert_int_eq(spool_resume(spool, profile, &metadata), 0);
    ck_assert(spool_is_asked(spool));
    dump_begin(&dump, 1, never);
    ck_assert_int_eq(spool_answer(spool, &dump, profile), 0);
    ck_assert(!spool_is_asked(spool));
    struct dumped dumped = read_back();
    dumped_free(&dumped);
    ck_assert_int_eq(mkdir(dump_name(SPOOL_DUMP_ASK), 0700), 0);
    ck_assert(!spool_is_asked(spool));
    ck_assert(!spool_is_asked(spool));
    ck_assert_int_eq(describe(spool), 0);
    ck_assert_int_eq(limit_of(file_name(42, 0, "json.live"), "dump_refused"), 1);
    dump_free(&dump);
    spool_free(spool);
    end();
}
END_TEST

/* Answers and requests that nobody fetched count, and go, but never our own. */
START_TEST(what_is_left_is_evicted)
{
    begin();
    plant(7, 0, "json", 1000, 50); /* of another process: window 0 of pid 7 */
    int fd = open(path_of("aprof.other.7.1.dump"), O_WRONLY | O_CREAT, 0600);
    ck_assert_int_eq(ftruncate(fd, 2 * MIB), 0);
    struct timespec times[2] = {{.tv_sec = time(NULL) - 100}, {.tv_sec = time(NULL) - 100}};
    ck_assert_int_eq(futimens(fd, times), 0);
    close(fd);
    fd = open(dump_name(SPOOL_DUMP_ANSWER), O_WRONLY | O_CREAT, 0600);
    ck_assert_int_eq(ftruncate(fd, MIB), 0);
    ck_assert_int_eq(futimens(fd, times), 0);
    close(fd);
    fd = open(path_of("aprof.foreign.dump"), O_WRONLY | O_CREAT, 0600); /* not of our pattern */
    ck_assert_int_eq(ftruncate(fd, 4 * MIB), 0);
    close(fd);
    struct spool_name own = place.owner;
    struct evict_request request = {place.fd, MIB / 2, 0, clock_epoch_us(), &own};
    struct evict_result result;
    ck_assert_int_eq(evict_run(&request, &result), 0);
    ck_assert(!exists(path_of("aprof.other.7.1.dump")));
    ck_assert(exists(dump_name(SPOOL_DUMP_ANSWER)));
    ck_assert(exists(path_of("aprof.foreign.dump")));
    ck_assert_uint_eq(result.total_bytes, MIB);
    end();
}
END_TEST

Suite *suite_answer(void)
{
    Suite *suite = suite_create("answer");
    TCase *requests = tcase_create("requests"), *answers = tcase_create("answers");
    tcase_add_checked_fixture(requests, setup, teardown);
    tcase_add_checked_fixture(answers, setup, teardown);
    tcase_add_test(requests, names);
    tcase_add_test(requests, a_request_is_answered_once);
    tcase_add_test(requests, requests_that_nobody_may_make);
    tcase_add_test(requests, requests_of_other_users);
    tcase_add_test(requests, a_request_that_cannot_be_taken_away);
    tcase_add_test(requests, a_spool_is_asked_while_it_is_healthy);
    tcase_add_test(answers, planted_answers_are_not_followed);
    tcase_add_test(answers, a_large_one_is_cut);
    tcase_add_test(answers, answers_that_are_none);
    tcase_add_test(answers, what_is_left_is_evicted);
    suite_add_tcase(suite, requests);
    suite_add_tcase(suite, answers);
    return suite;
}

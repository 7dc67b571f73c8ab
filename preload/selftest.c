/* SPDX-License-Identifier: MIT */
#include "preload/selftest.h"

#include <string.h>

#include "hooks/guard.h"
#include "hooks/log.h"
#include "hooks/slot.h"
#include "hooks/task.h"
#include "preload/python.h"
#include "sampler/cpython/code.h"
#include "sampler/cpython/frames.h"
#include "sampler/cpython/objects.h"
#include "sampler/cpython/states.h"
#include "sampler/loop.h"

/* The interpreter's functions that are called, with their signatures (hooks/slot.h). */
enum function { THREAD_STATE, CURRENT_FRAME, FRAME_CODE, FRAME_LINE, DECREF, FUNCTIONS };
static const struct {
    const char *name, *signature;
} rows[FUNCTIONS] = {
    [THREAD_STATE] = {"PyThreadState_Get", "p"},
    [CURRENT_FRAME] = {"PyEval_GetFrame", "p"},
    [FRAME_CODE] = {"PyFrame_GetCode", "pp"},
    [FRAME_LINE] = {"PyFrame_GetLineNumber", "ip"},
    [DECREF] = {"Py_DecRef", "vp"},
};

enum { FRAMES_LOOKED_AT = 64, NAME_LOOKED_AT = 1000 };

static const struct py_target *tested;
static void *functions[FUNCTIONS];
static int (*add_pending)(int (*)(void *), void *);

static uintptr_t call(enum function function, uintptr_t argument)
{
    uintptr_t result = 0;
    slot_call(functions[function], rows[function].signature, &argument, &result);
    return result;
}

static const char *check_state(uintptr_t tstate)
{
    pid_t tid = task_tid();
    struct state state;
    if (!states_read(tested, tstate, &state) || !states_is_of(tested, tstate, tid, pthread_self()))
        return "the thread state";
    if (!states_holds_gil(tested, tstate))
        return "the holder of the GIL";
    return states_find_own(tested, tid, pthread_self(), FRAMES_LOOKED_AT) == tstate ? NULL : "the list of threads";
}

/* The name must be a str with sane characters; what it says is the walk's business. */
static bool name_is_text(const struct py_code *code)
{
    struct py_str name, path;
    return objects_str(tested, code->qualname, &name) && name.length && name.length < NAME_LOOKED_AT &&
           objects_str(tested, code->filename, &path) && path.length && path.length < 16 * NAME_LOOKED_AT;
}

static const char *check_frame(uintptr_t tstate, uintptr_t frame_object)
{
    struct frames_walk walk;
    struct py_frame frame;
    uintptr_t code = call(FRAME_CODE, frame_object);
    int32_t line = (int32_t)call(FRAME_LINE, frame_object);
    const char *wrong = "the current frame";

    frames_begin(&walk, tested, tstate, FRAMES_LOOKED_AT);
    while (frames_next(&walk, &frame)) {
        if (frame.kind != FRAME_PYTHON || frame.code.address != code)
            continue;
        if (!name_is_text(&frame.code))
            wrong = "the name of a code object";
        else if (line > 0 && code_line_in_place(tested, &frame.code, frame.lasti) != line)
            wrong = "the line of a frame";
        else
            wrong = NULL;
        break;
    }
    while (!wrong && frames_next(&walk, &frame)) /* and the chain must end where it should */
        ;
    if (!wrong && walk.end != FRAMES_COMPLETE && walk.end != FRAMES_LIMIT)
        wrong = "the chain of frames";
    call(DECREF, code);
    return wrong;
}

static int run_test(void *unused)
{
    uintptr_t tstate = call(THREAD_STATE, 0), frame = call(CURRENT_FRAME, 0);
    const char *wrong = check_state(tstate);
    if (!wrong && frame)
        wrong = check_frame(tstate, frame);
    if (wrong) {
        log_line(LOG_WARN, LOG_SELFTEST, "self-test failed: %s is not where Python %s should have it; not profiling", wrong,
                 python_version_text());
        loop_refuse();
    }
    return 0;
}

/* Not by the sampler: dlsym takes the loader's lock, and a fork at that moment
 * would leave it locked for ever in the child. */
void selftest_prepare(void)
{
    add_pending = (int (*)(int (*)(void *), void *))python_symbol("Py_AddPendingCall");
    for (int i = 0; i < FUNCTIONS; i++)
        functions[i] = python_symbol(rows[i].name);
}

bool selftest_post(const struct py_target *target)
{
    for (int i = 0; i < FUNCTIONS; i++) {
        if (!functions[i]) {
            log_line(LOG_WARN, LOG_SELFTEST, "Python %s does not export %s; not profiling", python_version_text(), rows[i].name);
            return false;
        }
    }
    tested = target;
    if (add_pending)
        add_pending(run_test, NULL); /* a full queue: this life goes untested, as one whose main thread never returns does */
    return true;
}

/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/executors.h"

#include "sampler/cpython/containers.h"
#include "sampler/cpython/objects.h"

enum { CALLBACKS_MOST = 16 }; /* looked at */

/* Hands the result on to a future of asyncio? */
static bool hands_on(const struct py_target *target, uintptr_t callback)
{
    uintptr_t code = target->function_type && objects_is(target, callback, target->function_type) ? objects_pointer(callback, target->layout.function_code) : 0;
    return code && containers_is_text(target, objects_pointer(code, target->layout.code_qualname), "_chain_future.<locals>._call_set_state");
}

static enum executors_found judge(const struct py_target *target, const struct asyncio *asyncio, uintptr_t future)
{
    enum future_state state;
    if (!future || !asyncio_state(target, asyncio, future, &state))
        return EXECUTORS_TORN;
    return state == FUTURE_PENDING ? EXECUTORS_FUTURE : EXECUTORS_NONE;
}

enum executors_found executors_future(const struct py_target *target, const struct asyncio *asyncio, uintptr_t frame, const struct py_code *code,
                                      uintptr_t *future)
{
    uintptr_t item = containers_local(target, frame, code, "self");
    uintptr_t source = item ? containers_attribute(target, item, "future") : 0;
    uintptr_t list = source ? containers_attribute(target, source, "_done_callbacks") : 0;
    struct items callbacks;
    *future = 0;
    if (!list || !containers_items(target, list, &callbacks))
        return EXECUTORS_TORN;
    for (uint32_t i = 0; i < callbacks.count && i < CALLBACKS_MOST; i++) {
        uintptr_t callback = containers_item(&callbacks, i);
        if (callback && hands_on(target, callback))
            return judge(target, asyncio, *future = containers_closure(target, callback, "destination"));
    }
    return EXECUTORS_NONE;
}

enum executors_found executors_anyio_future(const struct py_target *target, const struct asyncio *asyncio, uintptr_t frame, const struct py_code *code,
                                            uintptr_t *future)
{
    *future = 0;
    if (!containers_local_is(target, frame, code, "future", future))
        return EXECUTORS_TORN;
    return *future ? judge(target, asyncio, *future) : EXECUTORS_NONE; /* unbound: it waits to be sent something */
}

/* SPDX-License-Identifier: MIT */
#include <check.h>
#include <string.h>

#include "output/package.h"

static const struct {
    const char *path, *package;
} packages[] = {
    { "aiohttp/web.py", "aiohttp" },
    { "random.py", "random" },
    { "random.py:31", "random" },
    { "/usr/lib/python3/dist-packages/aiohttp/web.py", "aiohttp" },
    { "/srv/venv/lib/python3.12/site-packages/aiohttp/web.py:3", "aiohttp" },
    { "/srv/venv/lib/python3.12/site-packages/six.py", "six" },
    { "/usr/lib/python3.11/json/encoder.py", "json" },
    { "/usr/lib/python3.13t/random.py", "random" },
    { "/srv/shop/orders/views.py", "orders" },
    { "/app.py", "app" },
    { "<frozen importlib._bootstrap>", "importlib" },
    { "<frozen site>", "site" },
    { "<string>", "<string>" },
    { ".hidden/a.py", ".hidden" },
    { "/", "" },
    { "", "" },
};

START_TEST(the_package_of_a_path)
{
    size_t length;
    const char *start = package_of(packages[_i].path, &length);
    ck_assert_msg(length == strlen(packages[_i].package) && !memcmp(start, packages[_i].package, length),
                  "%s: %.*s instead of %s", packages[_i].path, (int)length, start, packages[_i].package);
}
END_TEST

START_TEST(frames_of_event_loops)
{
    ck_assert(package_is_loop("BaseEventLoop._run_once", "asyncio/base_events.py"));
    ck_assert(package_is_loop("Handle._run", "/usr/lib/python3.11/asyncio/events.py:80"));
    ck_assert(package_is_loop("run", "asyncio/runners.py"));
}
END_TEST

START_TEST(frames_that_only_look_so)
{
    ck_assert(!package_is_loop("run", "app.py"));
    ck_assert(!package_is_loop("run", "myasyncio/runners.py"));
    ck_assert(!package_is_loop("run", "runners.py"));
    ck_assert(!package_is_loop("sleep", "asyncio/tasks.py"));
    ck_assert(!package_is_loop("[ready]", ""));
}
END_TEST

Suite *suite_package(void)
{
    Suite *suite = suite_create("package");
    TCase *tests = tcase_create("package");
    tcase_add_loop_test(tests, the_package_of_a_path, 0, (int)(sizeof packages / sizeof *packages));
    tcase_add_test(tests, frames_of_event_loops);
    tcase_add_test(tests, frames_that_only_look_so);
    suite_add_tcase(suite, tests);
    return suite;
}

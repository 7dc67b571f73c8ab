/* SPDX-License-Identifier: MIT
 *
 * tls: a library with so much thread-local data of its own that it leaves next to
 * nothing of a thread's stack of 256 KiB. To be preloaded.
 */
static __thread volatile char much[244 * 1024] __attribute__((tls_model("initial-exec")));

char *tls_touch(void)
{
    much[0] = 1;
    return (char *)much;
}

/* SPDX-License-Identifier: MIT
 *
 * stack_of_text: a stack of a profile from its text, frames joined by ';'.
 */
#ifndef APROF_TESTS_STACK_OF_TEXT_H
#define APROF_TESTS_STACK_OF_TEXT_H

#include <string.h>

#include "sampler/profile.h"

static inline profile_stack stack_of_text(struct profile *profile, const char *text)
{
    profile_stack stack = PROFILE_ROOT;
    while (*text != '\0') {
        size_t length = strcspn(text, ";");
        stack = profile_push(profile, stack, profile_intern(profile, text, length, 0));
        text += length + (text[length] == ';');
    }
    return stack;
}

#endif

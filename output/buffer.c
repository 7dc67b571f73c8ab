/* SPDX-License-Identifier: MIT */
#include "output/buffer.h"

#include "hooks/mem.h"

#define FIRST_BYTES (64u * 1024u)
#define MOST_BYTES (16u << 20)

bool buffer_init(struct buffer *buffer)
{
    *buffer = (struct buffer){.bytes = mem_alloc(FIRST_BYTES), .size = FIRST_BYTES};
    return buffer->bytes != NULL;
}

void buffer_free(struct buffer *buffer)
{
    mem_free(buffer->bytes);
}

bool buffer_reserve(struct buffer *buffer, size_t size)
{
    size_t grown = buffer->size;
    if (size <= grown)
        return true;
    while (grown < size)
        grown *= 2;
    char *bytes = size <= MOST_BYTES ? mem_realloc(buffer->bytes, grown) : NULL;
    if (bytes == NULL)
        return false;
    buffer->bytes = bytes;
    buffer->size = grown;
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The lines are stored consecutively in one buffer, oldest first; if a new line does not fit, the oldest are removed.
 * The history is global and not part of ct_process, since calls may also fail before cuInit. */
#include "log_history.h"

#include "locks.h"

#include <string.h>

static struct {
    struct ct_mutex lock;
    unsigned first, end; /* numbers of the oldest stored line and of the next new one */
    size_t used_bytes;
    char lines[CT_LOG_HISTORY_BYTES]; /* each ends with a newline */
} history = {.lock = CT_MUTEX_INITIALIZER(CT_RANK_LOG)};

static const char truncated[] = "(older lines are left out)\n";

/* Length of the line at `text`, newline included. */
static size_t line_bytes(const char *text)
{
    return (size_t)((const char *)memchr(text, '\n', CT_LOG_HISTORY_BYTES) - text) + 1;
}

static void drop_for_locked(size_t size_bytes)
{
    size_t dropped = 0;

    while (history.used_bytes - dropped + size_bytes > sizeof history.lines) {
        dropped += line_bytes(history.lines + dropped);
        history.first++;
    }
    history.used_bytes -= dropped;
    memmove(history.lines, history.lines + dropped, history.used_bytes);
}

void ct_log_history_add(const char *text)
{
    size_t length = strnlen(text, sizeof history.lines - 1);
    char *line;

    ct_mutex_lock(&history.lock);
    drop_for_locked(length + 1);
    line = history.lines + history.used_bytes;
    for (size_t i = 0; i < length; i++)
        line[i] = text[i] == '\n' ? ' ' : text[i];
    line[length] = '\n';
    history.used_bytes += length + 1;
    history.end++;
    ct_mutex_unlock(&history.lock);
}

void ct_log_history_lock(void)
{
    ct_mutex_lock(&history.lock);
}

void ct_log_history_unlock(void)
{
    ct_mutex_unlock(&history.lock);
}

unsigned ct_log_history_end(void)
{
    unsigned end;

    ct_mutex_lock(&history.lock);
    end = history.end;
    ct_mutex_unlock(&history.lock);
    return end;
}

unsigned ct_log_history_begin(void)
{
    unsigned first;

    ct_mutex_lock(&history.lock);
    first = history.first;
    ct_mutex_unlock(&history.lock);
    return first;
}

/* The offset of line `number`, or of the end of the text if it is the number of the next new line. */
static const char *line_locked(unsigned number)
{
    const char *at = history.lines;

    for (unsigned i = history.first; i != number; i++)
        at += line_bytes(at);
    return at;
}

/* The first line from number `from` on, or the oldest line if that one was removed or never existed. */
static const char *start_locked(unsigned from)
{
    return history.end - from <= history.end - history.first ? line_locked(from) : history.lines;
}

CUresult ct_log_history_read(unsigned *from, char *buffer, size_t *size_bytes)
{
    const size_t room = *size_bytes;
    const char *start, *end;
    size_t head = 0;
    bool none, fits;

    ct_mutex_lock(&history.lock);
    start = start_locked(*from);
    end = history.lines + history.used_bytes;
    none = start == end;
    if (start == history.lines && *from != history.first)
        head = sizeof truncated - 1;
    while (start < end && head + (size_t)(end - start) + 1 > room) {
        start += line_bytes(start);
        head = sizeof truncated - 1;
    }
    fits = start < end;
    *size_bytes = fits ? head + (size_t)(end - start) : 0;
    if (fits) {
        memcpy(buffer, truncated, head);
        memcpy(buffer + head, start, (size_t)(end - start));
    }
    if (room > 0)
        buffer[*size_bytes] = 0;
    if (fits || none)
        *from = history.end;
    ct_mutex_unlock(&history.lock);
    return fits || none ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

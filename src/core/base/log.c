/* SPDX-License-Identifier: Apache-2.0 */
/* Each message is one line and is written by one write, so that lines of several threads and processes do not mix without a lock. */
#include "log.h"

#include "config.h"
#include "log_callbacks.h"
#include "log_history.h"
#include "thread.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CT_LOG_LINE_BYTES 4096 /* longer messages are truncated */

static const char *const level_names[] = {"off", "error", "warn", "info", "debug"};

/* Until CUTTLE_LOG is read every message passes the macro's check; ct_log_write then reads it. */
atomic_int ct_log_threshold = CT_LOG_DEBUG;

static struct {
    pthread_once_t once;
    int fd;
    const char *channels; /* comma-separated; NULL: all */
} sink = {PTHREAD_ONCE_INIT, STDERR_FILENO, NULL};

static int level_of(const char *name, size_t length)
{
    for (int i = 0; i <= CT_LOG_DEBUG; i++)
        if (strlen(level_names[i]) == length && !strncmp(name, level_names[i], length))
            return i;
    return -1;
}

static void report(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void read_options(void)
{
    const struct ct_config *config = ct_config();
    const char *colon = strchr(config->log, ':');
    const int level = level_of(config->log, colon ? (size_t)(colon - config->log) : strlen(config->log));
    const int fd = *config->log_file ? open(config->log_file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : STDERR_FILENO;
    const int error = errno;

    sink.fd = fd >= 0 ? fd : STDERR_FILENO;
    sink.channels = colon && colon[1] ? colon + 1 : NULL;
    atomic_store_explicit(&ct_log_threshold, level < 0 ? CT_LOG_WARN : level, memory_order_relaxed); /* pthread_once orders the rest */
    if (fd < 0)
        report("CUTTLE_LOG_FILE=%s cannot be opened (%s): the log goes to standard error", config->log_file, strerror(error));
    if (level < 0 && *config->log)
        report("CUTTLE_LOG=%s: the level may be off, error, warn, info or debug; warn is used", config->log);
}

void ct_log_init(void)
{
    pthread_once(&sink.once, read_options);
}

static bool channel_is_on(const char *channel)
{
    size_t length = strlen(channel);

    for (const char *at = sink.channels; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (!strncmp(at, channel, length) && (at[length] == ',' || !at[length]))
            return true;
    }
    return !sink.channels;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static void write_line(enum ct_log_level level, const char *channel, const char *file, int line, const char *format, va_list arguments)
{
    char text[CT_LOG_LINE_BYTES];
    size_t room = sizeof text - 1;
    int n = snprintf(text, room, "cuttle %s: %s: ", level_names[level], channel);
    size_t at = (size_t)n;

    n = vsnprintf(text + at, room - at, format, arguments);
    at = n < 0 ? at : at + (size_t)n < room ? at + (size_t)n : room - 1;
    if (ct_log_threshold >= CT_LOG_INFO && at < room - 1) {
        n = snprintf(text + at, room - at, " (%s:%d)", base_name(file), line);
        at = at + (size_t)n < room ? at + (size_t)n : room - 1;
    }
    text[at++] = '\n';
    if (write(sink.fd, text, at) < 0)
        return; /* a failure here cannot be reported */
}

/* A fault of the log's own options, which no level or channel hides. */
static void report(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    write_line(CT_LOG_WARN, "log", __FILE__, __LINE__, format, arguments);
    va_end(arguments);
}

static void log_arguments(enum ct_log_level level, const char *channel, const char *file, int line, const char *format, va_list arguments)
{
    ct_log_init();
    if (level == CT_LOG_WARN && (ct_thread_compiles_ahead() || ct_thread_tries()))
        level = CT_LOG_DEBUG;
    if ((int)level <= atomic_load_explicit(&ct_log_threshold, memory_order_relaxed) && channel_is_on(channel))
        write_line(level, channel, file, line, format, arguments);
}

void ct_log_write(enum ct_log_level level, const char *channel, const char *file, int line, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    log_arguments(level, channel, file, line, format, arguments);
    va_end(arguments);
}

/* Errors of the application, and those for which it probes, are only of interest for debugging the application. */
static enum ct_log_level level_of_code(CUresult code)
{
    static const int of_applications[] = {
        CUDA_ERROR_INVALID_VALUE,
        CUDA_ERROR_OUT_OF_MEMORY,
        CUDA_ERROR_NOT_INITIALIZED,
        CUDA_ERROR_DEINITIALIZED,
        CUDA_ERROR_NO_DEVICE,
        CUDA_ERROR_INVALID_DEVICE,
        CUDA_ERROR_INVALID_IMAGE,
        CUDA_ERROR_INVALID_CONTEXT,
        CUDA_ERROR_INVALID_PTX,
        CUDA_ERROR_INVALID_SOURCE,
        CUDA_ERROR_FILE_NOT_FOUND,
        CUDA_ERROR_INVALID_HANDLE,
        CUDA_ERROR_NOT_FOUND,
        CUDA_ERROR_NOT_READY,
        CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE,
        CUDA_ERROR_CONTEXT_IS_DESTROYED,
        CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
        CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
        CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
        CUDA_ERROR_PEER_ACCESS_UNSUPPORTED,
        CUDA_ERROR_PEER_ACCESS_NOT_ENABLED,
        CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
        CUDA_ERROR_NOT_PERMITTED,
        CUDA_ERROR_ILLEGAL_STATE,
        CUDA_ERROR_UNSUPPORTED_LIMIT,
        CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY,
        CUDA_ERROR_INVALID_CLUSTER_SIZE,
        CUDA_ERROR_ALREADY_MAPPED,
        CUDA_ERROR_ARRAY_IS_MAPPED,
        CUDA_ERROR_NOT_MAPPED,
        CUDA_ERROR_NOT_MAPPED_AS_ARRAY,
        CUDA_ERROR_NOT_MAPPED_AS_POINTER,
    };

    for (size_t i = 0; i < sizeof of_applications / sizeof *of_applications; i++)
        if (of_applications[i] == (int)code)
            return CT_LOG_DEBUG;
    return CT_LOG_WARN;
}

static _Thread_local char last_failure[CT_LOG_LINE_BYTES];

const char *ct_log_last_failure(void)
{
    return last_failure;
}

void ct_log_forget_failure(void)
{
    last_failure[0] = 0;
}

CUresult ct_log_failure(CUresult code, const char *channel, const char *file, int line, const char *format, ...)
{
    enum ct_log_level level = level_of_code(code);
    va_list arguments;
    char text[CT_LOG_LINE_BYTES];
    int n;

    if (code == CUDA_ERROR_NOT_READY && (int)level > atomic_load_explicit(&ct_log_threshold, memory_order_relaxed))
        return code; /* applications poll for it: it is no failure, and polling must be fast */
    n = snprintf(text, sizeof text, "error %d: ", (int)code);
    va_start(arguments, format);
    vsnprintf(text + n, sizeof text - (size_t)n, format, arguments);
    va_end(arguments);
    memcpy(last_failure, text, strlen(text) + 1);
    if ((int)level <= atomic_load_explicit(&ct_log_threshold, memory_order_relaxed))
        ct_log_write(level, channel, file, line, "%s", text);
    if (ct_thread_compiles_ahead())
        return code; /* no call of the application failed */
    ct_log_history_add(text);
    ct_log_callbacks_call(text);
    return code;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "coredump.h"

#include "core/base/locks.h"
#include "core/base/log.h"
#include "core/base/log_history.h"
#include "device.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CT_CHANNEL "device"
#define TEXT_BYTES 1024
#define DEFAULT_FILE "core_%t_%h_%p.txt"

struct ct_coredump_settings {
    bool on_exception, trigger_host, lightweight, user_trigger;
    unsigned flags; /* CU_COREDUMP_* */
    char file[TEXT_BYTES], pipe[TEXT_BYTES];
};

static const struct attribute {
    size_t offset, size_bytes;
    bool is_text, is_of_process;
} attributes[CU_COREDUMP_MAX] = {
#define ATTRIBUTE(id, member, is_text, is_of_process)                                                                                      \
    [CU_COREDUMP_##                                                                                                                        \
        id] = {offsetof(struct ct_coredump_settings, member), sizeof((struct ct_coredump_settings *)0)->member, is_text, is_of_process}
    ATTRIBUTE(ENABLE_ON_EXCEPTION, on_exception, false, false),
    ATTRIBUTE(TRIGGER_HOST, trigger_host, false, false),
    ATTRIBUTE(LIGHTWEIGHT, lightweight, false, false),
    ATTRIBUTE(ENABLE_USER_TRIGGER, user_trigger, false, true),
    ATTRIBUTE(FILE, file, true, false),
    ATTRIBUTE(PIPE, pipe, true, true),
    ATTRIBUTE(GENERATION_FLAGS, flags, false, false),
};

static struct ct_mutex lock = CT_MUTEX_INITIALIZER(CT_RANK_COREDUMP);
static struct ct_coredump_settings of_process;
static bool environment_is_read; /* of_process is that of the environment, or of the application */

static bool is_on(const char *variable, bool fallback)
{
    const char *value = secure_getenv(variable);

    return value ? strcmp(value, "0") != 0 : fallback;
}

/* The variables that NVIDIA's driver has (CUDA-GDB, "GPU core dump support"). */
static void read_environment(void)
{
    const char *file = secure_getenv("CUDA_COREDUMP_FILE");

    of_process.on_exception = is_on("CUDA_ENABLE_COREDUMP_ON_EXCEPTION", false);
    of_process.trigger_host = is_on("CUDA_ENABLE_CPU_COREDUMP_ON_EXCEPTION", true);
    snprintf(of_process.file, sizeof of_process.file, "%s", file ? file : "");
}

/* ---- attributes ---- */

static const struct attribute *find_or_null(const struct ct_context *context_or_null, CUcoredumpSettings id)
{
    const struct attribute *attribute = (unsigned)id < CU_COREDUMP_MAX ? &attributes[id] : NULL;

    return attribute && attribute->size_bytes && !(context_or_null && attribute->is_of_process) ? attribute : NULL;
}

CUresult ct_coredump_size(const struct ct_context *context, CUcoredumpSettings id, size_t *out)
{
    const struct attribute *attribute = find_or_null(context, id);

    if (!attribute)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "there is no such attribute %d of core dumps", (int)id);
    *out = attribute->size_bytes;
    return CUDA_SUCCESS;
}

static struct ct_coredump_settings *settings_locked(const struct ct_context *context_or_null)
{
    if (!environment_is_read)
        read_environment();
    environment_is_read = true;
    return context_or_null && context_or_null->coredump ? context_or_null->coredump : &of_process;
}

/* False: the value needs more room, or is a number of another size. */
static bool read_value(const struct attribute *attribute, const struct ct_coredump_settings *settings, void *value, size_t size_bytes)
{
    const char *from = (const char *)settings + attribute->offset;
    const size_t needed = attribute->is_text ? strlen(from) + 1 : attribute->size_bytes;
    const bool fits = attribute->is_text ? size_bytes >= needed : size_bytes == needed;

    if (fits)
        memcpy(value, from, needed);
    return fits;
}

CUresult ct_coredump_get(struct ct_context *context, CUcoredumpSettings id, void *value, size_t size_bytes)
{
    const struct attribute *attribute = find_or_null(context, id);
    bool is_read;

    ct_mutex_lock(&lock);
    is_read = attribute && read_value(attribute, settings_locked(context), value, size_bytes);
    ct_mutex_unlock(&lock);
    return is_read ? CUDA_SUCCESS : ct_fail(CUDA_ERROR_INVALID_VALUE, "attribute %d of core dumps with %zu bytes", (int)id, size_bytes);
}

/* The context gets attributes of its own, which begin as those of the process. */
static struct ct_coredump_settings *own_settings_locked(struct ct_context *context_or_null)
{
    struct ct_coredump_settings *settings = settings_locked(context_or_null);

    if (!context_or_null || settings != &of_process)
        return settings;
    settings = malloc(sizeof *settings);
    if (settings)
        *settings = of_process;
    context_or_null->coredump = settings;
    return settings;
}

static void write_value(const struct attribute *attribute, struct ct_coredump_settings *settings, const void *value, size_t size_bytes)
{
    char *to = (char *)settings + attribute->offset;

    if (attribute->is_text)
        snprintf(to, attribute->size_bytes, "%.*s", (int)size_bytes, (const char *)value);
    else
        memcpy(to, value, attribute->size_bytes);
}

CUresult ct_coredump_set(struct ct_context *context, CUcoredumpSettings id, const void *value, size_t size_bytes)
{
    const struct attribute *attribute = find_or_null(context, id);
    struct ct_coredump_settings *settings;

    if (!attribute || (attribute->is_text ? size_bytes > attribute->size_bytes : size_bytes != attribute->size_bytes))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "attribute %d of core dumps with %zu bytes", (int)id, size_bytes);
    ct_mutex_lock(&lock);
    settings = own_settings_locked(context);
    if (settings)
        write_value(attribute, settings, value, size_bytes);
    ct_mutex_unlock(&lock);
    return settings ? CUDA_SUCCESS : ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the attributes of core dumps");
}

/* ---- reports ---- */

/* Replaces %h, %p and %t by the host, the process and the time, as NVIDIA's driver does. */
static void expand(const char *pattern, char *out, size_t size)
{
    char host[256] = "unknown";
    size_t used = 0;

    (void)gethostname(host, sizeof host - 1);
    for (; *pattern && used + 1 < size; pattern++) {
        const bool is_special = pattern[0] == '%' && pattern[1] && strchr("hpt", pattern[1]);
        int n;

        if (!is_special)
            n = snprintf(out + used, size - used, "%c", *pattern);
        else if (*++pattern == 'h')
            n = snprintf(out + used, size - used, "%s", host);
        else
            n = snprintf(out + used, size - used, "%lld", *pattern == 'p' ? (long long)getpid() : (long long)time(NULL));
        used += (size_t)n < size - used ? (size_t)n : size - used - 1;
    }
    out[used] = 0;
}

static void write_report(FILE *file, const struct ct_context *context_or_null, const struct ct_device *device, const char *what)
{
    static char history[CT_LOG_HISTORY_BYTES + 1];
    size_t size = sizeof history;
    unsigned from = 0;

    fprintf(file, "%s\n\nprocess %lld\ndevice %d: %s\n", what, (long long)getpid(), device->ordinal, device->info.name);
    if (context_or_null)
        fprintf(file, "context %llu\n", context_or_null->id);
    if (ct_log_history_read(&from, history, &size) == CUDA_SUCCESS && size)
        fprintf(file, "\nlatest failures of calls:\n%s", history);
}

void ct_coredump_write(const struct ct_context *context_or_null, const struct ct_device *device, const char *what)
{
    const struct ct_coredump_settings *settings;
    char path[TEXT_BYTES + 512];
    FILE *file;

    ct_mutex_lock(&lock);
    settings = settings_locked(context_or_null);
    if (settings->on_exception) {
        expand(settings->file[0] ? settings->file : DEFAULT_FILE, path, sizeof path);
        file = fopen(path, "we");
        if (file) {
            write_report(file, context_or_null, device, what);
            fclose(file);
        }
        ct_log(CT_LOG_WARN, file ? "the report on the failure is in %s" : "the report on the failure cannot be written to %s", path);
    }
    ct_mutex_unlock(&lock);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the options of config.def from the environment. */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static struct ct_config config;
static pthread_once_t config_once = PTHREAD_ONCE_INIT;

/* Copies the string, since the application may change its environment later. The copy is never freed. */
static const char *copy_of(const char *text, const char *fallback)
{
    char *copy = text ? strdup(text) : NULL;

    return copy ? copy : fallback;
}

static const char *read_STRING(const char *variable, const char *fallback)
{
    return copy_of(getenv(variable), fallback);
}

static const char *read_PATH(const char *variable, const char *fallback)
{
    return copy_of(secure_getenv(variable), fallback);
}

static bool read_BOOL(const char *variable, bool fallback)
{
    static const char *const off[] = {"0", "no", "off", "false"};
    const char *text = getenv(variable);

    if (!text || !*text)
        return fallback;
    for (size_t i = 0; i < sizeof off / sizeof *off; i++)
        if (!strcasecmp(text, off[i]))
            return false;
    return true;
}

static int read_INT(const char *variable, int fallback)
{
    const char *text = getenv(variable);
    char *end;
    long value;

    if (!text || !*text)
        return fallback;
    value = strtol(text, &end, 0);
    return *end || value != (int)value ? fallback : (int)value;
}

static void read_environment(void)
{
#define OPTION(member, variable, type, value, help) config.member = read_##type(variable, value);
#include "config.def"
}

const struct ct_config *ct_config(void)
{
    pthread_once(&config_once, read_environment);
    return &config;
}

bool ct_config_help(unsigned index, struct ct_option_help *out)
{
    static const struct ct_option_help rows[] = {
#define OPTION(member, variable, type, value, help) {variable, #value, help},
#include "config.def"
    };

    if (index >= sizeof rows / sizeof *rows)
        return false;
    *out = rows[index];
    return true;
}

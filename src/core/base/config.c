/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the options of config.def from the environment. */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define OPTION(member, variable, type, value, words, help) +1
enum {
    N_OPTIONS = 0
#include "config.def"
};

static struct ct_config config;
static struct ct_option_fault faults[N_OPTIONS];
static unsigned n_faults;
static pthread_once_t config_once = PTHREAD_ONCE_INIT;

/* Copies the string, since the application may change its environment later. The copy is never freed. */
static const char *copy_of(const char *text, const char *fallback)
{
    char *copy = text ? strdup(text) : NULL;

    return copy ? copy : fallback;
}

/* The log is not ready yet, since its own options are read here. */
static void note_fault(const char *variable, const char *text, const char *expected)
{
    faults[n_faults++] = (struct ct_option_fault){variable, copy_of(text, ""), expected};
}

/* The word in a list (separated by spaces) that equals the text, without regard to case. */
static const char *find_word_or_null(const char *words, const char *text)
{
    for (const char *word = words; *word; word += strspn(word, " ")) {
        const size_t length = strcspn(word, " ");

        if (strlen(text) == length && !strncasecmp(word, text, length))
            return word;
        word += length;
    }
    return NULL;
}

static const char *read_STRING(const char *variable, const char *fallback, const char *words)
{
    (void)words;
    return copy_of(getenv(variable), fallback);
}

static const char *read_PATH(const char *variable, const char *fallback, const char *words)
{
    (void)words;
    return copy_of(secure_getenv(variable), fallback);
}

/* The word as the table spells it, so that its users can compare it exactly; a text that is no word as it is. */
static const char *read_CHOICE(const char *variable, const char *fallback, const char *words)
{
    const char *text = getenv(variable), *word = text ? find_word_or_null(words, text) : NULL;
    char *copy;

    if (word) {
        copy = strndup(word, strlen(text));
        return copy ? copy : fallback;
    }
    if (text && *text)
        note_fault(variable, text, words);
    return copy_of(text, fallback);
}

/* Any other text means true. */
static bool read_BOOL(const char *variable, bool fallback, const char *words)
{
    const char *text = getenv(variable);

    (void)words;
    if (!text || !*text)
        return fallback;
    if (find_word_or_null("0 no off false", text))
        return false;
    if (!find_word_or_null("1 yes on true", text))
        note_fault(variable, text, "0 1");
    return true;
}

static int read_INT(const char *variable, int fallback, const char *words)
{
    const char *text = getenv(variable);
    char *end;
    long value;

    (void)words;
    if (!text || !*text)
        return fallback;
    value = strtol(text, &end, 0);
    if (!*end && value == (int)value)
        return (int)value;
    note_fault(variable, text, "a number");
    return fallback;
}

static uint64_t read_SIZE(const char *variable, uint64_t fallback, const char *words)
{
    const char *text = getenv(variable);
    char *end;
    unsigned long long value;

    (void)words;
    if (!text || !*text)
        return fallback;
    errno = 0;
    value = strtoull(text, &end, 0);
    if (!*end && *text >= '0' && *text <= '9' && !errno)
        return value;
    note_fault(variable, text, "a number of bytes");
    return fallback;
}

static void read_environment(void)
{
#define OPTION(member, variable, type, value, words, help) config.member = read_##type(variable, value, words);
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
#define OPTION(member, variable, type, value, words, help) {variable, #value, help},
#include "config.def"
    };

    if (index >= sizeof rows / sizeof *rows)
        return false;
    *out = rows[index];
    return true;
}

bool ct_config_fault(unsigned index, struct ct_option_fault *out)
{
    (void)ct_config();
    if (index >= n_faults)
        return false;
    *out = faults[index];
    return true;
}

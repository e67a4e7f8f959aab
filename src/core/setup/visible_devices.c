/* SPDX-License-Identifier: Apache-2.0 */
#include "visible_devices.h"

#include "core/base/log.h"
#include "core/device/device.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define CT_CHANNEL "process"
#define NONE (-1)
#define UUID_PREFIX "GPU-" /* in this case only */

static bool is_uuid(const char *word)
{
    return !strncmp(word, UUID_PREFIX, strlen(UUID_PREFIX));
}

/* The only device whose UUID begins like that. What follows the last digit is ignored, as behind a number. */
static int find_uuid(const char *digits, size_t length, const uint8_t (*uuids)[16], unsigned count)
{
    int found = NONE;

    for (unsigned i = 0; length && i < count; i++) {
        char uuid[CT_UUID_CHARACTERS + 1];

        ct_uuid_text(uuids[i], uuid);
        if (strncasecmp(uuid, digits, length < CT_UUID_CHARACTERS ? length : CT_UUID_CHARACTERS) != 0)
            continue;
        if (found != NONE)
            return NONE;
        found = (int)i;
    }
    return found;
}

/* What follows the digits of a number is ignored, as by strtol. */
static int find_number(const char *word, unsigned count)
{
    char *end;
    const long number = strtol(word, &end, 10);

    return end == word || number < 0 || number >= (long)count ? NONE : (int)number;
}

CUresult ct_visible_devices(const char *list, const uint8_t (*uuids)[16], unsigned count, unsigned *out, unsigned *n_out)
{
    const bool by_uuid = is_uuid(list); /* all words are of the first one's kind */
    const size_t prefix = by_uuid ? strlen(UUID_PREFIX) : 0;

    *n_out = 0;
    for (const char *word = list;; word++) {
        const size_t length = strcspn(word, ",");
        int found = NONE;

        if (is_uuid(word) == by_uuid)
            found = by_uuid ? find_uuid(word + prefix, length - prefix, uuids, count) : find_number(word, count);
        if (found == NONE)
            return CUDA_SUCCESS;
        for (unsigned i = 0; i < *n_out; i++)
            if (out[i] == (unsigned)found)
                return ct_fail(CUDA_ERROR_INVALID_DEVICE, "CUDA_VISIBLE_DEVICES=%s names device %d twice", list, found);
        out[(*n_out)++] = (unsigned)found;
        word += length;
        if (!*word)
            return CUDA_SUCCESS;
    }
}

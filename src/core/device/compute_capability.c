/* SPDX-License-Identifier: Apache-2.0 */
/* The compute capability, chosen by an option: "75", "7.5", or with the suffix that compilers use ("90a"), which is ignored. */
#include "compute_capability.h"

#include "core/base/config.h"
#include "core/base/log.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#define CT_CHANNEL "device"
/* A device with as much shared memory as every CUDA device has for a block reports the highest number whose PTX needs no clusters and no
 * warp-group instructions, which frameworks write for 9.0 and no device here has. So does a CPU: its shared memory is ordinary memory,
 * and so is the device memory that replaces it for blocks that need more. Others report the oldest one that CUDA 13 compiles for, since
 * programs choose larger blocks for newer ones. */
#define DEFAULT_NUMBER 89
#define SMALL_NUMBER 75
#define CUDA_SHARED_BYTES 49152u

static const struct ct_compute_capability rows[] = {
#define CAPABILITY(number, blocks, threads, registers_sm, registers_block, ratio, shared_sm, shared_block, shared_reserved)                \
    {number, blocks, threads, registers_sm, registers_block, ratio, shared_sm << 10, shared_block << 10, shared_reserved << 10},
#include "compute_capability.def"
};

const struct ct_compute_capability *ct_compute_capability_find_or_null(unsigned long number)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].number == number)
            return &rows[i];
    return NULL;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Ten times the compute capability in the text; 0: the text is invalid. */
static unsigned long parse(const char *text)
{
    char *end;
    unsigned long number = is_digit(*text) ? strtoul(text, &end, 10) : 0;

    if (number == 0 || number > 1000)
        return 0;
    if (*end == '.' && is_digit(end[1])) {
        number = number * 10 + (unsigned long)(end[1] - '0');
        end += 2;
    }
    end += *end == 'a' || *end == 'f';
    return *end ? 0 : number;
}

const struct ct_compute_capability *ct_compute_capability_chosen_or_null(const char *option, const char *value)
{
    const struct ct_compute_capability *row = *value ? ct_compute_capability_find_or_null(parse(value)) : NULL;

    if (*value && !row)
        ct_log(CT_LOG_WARN, "%s=%s is unknown; devices report what they do without it", option, value);
    return row;
}

static const struct ct_compute_capability *chosen; /* NULL: by the device */

static void choose(void)
{
    chosen = ct_compute_capability_chosen_or_null("CUTTLE_COMPUTE_CAPABILITY", ct_config()->compute_capability);
}

static bool has_fast_shared(const struct ct_device_info *info)
{
    return info->shared_bytes >= CUDA_SHARED_BYTES || info->kind == CT_DEVICE_CPU;
}

const struct ct_compute_capability *ct_compute_capability(const struct ct_device_info *info)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, choose);
    return chosen ? chosen : ct_compute_capability_find_or_null(has_fast_shared(info) ? DEFAULT_NUMBER : SMALL_NUMBER);
}

static atomic_uint for_images; /* relaxed: a single value */

void ct_compute_capability_note_first(const struct ct_device_info *info)
{
    atomic_store_explicit(&for_images, ct_compute_capability(info)->number, memory_order_relaxed);
}

unsigned ct_compute_capability_for_images(void)
{
    const unsigned number = atomic_load_explicit(&for_images, memory_order_relaxed);

    return number ? number : SMALL_NUMBER;
}

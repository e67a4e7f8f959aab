/* SPDX-License-Identifier: Apache-2.0 */
/* Intel's OpenCL compiler for GPUs as a judge: libocloc.so, called in this process. The target is the result of
 * src/backend_cl/device_info.c for a platform without a row in drivers.def and the features that Intel's driver reports for the chip. */
#include "judge.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ocloc_api.h, interface 1.0, which is C++ */
typedef int ocloc_invoke_fn(unsigned n_arguments, const char **arguments, uint32_t n_sources, const uint8_t **sources,
                            const uint64_t *source_lengths, const char **source_names, uint32_t n_headers, const uint8_t **headers,
                            const uint64_t *header_lengths, const char **header_names, uint32_t *n_outputs, uint8_t ***outputs,
                            uint64_t **output_lengths, char ***output_names);
typedef int ocloc_free_fn(uint32_t *n_outputs, uint8_t ***outputs, uint64_t **output_lengths, char ***output_names);

struct ocloc {
    ocloc_invoke_fn *invoke;
    ocloc_free_fn *free_output;
    char device[32];
};

struct outputs {
    uint32_t n;
    uint8_t **bytes;
    uint64_t *lengths;
    char **names;
};

/* Chips as Intel's driver reports them (NEO 22.43, hw_info_dg2.inl, hw_info_pvc.inl): DG2 has no 64-bit floats; both take float additions
 * in global memory, DG2 in local memory too. Their 32-bit floats, and 64-bit ones where there are any, have CL_FP_FMA and CL_FP_DENORM,
 * 32-bit ones CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT (cl_device_caps.cpp). */
static const struct chip {
    const char *device;
    uint8_t float64, add32_shared;
    uint32_t shared_bytes;
} chips[] = {
    {"dg2", 0, 1, 65536},
    {"pvc", 1, 0, 131072},
};

static const struct chip *find_chip(const char *device)
{
    for (size_t i = 0; i < sizeof chips / sizeof *chips; i++)
        if (!strcmp(chips[i].device, device))
            return &chips[i];
    return NULL;
}

static struct ptx2spv_target chip_target(const struct chip *chip)
{
    return (struct ptx2spv_target){
        .dialect = PTX2SPV_OPENCL,
        .workarounds = PTX2SPV_WORKAROUND_REVERSED_SIX_BYTES | PTX2SPV_WORKAROUND_LOGICAL_NOT,
        .pointer_rule = PTX2SPV_POINTER_SAME,
        .warp_form = PTX2SPV_WARP_COLLECTIVE,
        .subgroup_size = 1,
        .shared_bytes = chip->shared_bytes,
        .max_block_threads = 1024,
        .float64 = chip->float64,
        .float16 = 1,
        .int64 = 1,
        .int16 = 1,
        .int8 = 1,
        .storage8 = 1,
        .storage16 = 1,
        .shared_explicit_layout = 1,
        .shared_explicit_layout8 = 1,
        .shared_explicit_layout16 = 1,
        .atomic_int64_global = 1,
        .atomic_int64_shared = 1,
        .atomic_float32_add_global = 1,
        .atomic_float32_add_shared = chip->add32_shared,
        .memory_model_device_scope = 1,
        .exact_zeros = 1,
        .exact_fma16 = 1,
        .exact_fma32 = 1,
        .exact_div32 = 1,
        .exact_sqrt32 = 1,
        .keeps_subnormals32 = 1,
        .exact_fma64 = chip->float64,
        .exact_div64 = chip->float64,
        .exact_sqrt64 = chip->float64,
    };
}

/* ---- the compiler's output ---- */

/* Returns the number after `key` in text that need not be terminated by NUL, or `otherwise`. */
static uint64_t number_behind(const uint8_t *bytes, uint64_t length, const char *key, uint64_t otherwise)
{
    const uint8_t *found = memmem(bytes, length, key, strlen(key));
    uint64_t value = 0;

    if (!found)
        return otherwise;
    for (found += strlen(key); found < bytes + length && *found == ' '; found++)
        continue;
    for (; found < bytes + length && *found >= '0' && *found <= '9'; found++)
        value = value * 10 + (*found - '0');
    return value;
}

/* Returns the size of section .text.main of an ELF file in bytes, or NOT_REPORTED. */
static uint64_t code_bytes(const uint8_t *bytes, uint64_t length)
{
    Elf64_Ehdr head;
    Elf64_Shdr section, names;

    if (length < sizeof head || memcmp(bytes, ELFMAG, SELFMAG))
        return NOT_REPORTED;
    memcpy(&head, bytes, sizeof head);
    if (head.e_shentsize != sizeof section || head.e_shoff + (uint64_t)head.e_shnum * sizeof section > length ||
        head.e_shstrndx >= head.e_shnum)
        return NOT_REPORTED;
    memcpy(&names, bytes + head.e_shoff + head.e_shstrndx * sizeof names, sizeof names);
    for (unsigned i = 0; i < head.e_shnum; i++) {
        memcpy(&section, bytes + head.e_shoff + i * sizeof section, sizeof section);
        if (names.sh_offset + section.sh_name + sizeof ".text.main" <= length &&
            !strcmp((const char *)bytes + names.sh_offset + section.sh_name, ".text.main"))
            return section.sh_size;
    }
    return NOT_REPORTED;
}

static bool is_log(const char *name)
{
    return !strcmp(name, "stdout.log");
}

/* Returns the largest of the numbers after `key`, 0 if there is none. */
static uint64_t most_behind(const uint8_t *bytes, uint64_t length, const char *key)
{
    uint64_t most = 0;

    for (const uint8_t *found; (found = memmem(bytes, length, key, strlen(key)));
         length -= (uint64_t)(found + 1 - bytes), bytes = found + 1) {
        const uint64_t number = number_behind(found, length - (uint64_t)(found - bytes), key, 0);

        most = number > most ? number : most;
    }
    return most;
}

static void read_statistics(const struct outputs *outputs, struct statistics *out)
{
    out->spills = 0; /* reported only if there are any */
    for (uint32_t i = 0; i < outputs->n; i++) {
        const uint8_t *bytes = outputs->bytes[i];
        uint64_t length = outputs->lengths[i];

        if (is_log(outputs->names[i])) {
            out->spills = most_behind(bytes, length, "spilled around");
        } else if (memmem(bytes, length, "simd_size:", 10)) {
            out->lanes = number_behind(bytes, length, "simd_size:", NOT_REPORTED);
            out->vector_registers = number_behind(bytes, length, "grf_count:", NOT_REPORTED);
            out->code_bytes = code_bytes(bytes, length);
        }
    }
}

/* Returns the first line of the log that reports an error. */
static void read_reason(const struct outputs *outputs, int status, char *why, size_t why_size)
{
    snprintf(why, why_size, "ocloc gives %d", status);
    for (uint32_t i = 0; i < outputs->n; i++) {
        const char *log = (const char *)outputs->bytes[i];
        const char *line = is_log(outputs->names[i]) ? memmem(log, outputs->lengths[i], "error:", 6) : NULL;

        if (line)
            snprintf(why, why_size, "%.*s", (int)strcspn(line, "\n"), line); /* logs end with NUL */
    }
}

static enum verdict compile(struct judge *judge, const struct exhibit *exhibit, struct statistics *out, char *why, size_t why_size)
{
    const struct ocloc *ocloc = judge->state;
    /* The options of src/backend_cl/kernel.c; the second one requests a binary with statistics. */
    const char *arguments[] = {"ocloc",
                               "compile",
                               "-q",
                               "-spirv_input",
                               "-file",
                               "main.spv",
                               "-device",
                               ocloc->device,
                               "-options",
                               "-cl-std=CL3.0 -cl-fp32-correctly-rounded-divide-sqrt",
                               "-internal_options",
                               "-cl-intel-allow-zebin",
                               "-output_no_suffix"};
    const uint8_t *source = (const uint8_t *)exhibit->kernel->words;
    const uint64_t length = exhibit->kernel->n_words * sizeof *exhibit->kernel->words;
    const char *name = "main.spv";
    struct outputs outputs = {0};
    int status = ocloc->invoke(sizeof arguments / sizeof *arguments, arguments, 1, &source, &length, &name, 0, NULL, NULL, NULL, &outputs.n,
                               &outputs.bytes, &outputs.lengths, &outputs.names);

    if (status)
        read_reason(&outputs, status, why, why_size);
    else
        read_statistics(&outputs, out);
    ocloc->free_output(&outputs.n, &outputs.bytes, &outputs.lengths, &outputs.names);
    return status ? VERDICT_REFUSED : VERDICT_COMPILED;
}

bool judge_open_ocloc(struct judge *judge, const char *device, const char *library, char *why, size_t why_size)
{
    static struct ocloc ocloc;
    const struct chip *chip = find_chip(device);
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);

    if (!handle) {
        snprintf(why, why_size, "%s", dlerror());
        return false;
    }
    dlopen("libigc.so.1", RTLD_NOW | RTLD_LOCAL); /* load the actual compiler once here: otherwise the process of each kernel loads it */
    ocloc.invoke = (ocloc_invoke_fn *)dlsym(handle, "oclocInvoke");
    ocloc.free_output = (ocloc_free_fn *)dlsym(handle, "oclocFreeOutput");
    if (!chip || !ocloc.invoke || !ocloc.free_output) {
        snprintf(why, why_size, "%s lacks oclocInvoke, or there are no facts of %s here", library, device);
        return false;
    }
    snprintf(ocloc.device, sizeof ocloc.device, "%s", device);
    snprintf(judge->name, sizeof judge->name, "%s, ocloc", device);
    judge->target = chip_target(chip);
    judge->takes_many = true;
    judge->may_lack = !chip->float64;
    judge->compile = compile;
    judge->state = &ocloc;
    return true;
}

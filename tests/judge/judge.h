/* SPDX-License-Identifier: Apache-2.0 */
/* The judges: real compilers of GPUs, with no GPU. Each kernel of a corpus of PTX is compiled to SPIR-V for a chip, as Cuttle would for
 * that chip, and handed to the chip's own compiler; nothing is executed. A judge is one such compiler, set up for one chip. */
#ifndef JUDGE_H
#define JUDGE_H

#include "cuttle/ptx2spv.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a compiler says of its code. What it does not tell is NOT_TOLD. */
#define NOT_TOLD UINT64_MAX
struct statistics {
    uint64_t lanes; /* of a hardware thread */
    uint64_t instructions;
    uint64_t code_bytes;
    uint64_t vector_registers, scalar_registers; /* of a hardware thread; vector ones hold a value for each lane */
    uint64_t spills, scalar_spills; /* registers that did not fit: to memory, and of scalar ones to lanes of vector registers */
};

/* A kernel to be judged, with the shape of a launch that might come. */
struct exhibit {
    const char *name;
    const struct ptx2spv_kernel *kernel;
    uint32_t block[3];
    uint32_t dynamic_shared_bytes;
};

enum verdict {
    VERDICT_COMPILED,
    VERDICT_REFUSED, /* the compiler does not take it; the reason is written to `why` */
};

struct judge {
    char name[256]; /* chip and compiler */
    struct ptx2spv_target target;
    bool takes_many; /* modules of many kernels, of which the statistics tell the worst; the names do not matter */
    bool is_safe;    /* it neither crashes nor keeps memory: kernels need no processes of their own */
    bool may_lack;   /* the chip lacks features that CUDA takes for granted: our own refusals that name them are no fault */
    enum verdict (*compile)(struct judge *judge, const struct exhibit *exhibit, struct statistics *out, char *why, size_t why_size);
    void *state;
};

/* Sets a judge up. False: it is not there; why says what is missing. */
bool judge_open_vulkan(struct judge *judge, char *why, size_t why_size);
/* device: a name that `ocloc compile --help` lists; library: libocloc.so. */
bool judge_open_ocloc(struct judge *judge, const char *device, const char *library, char *why, size_t why_size);
/* kind: a name of judge_valid.c. */
bool judge_open_validator(struct judge *judge, const char *kind, char *why, size_t why_size);

/* The modules of n kernels as one of *out_n words, to be freed; NULL where that cannot be had. */
uint32_t *merge_modules(const struct ptx2spv_kernel *const *kernels, unsigned n, size_t *out_n);

/* A corpus: PTX texts, each once. */
struct ptx_text {
    char *path, *text;
    size_t length;
};
struct corpus {
    struct ptx_text *texts;
    size_t n, capacity;
};
/* Adds a file, or the *.ptx of a folder (not of those in it) in the order of their names. False: it cannot be read. */
bool corpus_add(struct corpus *corpus, const char *path);
void corpus_finish(struct corpus *corpus);
/* FNV-1a of 64 bits: to tell what was seen before. */
uint64_t hash_bytes(const void *bytes, size_t n);

#endif
